"""The interface of the steward's chores."""

from __future__ import annotations

from typing import Protocol


class Chore(Protocol):
    """One periodic duty of the steward. If it raises ``StoreDown``, it is retried once the store is back."""

    def run(self, now: float) -> float:
        """Do what is due at ``now`` (monotonic seconds); returns the seconds until the next run."""
