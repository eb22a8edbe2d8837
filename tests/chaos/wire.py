"""A cable between two hosts, in user space: packets go from one TUN device to the other, unless they are harmed."""

from __future__ import annotations

import os
import random
import select
import threading
import time
from collections import deque
from contextlib import suppress

from tests.chaos.packets import reset_for

_MTU = 65535
#: seconds between two looks whether it is over
_MOMENT = 0.2


class Direction:
    """One of a wire's two; the kernels at its ends do with losses and delays what they always do."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._chance = random.Random(0)
        self._under_way: deque[tuple[float, bytes]] = deque()
        self.heal()

    def heal(self) -> None:
        #: the share of packets that are lost; seconds that each takes; bytes beyond which one is swallowed; whether
        #: somebody in between refuses all connections
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
        elif len(packet) <= self.most and self._chance.random() >= self.loss:
            self._under_way.append((time.monotonic() + self.delay, packet))

    def _deliver(self) -> None:
        while self._under_way and self._under_way[0][0] <= time.monotonic():
            with suppress(OSError):  # refused by a device that is not up
                os.write(self._target, self._under_way.popleft()[1])


class Wire:
    """``to`` the store and ``back``; the ends are descriptors of TUN devices."""

    def __init__(self, near: int, far: int) -> None:
        self._ends = near, far
        self.to, self.back = Direction(near, far), Direction(far, near)
        for direction in self.directions:
            threading.Thread(target=direction.run, daemon=True).start()

    @property
    def directions(self) -> tuple[Direction, Direction]:
        return self.to, self.back

    def heal(self) -> None:
        for direction in self.directions:
            direction.heal()

    def remove(self) -> None:
        for end in self._ends:
            os.close(end)
