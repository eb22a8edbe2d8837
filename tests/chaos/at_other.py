"""Faults of the store of failed jobs and control keys, while the jobs' store is well."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.chaos.rig import Rig


def other_away(rig: Rig) -> Iterator[float]:
    """It is away for longer than any process waits for one call."""
    while True:
        with rig.other.away():
            rig.ledger.write("other", on=1)
            try:
                yield rig.chance.uniform(4.0, 8.0)
            finally:
                rig.ledger.write("other", on=0)
        yield rig.chance.uniform(1.0, 2.0)


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {"other_away": (other_away, 2)}
