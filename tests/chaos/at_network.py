"""Faults of the network to the store; they hit only the pool behind the proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.chaos.rig import Rig


def lose_replies(rig: Rig) -> Iterator[float]:
    """Of the pool behind the proxy: the server has acted, the pool does not know."""
    rig.store.proxy.drop = 0.05
    try:
        while True:
            yield 1.0
    finally:
        rig.store.proxy.heal()


def slow_network(rig: Rig) -> Iterator[float]:
    rig.store.proxy.delay = 0.1
    try:
        while True:
            yield 1.0
    finally:
        rig.store.proxy.heal()


def silent_network(rig: Rig) -> Iterator[float]:
    """Nothing gets through and no error comes; then all connections are cut."""
    while True:
        rig.store.proxy.silent = True
        try:
            yield rig.chance.uniform(0.5, 3.0)
        finally:
            rig.store.proxy.cut()
            rig.store.proxy.heal()
        yield 0.5


def cut_network(rig: Rig) -> Iterator[float]:
    while True:
        rig.store.proxy.cut()
        yield rig.chance.uniform(0.02, 0.3)


def late_requests(rig: Rig) -> Iterator[float]:
    """A connection goes silent. After its client has given up and sent again, the first request arrives after all."""
    proxy = rig.store.proxy
    proxy.strikes = 0.35
    try:
        while True:
            yield 1.0
    finally:
        proxy.heal()
        while proxy.on_its_way:
            rig.rest(0.05)


def late_outages(rig: Rig) -> Iterator[float]:
    """As ``silent_network``, but nothing is cut: whatever was sent meanwhile arrives some time after its end."""
    proxy = rig.store.proxy
    while True:
        proxy.silent = True
        try:
            yield rig.chance.uniform(2.2, 4.0)
        finally:
            proxy.silent = False
            while proxy.on_its_way:
                rig.rest(0.05)
        yield 0.2


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "lose_replies": (lose_replies, 1),
    "slow_network": (slow_network, 1),
    "silent_network": (silent_network, 1),
    "cut_network": (cut_network, 1),
    "late_requests": (late_requests, 1),
    "late_outages": (late_outages, 1),
}
