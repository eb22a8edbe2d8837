"""Redis with AOF, on a unix socket; the far pool is behind a proxy."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from queuepool.stores.redis.wire import Keys
from tests.chaos import at_network, at_redis
from tests.chaos.proxy import Proxy
from tests.chaos.server import Server
from tests.chaos.steps import OUTCOMES
from tests.chaos.steps import QUEUE as STEPS
from tests.chaos.stores.base import Nemeses, Place
from tests.chaos.world import PREFIX, QUEUES, WIDE

#: what an idle pool sends
_SENT = {
    "evalsha", "eval", "blpop", "subscribe", "mget", "get", "set", "hset", "setex", "incr", "auth", "client|setname",
}  # fmt: skip
_USUAL = (
    ("REPLICAOF", "NO", "ONE"),
    ("CONFIG", "SET", "maxmemory", "0"),
    ("CLIENT", "UNPAUSE"),
    ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ("DEL", f"{PREFIX}queues:side"),
)


class RedisStore:
    nemeses: Nemeses = {**at_redis.NEMESES, **at_network.NEMESES}
    prefix, counts_after = PREFIX, 0.2

    def __init__(self, folder: Path, password: str) -> None:
        self.server = Server(folder, password)
        self.proxy = Proxy(self.server.socket, folder / "proxy.sock")
        self.url = self.server.url
        self.far = f"unix://:{password}@{self.proxy.path}"

    def start(self) -> None:
        self.server.folder.mkdir(exist_ok=True)
        self.server.start()
        self.proxy.start()

    def wait_until_ready(self) -> None:
        self.server.wait_until_ready()

    @contextmanager
    def away(self) -> Iterator[None]:
        self.server.kill()
        try:
            yield
        finally:
            self.server.start()

    def heal(self) -> None:
        self.server.signal(signal.SIGCONT)
        self.server.wait_until_ready()
        self.proxy.heal()
        for words in _USUAL:
            self.server.say(*words)

    def end(self) -> None:
        self.proxy.stop()
        self.server.kill()
        self.server.client.close()

    def pids(self) -> set[int]:
        return {self.server.process.pid} if self.server.process else set()

    def laravel(self) -> dict[str, str]:
        return {"QP_SOCKET": self.server.socket, "QP_PASSWORD": self.server.password, "QP_PREFIX": PREFIX}

    def places(self) -> list[Place]:
        return [(self.url, []), (self.far, [])]

    def left(self) -> int:
        client: Any = self.server.client
        keys = [(f"{PREFIX}queues:{queue}", Keys(PREFIX).parked(queue)) for queue in (*QUEUES, WIDE)]
        pending = int(client.zcard(Keys(PREFIX).pending_times))  # failures on their way to another store
        return pending + sum(
            client.llen(key) + client.zcard(f"{key}:delayed") + client.zcard(f"{key}:reserved") + client.hlen(parked)
            for key, parked in keys
        )

    def stored(self) -> Iterator[tuple[str, bytes]]:
        client: Any = self.server.client
        for raw in client.hvals(f"{PREFIX}queuepool:failed"):
            record = json.loads(raw)
            yield "failed" if record["exception"] else "failed without a reason", record["payload"].encode()
        for raw in client.hvals(Keys(PREFIX).pending):
            yield "pending", json.loads(raw)["payload"].encode()
        for queue in (*QUEUES, WIDE):
            yield from self._queued(queue)
            for raw in client.lrange(f"{PREFIX}queuepool:quarantine:{queue}", 0, -1):
                yield "quarantine", raw

    def at_once(self) -> Iterator[list[bytes]]:
        """Over all of a queue's keys; ``side`` may be of another type just now."""
        for queue in ("high", "limited", "default", WIDE):
            yield [raw for _, raw in self._queued(queue)]

    def outcomes(self) -> list[bytes]:
        client: Any = self.server.client
        return list(client.lrange(f"{PREFIX}queues:{OUTCOMES}", 0, -1))

    def states(self) -> Iterator[tuple[str, bytes]]:
        client: Any = self.server.client
        for key in client.keys(f"{PREFIX}queuepool:job:*"):
            yield key.decode().rpartition(":")[2], client.get(key)

    def steps_and_locks(self) -> tuple[list[bytes], list[str]]:
        with self.server.client.pipeline(transaction=True) as all_at_once:
            _queue_rows(all_at_once, STEPS)
            all_at_once.keys("*laravel_unique_job:*")
            *rows, locks = all_at_once.execute()
        return [raw for some in rows for raw in some], [name.decode() for name in locks]

    def clients(self) -> int:
        return len(self.server.client.client_list())

    def commands(self, pids: Iterable[int]) -> int:
        """Those of scripts aside."""
        stats: Any = self.server.client.info("commandstats")
        return sum(int(facts["calls"]) for name, facts in stats.items() if name.removeprefix("cmdstat_") in _SENT)

    def needed(self, workers: int) -> float:
        """A worker waits a second and asks once; a steward has a few things to look at."""
        return 4 + 2 * workers

    def _queued(self, queue: str) -> Iterator[tuple[str, bytes]]:
        client: Any = self.server.client
        with client.pipeline(transaction=True) as all_at_once:
            _queue_rows(all_at_once, queue)
            for where, rows in zip(("ready", "delayed", "reserved", "parked"), all_at_once.execute(), strict=True):
                yield from ((where, raw) for raw in rows)


def _queue_rows(pipeline: Any, queue: str) -> None:
    key = f"{PREFIX}queues:{queue}"
    pipeline.lrange(key, 0, -1)
    pipeline.zrange(f"{key}:delayed", 0, -1)
    pipeline.zrange(f"{key}:reserved", 0, -1)
    pipeline.hvals(Keys(PREFIX).parked(queue))
