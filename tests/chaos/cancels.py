"""Only the attempt that was meant is cancelled (I33)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings


class Cancels:
    """A job fails as cancelled after its own order alone: one that was hit in its place goes back."""

    EVENTS = ("cancel", "fail")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._ordered: set[tuple[str, int]] = set()

    def read(self, event: Event) -> None:
        attempt = event["id"], event["a"]
        if event["f"] == "cancel":
            self._findings.count("orders to cancel")
            self._ordered.add(attempt)
        elif event.get("e") == "Cancelled":
            self._findings.count("cancelled")
            if attempt not in self._ordered:
                words = f"{event['id']}: attempt {event['a']}, which nobody has cancelled"
                self._findings.violated("I33 another one cancelled", words)
