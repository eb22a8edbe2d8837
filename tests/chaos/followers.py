"""What follows the end of a job: Laravel learns of it once, and its unique lock lasts as long as the job (I20, I21)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.steps import STREAM
from tests.chaos.tables import FINISHED, Jobs

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

_LOCKS = {"locked": "I21 lock held by a job that is over", "unlocked": "I21 lock released before its job was over"}


class Followers:
    """Of the steps, each of which belongs to a batch: so Laravel is to learn how it ended, however that was."""

    EVENTS = ("stored", "outcome", *_LOCKS)

    def __init__(self, findings: Findings, jobs: Jobs) -> None:
        self._findings = findings
        self._jobs = jobs
        self._outcomes: dict[str, list[str]] = defaultdict(list)
        self._stored: dict[str, str] = {}
        #: what was seen of locks, and of which jobs
        self._locks: set[tuple[str, str]] = set()

    def read(self, event: Event) -> None:
        match event["f"]:
            case "stored":
                if event["id"].startswith(f"{STREAM}."):
                    self._stored[event["id"]] = event["where"]
            case "outcome":
                self._findings.count("outcomes")
                self._outcomes[event["id"]].append(event["how"])
            case what:
                self._locks.add((what, event["id"]))

    def rule(self) -> None:
        for what, job in sorted(self._locks):
            if what == "unlocked" or self._stored.get(job) != "quarantine":  # from there it may be tried again
                self._findings.violated(_LOCKS[what], job)
        stream = self._jobs.stream(STREAM)
        ended = {stream.id(number): "succeeded" for number in stream.numbers(FINISHED)}
        for job, where in self._stored.items():
            ended[job] = "lost" if where in ("failed", "pending") else ""
        for job in sorted(ended.keys() | self._outcomes.keys()):
            self._rule(job, ended.get(job, ""), self._outcomes.get(job, []))

    def _rule(self, job: str, end: str, outcomes: list[str]) -> None:
        """``end``: how it ended; empty if it is still to be done, or was never pushed."""
        if len(outcomes) > 1:
            self._findings.violated("I20 more than one outcome", f"{job}: {', '.join(outcomes)}")
        elif end and not outcomes:
            self._findings.violated("I20 no outcome", f"{job}: {end}")
        elif outcomes and outcomes != [end]:
            self._findings.violated("I20 wrong outcome", f"{job}: {outcomes[0]}, and not {end or 'over'}")
