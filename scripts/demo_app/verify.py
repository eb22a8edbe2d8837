"""Verifies what the demo says: compares the pushed jobs with the diary, the failed store and the quarantine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: most seconds that a decent machine may need for what takes milliseconds
SOON = 2.0

Line = tuple[bool, str]
DIARY = [json.loads(line) for line in Path(os.environ["DEMO_DIARY"]).read_text().splitlines()]


def diary(what: str, **wanted: object) -> list[dict[str, Any]]:
    """The matching lines, earliest first."""
    found = [line for line in DIARY if line["what"] == what and wanted.items() <= line.items()]
    return sorted(found, key=lambda line: line["at"])


def told(*words: str) -> Any:
    """The JSON output of a command."""
    done = subprocess.run(["queuepool", *words, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def verify(victim: str, killed_at: float) -> Iterator[Line]:
    failed = {row["class"]: row for row in told("failed")}
    pushed = {victim, *(line["id"] for line in diary("pushed"))}
    done = [line["id"] for line in diary("done")]
    yield (
        pushed == {*done, *(row["id"] for row in failed.values())} and len(done) == len(set(done)),
        f"{len(pushed)} jobs were pushed: {len(done)} are done, each once, {len(failed)} failed, none is missing",
    )
    yield from ordinary()
    yield from hung(failed)
    yield from crashed(failed)
    yield "no job is registered" in failed["no.such.job"]["exception"], "the unknown job failed, nothing else"
    kept = told("quarantine", "list")
    yield [row["payload"] for row in kept] == ['{"this": "is no job'], "the bytes that are no job are in quarantine"
    yield from killed(victim, killed_at)


def ordinary() -> Iterator[Line]:
    yield [line["sum"] for line in diary("done", name="jobs.add")] == [42], "the async job came to 42"
    tries = [line["attempt"] for line in diary("begun", name="jobs.flaky")]
    yield tries == [1, 2, 3], f"the flaky job was tried {len(tries)} times, and succeeded"
    delayed = next(line for line in diary("pushed") if "due" in line)
    late = diary("begun", id=delayed["id"])[0]["at"] - delayed["due"]
    yield 0 <= late < SOON, f"the delayed job began {ms(late)} after it was due"


def hung(failed: dict[str, dict[str, Any]]) -> Iterator[Line]:
    began, ended = diary("begun", name="jobs.hang")[0]["at"], diary("JobFailed", name="jobs.hang")[0]["at"]
    meanwhile = [line for line in diary("done") if began < line["at"] < ended]
    trace = told("failed", failed["jobs.hang"]["id"])["exception"]
    yield (
        0.9 < ended - began < 1 + SOON and "TimedOut" in trace and " in hang" in trace,
        f"the hanging job was ended and recorded {ms(ended - began - 1)} after its timeout, with the line it hung in",
    )
    yield bool(meanwhile), f"while it hung the others finished {len(meanwhile)} jobs"


def crashed(failed: dict[str, dict[str, Any]]) -> Iterator[Line]:
    began, ended = diary("begun", name="jobs.crash")[0]["at"], diary("JobFailed", name="jobs.crash")[0]["at"]
    trace = told("failed", failed["jobs.crash"]["id"])["exception"]
    yield (
        ended - began < SOON and "SIGSEGV" in trace and " in crash" in trace,
        f"the segfault cost one worker; the job was recorded {ms(ended - began)} after it began, with its line",
    )


def killed(victim: str, at: float) -> Iterator[Line]:
    first, second = diary("begun", id=victim)
    yield (
        first["at"] < at < second["at"] < at + SOON and first["pid"] != second["pid"],
        f"the killed worker's job began again {ms(second['at'] - at)} after the kill, in another process",
    )


def main() -> int:
    lines = list(verify(victim=sys.argv[1], killed_at=float(sys.argv[2])))
    for is_true, words in lines:
        sys.stdout.write(f"{'true ' if is_true else 'FALSE'}  {words}\n")
    return 0 if all(is_true for is_true, _ in lines) else 1


sys.exit(main())
