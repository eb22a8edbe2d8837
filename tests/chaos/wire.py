"""A cable between two hosts, in user space: packets go from one TUN device to the other, unless a fault hits them."""

from __future__ import annotations

import os
import random
import select
import threading
import time
from collections import Counter, deque
from contextlib import suppress

from tests.chaos.packets import flow_of, reset_for

_MTU = 65535
#: a connection's first packets with data, either way, which log in
_OPENING = 8
#: seconds between checks whether it is over
_MOMENT = 0.2


class Flows:
    """Connections that go dead one by one, as when one of several paths breaks, without effect on the others."""

    def __init__(self, store: int) -> None:
        self._store = store
        self._chance = random.Random(0)
        self._said: Counter[int] = Counter()
        self._dead: dict[int, float] = {}
        self.heal()

    def heal(self) -> None:
        #: the share of packets with data that go dead with their connection, and for how many seconds
        self.strikes, self.lasts = 0.0, (3.2, 6.0)

    def swallow(self, packet: bytes) -> bool:
        if not self.strikes:
            return False
        port, has_data = flow_of(packet, self._store)
        if port and has_data and port not in self._dead:
            self._said[port] += 1
            if self._said[port] > _OPENING and self._chance.random() < self.strikes:
                self._dead[port] = time.monotonic() + self._chance.uniform(*self.lasts)
        return time.monotonic() < self._dead.get(port, 0.0)


class Direction:
    """One of a wire's two directions; the kernels at its ends treat losses and delays as they always do."""

    def __init__(self, source: int, target: int, flows: Flows) -> None:
        self._flows = flows
        self._source = source
        self._target = target
        self._chance = random.Random(0)
        self._under_way: deque[tuple[float, bytes]] = deque()
        self.heal()

    def heal(self) -> None:
        #: the share of packets that are lost; seconds that each takes; bytes beyond which one is swallowed; whether
        #: a firewall in between refuses all connections
        self.loss, self.delay, self.most, self.rejects = 0.0, 0.0, _MTU, False

    def run(self) -> None:
        with suppress(OSError, ValueError):  # the wire is cut for good
            while True:
                wait = self._under_way[0][0] - time.monotonic() if self._under_way else _MOMENT
                if select.select([self._source], [], [], max(wait, 0.0))[0]:
                    self._take(os.read(self._source, _MTU))
                self._deliver()

    def _take(self, packet: bytes) -> None:
        if self.rejects:
            if answer := reset_for(packet):
                os.write(self._source, answer)
        elif len(packet) <= self.most and not self._flows.swallow(packet) and self._chance.random() >= self.loss:
            self._under_way.append((time.monotonic() + self.delay, packet))

    def _deliver(self) -> None:
        while self._under_way and self._under_way[0][0] <= time.monotonic():
            with suppress(OSError):  # refused by a device that is not up
                os.write(self._target, self._under_way.popleft()[1])


class Wire:
    """``to`` the store, which listens on ``port``, and ``back``; the ends are descriptors of TUN devices."""

    def __init__(self, near: int, far: int, port: int) -> None:
        self._ends = near, far
        self.flows = Flows(port)
        self.to, self.back = Direction(near, far, self.flows), Direction(far, near, self.flows)
        for direction in self.directions:
            threading.Thread(target=direction.run, daemon=True).start()

    @property
    def directions(self) -> tuple[Direction, Direction]:
        return self.to, self.back

    def heal(self) -> None:
        self.flows.heal()
        for direction in self.directions:
            direction.heal()

    def remove(self) -> None:
        for end in self._ends:
            os.close(end)
