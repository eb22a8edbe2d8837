"""Faults of the network between two hosts with a pool each and the host of the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.chaos.rig import Rig

#: seconds in which a kernel has sent what its dead sockets had left to send, or has given up
_LAST_WORDS = 20.0


def _spells(rig: Rig, harm: Callable[[Any], None], lasts: tuple[float, float] = (0.5, 6.0)) -> Iterator[float]:
    """Harm one wire or both; heal them, then leave them alone until nothing old is under way any more."""
    wires = rig.store.wires
    while True:
        for wire in rig.chance.sample(wires, rig.chance.randint(1, len(wires))):
            harm(wire)
        try:
            yield rig.chance.uniform(*lasts)
        finally:
            _heal(rig)
        yield rig.chance.uniform(0.2, 1.5)


def _heal(rig: Rig) -> None:
    rig.store.heal_wires()
    end = time.monotonic() + _LAST_WORDS
    while rig.store.has_old_requests() and time.monotonic() < end:
        rig.rest(0.05)


def blackhole(rig: Rig) -> Iterator[float]:
    """Nothing gets through, and no error comes."""

    def harm(wire: Any) -> None:
        wire.to.loss = wire.back.loss = 1.0

    return _spells(rig, harm)


def flapping(rig: Rig) -> Iterator[float]:
    """A wire fails and returns again and again: what a worker sends on its return may be lost as well."""
    wires = rig.store.wires
    try:
        while True:
            for direction in rig.chance.choice(wires).directions:
                direction.loss = 1.0
            yield rig.chance.uniform(0.2, 3.2)
            rig.store.heal_wires()
            yield rig.chance.uniform(0.002, 0.3)
    finally:
        _heal(rig)


def dead_connections(rig: Rig) -> Iterator[float]:
    """Single connections fail for longer than their clients wait; what the kernel still has to send arrives late."""

    def harm(wire: Any) -> None:
        wire.flows.strikes = 0.2

    return _spells(rig, harm, (10.0, 20.0))


def one_way(rig: Rig) -> Iterator[float]:
    """Either requests or replies are lost, not both."""

    def harm(wire: Any) -> None:
        rig.chance.choice(wire.directions).loss = 1.0

    return _spells(rig, harm)


def packet_loss(rig: Rig) -> Iterator[float]:
    def harm(wire: Any) -> None:
        wire.to.loss = wire.back.loss = rig.chance.uniform(0.05, 0.7)

    return _spells(rig, harm)


def delay(rig: Rig) -> Iterator[float]:
    def harm(wire: Any) -> None:
        wire.to.delay = wire.back.delay = rig.chance.uniform(0.01, 0.5)

    return _spells(rig, harm)


def mtu_hole(rig: Rig) -> Iterator[float]:
    """Large packets are swallowed, small ones get through: all looks well until there is much to send."""

    def harm(wire: Any) -> None:
        for direction in wire.directions:
            direction.most = 400

    return _spells(rig, harm)


def reject(rig: Rig) -> Iterator[float]:
    """A firewall in between answers everything with a reset."""

    def harm(wire: Any) -> None:
        for direction in wire.directions:
            direction.rejects = True

    return _spells(rig, harm, (0.1, 2.0))


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "blackhole": (blackhole, 2),
    "flapping": (flapping, 2),
    "dead_connections": (dead_connections, 2),
    "one_way": (one_way, 2),
    "packet_loss": (packet_loss, 1),
    "delay": (delay, 1),
    "mtu_hole": (mtu_hole, 1),
    "reject": (reject, 1),
}
