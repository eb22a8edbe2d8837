"""Faults of Redis."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

from tests.chaos.intermittent import absences, intermittently
from tests.chaos.rig import Rig
from tests.chaos.world import PREFIX


def kill_redis(rig: Rig) -> Iterator[float]:
    """Kill it with kill -9, and start it again after a while."""
    return absences(rig, rig.store.server.kill, rig.store.server.start, (0.1, 2.0), (0.5, 2.0))


def load_slowly(rig: Rig) -> Iterator[float]:
    """Restart it so that it answers -LOADING for a while."""
    rig.store.server.kill()
    rig.store.server.start("--key-load-delay", "-200", wait=False)
    yield 1.0
    rig.store.server.wait_until_ready()
    rig.store.server.say("CONFIG", "SET", "key-load-delay", "0")
    yield 10.0


def stop_redis(rig: Rig) -> Iterator[float]:
    return absences(
        rig,
        lambda: rig.store.server.signal(signal.SIGSTOP),
        lambda: rig.store.server.signal(signal.SIGCONT),
        (0.2, 4.0),
        (0.2, 1.0),
    )


def cut_connections(rig: Rig) -> Iterator[float]:
    while True:
        rig.store.server.say("CLIENT", "KILL", "TYPE", "normal")
        rig.store.server.say("CLIENT", "KILL", "TYPE", "pubsub")
        yield rig.chance.uniform(0.05, 0.3)


def _said(rig: Rig, bad: tuple[str, ...], good: tuple[str, ...]) -> Iterator[float]:
    """One command to the server, and after a while the other."""
    say = rig.store.server.say
    return intermittently(rig, lambda: say(*bad), lambda: say(*good), (0.2, 1.5), (0.2, 1.0))


def readonly(rig: Rig) -> Iterator[float]:
    """A replica of a host that is not there."""
    return _said(rig, ("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"))


def out_of_memory(rig: Rig) -> Iterator[float]:
    return _said(rig, ("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"))


def pause_writes(rig: Rig) -> Iterator[float]:
    """As a failover does."""
    while True:
        rig.store.server.say("CLIENT", "PAUSE", rig.chance.randint(100, 900), "WRITE")
        yield rig.chance.uniform(1.0, 1.5)


def too_few_replicas(rig: Rig) -> Iterator[float]:
    """-NOREPLICAS for every write."""
    return _said(rig, ("CONFIG", "SET", "min-replicas-to-write", "1"), ("CONFIG", "SET", "min-replicas-to-write", "0"))


def broadcast_restarts(rig: Rig) -> Iterator[float]:
    """As `queue:restart` does, again and again."""
    while True:
        rig.store.server.say("SET", "illuminate:queue:restart", rig.chance.randint(1, 10**9))
        yield rig.chance.uniform(0.3, 2.0)


def forget_scripts(rig: Rig) -> Iterator[float]:
    while True:
        rig.store.server.say("SCRIPT", "FLUSH")
        yield 0.05


def wrong_type(rig: Rig) -> Iterator[float]:
    """On a queue beside, which the pools serve too."""
    while True:
        rig.store.server.say("SET", f"{PREFIX}queues:side", "no list")
        try:
            yield rig.chance.uniform(0.3, 1.5)
        finally:
            rig.store.server.say("DEL", f"{PREFIX}queues:side")
        yield 0.2


def tags_repeat(rig: Rig) -> Iterator[float]:
    """The server forgets which tags the living have, as after a failover to a replica that lags."""
    while True:
        rig.store.server.say("ZREMRANGEBYSCORE", f"{PREFIX}queuepool:tags", 0, "+inf")
        yield rig.chance.uniform(0.2, 0.5)


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "kill_redis": (kill_redis, 1),
    "load_slowly": (load_slowly, 1),
    "stop_redis": (stop_redis, 1),
    "cut_connections": (cut_connections, 1),
    "readonly": (readonly, 1),
    "out_of_memory": (out_of_memory, 1),
    "pause_writes": (pause_writes, 1),
    "too_few_replicas": (too_few_replicas, 1),
    "broadcast_restarts": (broadcast_restarts, 1),
    "forget_scripts": (forget_scripts, 1),
    "wrong_type": (wrong_type, 1),
    "tags_repeat": (tags_repeat, 1),
}
