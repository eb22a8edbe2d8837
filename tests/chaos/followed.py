"""What is said of a tracked job agrees with what became of it (I22)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.steps import STREAM
from tests.chaos.tables import FINISHED, OK, Jobs

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

_OVER = ("done", "failed")


class Followed:
    """Of the steps, each of which is tracked; judged at the end."""

    EVENTS = ("stored", "state")

    def __init__(self, findings: Findings, jobs: Jobs) -> None:
        self._findings = findings
        self._jobs = jobs
        self._states: dict[str, str] = {}
        self._stored: dict[str, str] = {}

    def read(self, event: Event) -> None:
        if not event["id"].startswith(f"{STREAM}."):
            return
        if event["f"] == "state":
            self._findings.count(f"states: {event['is_now']}")
            # Who cancels a job lets it fail.
            self._states[event["id"]] = "failed" if event["is_now"] == "cancelled" else event["is_now"]
        else:
            self._stored[event["id"]] = event["where"]

    def rule(self) -> None:
        stream = self._jobs.stream(STREAM)
        for number in stream.numbers(OK):
            job = stream.id(number)
            where = self._stored.get(job, "")
            end = "failed" if where in ("failed", "pending") else "done" if stream.has(number, FINISHED) else ""
            self._rule(job, "" if where and end != "failed" else end, self._states.get(job, "none"))

    def _rule(self, job: str, end: str, state: str) -> None:
        """``end``: how it ended; empty if it is still to be done."""
        if state == "none":
            self._findings.violated("I22 no state", job)
        elif end and state not in _OVER:
            self._findings.violated("I22 a job that is over counts as not over", f"{job}: {end}, and not {state}")
        elif state in _OVER and state != end:
            self._findings.violated("I22 a job counts as over that is not, or not so", f"{job}: {end}, and not {state}")
