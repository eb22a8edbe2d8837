"""What the master knows about its pool and its processes, packed so that one call moves it to or from the board."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple


class SlotFacts(NamedTuple):
    """Facts about a process: the first fields of its slot."""

    role: int
    number: int
    generation: int
    incarnation: int
    pid: int
    start_time: int
    dead: int
    status: int
    killed: int

    @classmethod
    def unpacked(cls, raw: bytes) -> SlotFacts:
        """The facts from their bytes on the board."""
        return cls(*_FACTS.unpack(raw))

    def packed(self) -> bytes:
        """The facts as bytes for the board."""
        return _FACTS.pack(*self)


class HeaderFacts(NamedTuple):
    """Facts about the pool: the first fields of the header."""

    magic: int
    capacity: int
    master_pid: int
    master_start_time: int
    state: int = 0
    target: int = 0
    done: int = 0
    failed: int = 0
    released: int = 0
    used: int = 0
    generation: int = 0
    since: float = 0.0

    @classmethod
    def unpacked(cls, raw: bytes) -> HeaderFacts:
        """The facts from their bytes on the board."""
        return cls(*_POOL_FACTS.unpack(raw))

    def packed(self) -> bytes:
        """The facts as bytes for the board."""
        return _POOL_FACTS.pack(*self)


class Totals(NamedTuple):
    """Jobs done, failed and released."""

    done: int = 0
    failed: int = 0
    released: int = 0

    def plus(self, other: Totals) -> Totals:
        """The sum of both."""
        return Totals(*map(sum, zip(self, other, strict=True)))


_FACTS = Struct("=9q")
_POOL_FACTS = Struct("=11qd")
FACTS_SIZE, POOL_FACTS_SIZE = _FACTS.size, _POOL_FACTS.size
