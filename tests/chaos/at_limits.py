"""Operators who set the numbers of limits while jobs run, and put parked jobs back into their queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError
from queuepool.stores.factory import Stores
from tests.chaos.limited import LIMITS, QUEUE
from tests.chaos.rig import Rig


def set_limits(rig: Rig) -> Iterator[float]:
    """Any number, and none at all; in the end they are as code says."""
    with closing(Stores(ConnectionSettings(url=rig.store.url, prefix=rig.prefix))) as stores:
        try:
            while True:
                name = rig.chance.choice(sorted(LIMITS))
                _set(rig, stores, name, rig.chance.randint(-1, LIMITS[name][0] + 1))
                if rig.chance.random() < 0.2:
                    with suppress(StoreError):
                        stores.limits.unpark(QUEUE)
                yield rig.chance.uniform(0.05, 0.5)
        finally:
            for name in LIMITS:
                _set(rig, stores, name, -1)


def _set(rig: Rig, stores: Stores, name: str, number: int) -> None:
    """As the command does. Without an answer, nobody knows which number is in force."""
    rig.ledger.write("limit", name=name, n=number, on=1)
    with suppress(StoreError):
        if stores.limits.set(name, None if number < 0 else number):
            stores.limits.sweep(name)
        rig.ledger.write("limit", name=name, n=number, on=0)


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {"set_limits": (set_limits, 2)}
