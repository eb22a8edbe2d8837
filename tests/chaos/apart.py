"""While only the store of failed jobs and control keys is away, good jobs go on (I17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: nanoseconds without any start, while jobs are pushed all the time
_LONGEST = 2_500_000_000


class Apart:
    """Of the time in which the other store is away, the longest without a start of a job that does not need it."""

    EVENTS = ("other", "start")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._since = 0
        self._longest = 0

    def read(self, event: Event) -> None:
        if event["f"] == "start" and event["id"].startswith("r."):
            return
        if self._since:
            self._longest = max(self._longest, event["t"] - self._since)
            self._since = event["t"]
        if event["f"] == "other":
            self._turn(event)

    def _turn(self, event: Event) -> None:
        if not event["on"] and self._longest > _LONGEST:
            self._findings.violated("I17 held up by the other store", f"no start for {self._longest / 1e9:.1f} s")
        self._since, self._longest = event["t"] if event["on"] else 0, 0
