"""What every chore is."""

from __future__ import annotations

from typing import Protocol


class Chore(Protocol):
    """One periodic duty of the steward. Raises ``StoreDown``; it is then tried again when the store is back."""

    def run(self, now: float) -> float:
        """Do what is due at ``now`` (monotonic); gives the seconds until it wants to run again."""
