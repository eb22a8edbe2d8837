"""The death of its worker or host is no failure of a job: it does not use up the job's only try (I19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: the pools' own default: as many deaths fail a job, however they were found out
MAX_CRASHES = 3


class Deaths:
    """Every job here has one try or no limit, so what ends by a death has been begun as often as deaths are allowed."""

    EVENTS = ("fail",)

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def read(self, event: Event) -> None:
        if event.get("e") in ("WorkerDied", "TooManyAttempts") and event["a"] < MAX_CRASHES:
            self._findings.violated("I19 failed by a death", f"{event['id']}: {event['e']} at attempt {event['a']}")
