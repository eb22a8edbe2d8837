"""Nothing that an earlier async job left on the worker's loop harms the next one (I18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.async_modes import INNOCENT
from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings


class Innocents:
    """A job's own worker reports what it raised; the steward reports jobs of killed workers."""

    EVENTS = ("start", "release", "fail", "ghost")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._begun: set[tuple[str, int]] = set()

    def read(self, event: Event) -> None:
        if event["f"] == "ghost":
            self._findings.violated("I18 a task outlived its job", event["id"])
        elif event["f"] == "start":
            if event.get("m") == INNOCENT:
                self._begun.add((event["id"], event["pid"]))
        elif event.get("e") != "Cancelled" and (event["id"], event["pid"]) in self._begun:
            self._findings.violated("I18 an innocent job was harmed", event["id"])
