"""The pushes: none fails while the store is well (I34). A run without jobs would prove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.windows import POOLS_ONLY, Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: seconds after whatever took the store away, until a producer must reach it again
_REACHES = 10.0


class Refused:
    """Of every push that was not acknowledged, whether something that harms more than pools explains it."""

    EVENTS = ("enq_unknown",)

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._refused: list[tuple[int, str]] = []

    def read(self, event: Event) -> None:
        self._refused.append((event["t"], f"{event['p']}.{event['lo']}: {event.get('why', '')}"))

    def rule(self) -> None:
        for moment, what in self._refused:
            since = moment - round(self._windows.slowed(_REACHES, moment, moment) * 1e9)
            if not self._windows.excuse(since, moment, POOLS_ONLY):
                self._findings.violated("I34 a push failed though the store was well", what)
