"""Faults of any database with Laravel's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.chaos.rig import Rig


def broadcast_restarts(rig: Rig) -> Iterator[float]:
    """As `queue:restart` does, again and again."""
    while True:
        rig.store.tables.stamp(rig.chance.randint(1, 10**9))
        yield rig.chance.uniform(0.3, 2.0)


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "broadcast_restarts": (broadcast_restarts, 1),
}
