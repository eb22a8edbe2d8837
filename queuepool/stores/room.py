"""Whether a store has room for anything new. A full Redis still moves and ends jobs, so only a question tells it."""

from __future__ import annotations

from typing import Protocol


class Room(Protocol):
    """Asks one store."""

    def ask(self) -> None:
        """Raises ``StoreFull`` if it has none, and ``StoreDown``; writes nothing."""


class ToldByWrites:
    """A database's: when it is full, whatever writes raises ``StoreFull``, so there is nothing to ask."""

    def ask(self) -> None:
        return
