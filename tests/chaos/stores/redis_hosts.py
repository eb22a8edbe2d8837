"""Redis on a host of its own and each pool on another, over TCP; where that is not allowed, behind proxies."""

from __future__ import annotations

from pathlib import Path

from tests.chaos import at_network, at_redis, at_wires
from tests.chaos.hosts import Host
from tests.chaos.stores.base import Nemeses, Place
from tests.chaos.stores.redis import RedisStore
from tests.chaos.wire import Wire

_PORT = 6379


class RedisOnAHost(RedisStore):
    """Each of the two pools' hosts has a wire to that of the store; the harness itself comes by the unix socket."""

    nemeses: Nemeses = {**at_redis.NEMESES, **at_wires.NEMESES}

    def __init__(self, folder: Path, password: str) -> None:
        super().__init__(folder, password)
        self._password = password
        self._store, self._hosts = Host(), [Host(), Host()]
        self.server.preface = self._store.preface
        self.server.options = ["--port", str(_PORT), "--bind", "0.0.0.0"]
        self.wires = [self._wire(number, host) for number, host in enumerate(self._hosts)]

    def places(self) -> list[Place]:
        return [
            (f"redis://:{self._password}@{_address(number, 1)}:{_PORT}", host.preface)
            for number, host in enumerate(self._hosts)
        ]

    def heal_wires(self) -> None:
        for wire in self.wires:
            wire.heal()

    def has_old_requests(self) -> bool:
        return any(host.has_something_to_say() for host in self._hosts)

    def heal(self) -> None:
        self.heal_wires()
        super().heal()

    def end(self) -> None:
        super().end()
        for wire in self.wires:
            wire.remove()
        for host in (self._store, *self._hosts):
            host.close()

    def pids(self) -> set[int]:
        return super().pids() | {host.pid for host in (self._store, *self._hosts)}

    def _wire(self, number: int, host: Host) -> Wire:
        ours, theirs = _address(number, 2), _address(number, 1)
        return Wire(host.attach("store", ours, theirs), self._store.attach(f"pool{number}", theirs, ours), _PORT)


class RedisBehindProxies(RedisStore):
    """Both pools go the bad way."""

    nemeses: Nemeses = {**at_redis.NEMESES, **at_network.NEMESES}

    def places(self) -> list[Place]:
        return [(self.far, []), (self.far, [])]


def _address(number: int, end: int) -> str:
    return f"10.77.{number}.{end}"
