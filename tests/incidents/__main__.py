"""Play the incidents and write docs/incidents.md: ``scripts/incidents [--check | --only TEXT]``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence

from tests.bench.words import say
from tests.chaos.hosts import are_allowed
from tests.incidents import page
from tests.incidents.incident import Answer, Incident, answers_of
from tests.incidents.scene import Scene, scene


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/incidents", description="Play incidents on two hosts.")
    parser.add_argument("--check", action="store_true", help="write no page")
    parser.add_argument("--only", default="", metavar="TEXT", help="those with this in their titles; writes no page")
    given = parser.parse_args()
    if not are_allowed():
        sys.exit("scripts/incidents needs root, and ip, nsenter, unshare and setpriv: its hosts are namespaces")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that all is cleared away
    with scene() as stage:
        played = {one: _played(one, stage) for one in page.INCIDENTS if given.only in one.title}
    if not (given.check or given.only):
        page.PATH.write_text(page.text(played))


def _played(incident: Incident, stage: Scene) -> Sequence[Answer]:
    begun = time.monotonic()
    answers = answers_of(incident, stage)
    say(f"{incident.title}: {time.monotonic() - begun:.0f} s")
    for one in answers:
        say(f"$ {one.told.line}\n{one.told.text}\n")
    return answers


if __name__ == "__main__":
    main()
