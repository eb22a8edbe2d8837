"""Faults that end after a while and begin again after a pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.chaos.rig import Rig

#: seconds: at least, at most
Range = tuple[float, float]


def intermittently(
    rig: Rig, begin: Callable[[], object], end: Callable[[], object], lasts: Range, rests: Range
) -> Iterator[float]:
    """Call ``begin`` and ``end`` in turn; ``end`` in any case."""
    while True:
        begin()
        try:
            yield rig.chance.uniform(*lasts)
        finally:
            end()
        yield rig.chance.uniform(*rests)


def absences(
    rig: Rig, leave: Callable[[], object], come: Callable[[], object], lasts: Range, rests: Range
) -> Iterator[float]:
    """As ``intermittently``, without the store; the ledger shows when it answers again."""

    def come_back() -> None:
        come()
        rig.ledger.write("back")

    return intermittently(rig, leave, come_back, lasts, rests)
