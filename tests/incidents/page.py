"""The page docs/incidents.md: the incidents as they were played, each with what was typed and answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill

from tests.bench.rig import ROOT
from tests.incidents import at_deploys, at_hosts, at_jobs, at_queues, at_schedules, at_stores
from tests.incidents.incident import Answer, Incident

PATH = ROOT / "docs/incidents.md"
_WIDTH = 120
#: those of one host or store come last: what they leave takes a while to be forgotten
INCIDENTS = (
    at_queues.GROWS, at_hosts.SCALE, at_deploys.DOES_NOT_BOOT, at_deploys.HAS_OTHER_ARGUMENTS, at_jobs.HANG,
    at_jobs.LEAK, at_jobs.MANY_FAIL, at_queues.WANTS_OUT, at_queues.MOVES, at_schedules.DOES_NOT_PUSH,
    at_schedules.FAILS, at_jobs.RAN_TWICE, at_jobs.IS_SLOW, at_stores.RESTARTS, at_stores.IS_FULL, at_hosts.DRAIN,
    at_hosts.LOSE,
)  # fmt: skip
_HEAD = """\
# Incidents

<!-- Written by scripts/incidents, which plays all of this: do not edit. -->

What an operator types when something goes wrong, and what comes of it: one command or two for each. Two hosts, web1 and
web2, run the same file with two pools: web on Redis and billing on PostgreSQL. The operator sits at web1, and
`QUEUEPOOL_CONFIG` names the file. All outputs are real; an ellipsis stands for lines that do not matter here. What
alerts say, and what to do about each, is in [Alerts](alerts.md#at-three-in-the-morning).
"""


def text(played: Mapping[Incident, Sequence[Answer]]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(one, answers) for one, answers in played.items())])


def _section(incident: Incident, answers: Sequence[Answer]) -> str:
    words = _folded(incident.happened), _folded(f"**Next.** {incident.then}")
    return "\n\n".join([f"## {incident.title}", words[0], *_blocks(answers), words[1]]) + "\n"


def _folded(paragraph: str) -> str:
    return fill(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _blocks(answers: Sequence[Answer]) -> Iterator[str]:
    for one in answers:
        yield f"```sh\n{one.told.line}\n```"
        yield f"```text\n{one.shown}\n```"
