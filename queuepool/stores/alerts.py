"""Which of several pools sends the notice of an alert: the one that has a key in the store, which ends by itself."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Claim(Enum):
    """Whose the key is after an attempt to take it."""

    #: ours since now
    TAKEN = "taken"
    #: ours since before
    OURS = "ours"
    OTHERS = "others"


class AlertKeys(Protocol):
    """The keys of one store, by alert. Each verb may raise ``StoreDown`` and ``StoreError``, and may be repeated."""

    def claim(self, alert: str, owner: str, seconds: float) -> Claim:
        """Take the key for ``seconds``, unless somebody has it."""

    def release(self, alert: str, owner: str) -> bool:
        """Remove the key if this owner has it; ``False`` if it has not, or its time is over."""
