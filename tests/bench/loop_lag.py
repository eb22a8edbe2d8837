"""How late an event loop is while it pushes: ``python -m tests.bench.loop_lag [redis|sqlite|postgres|mariadb]``.

The lag is the time by which a sleep of a millisecond lasts longer. The first line, of an idle loop, is the machine's
own share in all others. ``call`` is the longest time of a processor that one of the loop's callbacks took, whatever
else the machine did; without what Python's collector took in it, whose longest run is ``gc``: it goes through all that
thousands of tasks hold.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.bench.words import say
from tests.support.databases import MariaDB, Postgres, running
from tests.support.redis_server import start_redis

JOBS = 5000
DATA = {"to": "a@b.c", "order": 1}
_SERVERS = {"postgres": Postgres, "mariadb": MariaDB}
_RUN = asyncio.Handle._run
Work = Callable[[Queue], Awaitable[object]]


async def idle(_queue: Queue) -> None:
    await asyncio.sleep(2)


async def two_hundred_producers(queue: Queue) -> None:
    async def produce() -> None:
        for _ in range(JOBS // 200):
            await queue.apush("app.jobs.send", DATA)

    await asyncio.gather(*(produce() for _ in range(200)))


async def one_after_the_other(queue: Queue) -> None:
    for _ in range(JOBS // 10):
        await queue.apush("app.jobs.send", DATA)


async def all_at_once(queue: Queue) -> None:
    """Begun by 20 at a time, as requests come; each is forgotten when it is done, as thousands together take long."""
    pushing: set[asyncio.Task[object]] = set()
    for number in range(JOBS):
        task: asyncio.Task[object] = asyncio.create_task(queue.apush("app.jobs.send", DATA))
        pushing.add(task)
        task.add_done_callback(pushing.discard)
        if number % 20 == 0:
            await asyncio.sleep(0)
    while pushing:
        await asyncio.sleep(0.001)


async def one_bulk(queue: Queue) -> None:
    await queue.abulk([("app.jobs.send", DATA)] * JOBS)


WORKS: dict[str, Work] = {
    "an idle loop": idle,
    "pushes one after the other": one_after_the_other,
    "5,000 by 200 producers": two_hundred_producers,
    "5,000 at once": all_at_once,
    "5,000 by one abulk": one_bulk,
}


@dataclass
class Longest:
    """Seconds of a processor: the longest callback of the loop, and the longest of Python's collections of garbage."""

    call: float = 0.0
    collection: float = 0.0
    _began: float = 0.0
    _collected: float = 0.0

    def run(self, handle: asyncio.Handle) -> None:
        began, before = time.thread_time(), self._collected
        _RUN(handle)
        self.call = max(self.call, time.thread_time() - began - (self._collected - before))

    def collects(self, phase: str, _about: object) -> None:
        if phase == "start":
            self._began = time.thread_time()
            return
        took = time.thread_time() - self._began
        self.collection, self._collected = max(self.collection, took), self._collected + took


@contextmanager
def longest_call() -> Iterator[Longest]:
    longest = Longest()
    asyncio.Handle._run = lambda handle: longest.run(handle)  # type: ignore[method-assign]
    gc.callbacks.append(longest.collects)
    try:
        yield longest
    finally:
        asyncio.Handle._run = _RUN  # type: ignore[method-assign]
        gc.callbacks.remove(longest.collects)


async def lags_of(work: Work, queue: Queue) -> tuple[list[float], float, float]:
    """The lags, the seconds that it took, and those of the loop's thread on a processor."""
    lags: list[float] = []
    watching = asyncio.create_task(_watch(lags))
    await asyncio.sleep(0.05)
    lags.clear()
    began, busy = time.perf_counter(), time.thread_time()
    await work(queue)
    took, busy = time.perf_counter() - began, time.thread_time() - busy
    watching.cancel()
    return sorted(lags), took, busy


async def _watch(lags: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        lags.append(time.perf_counter() - began - 0.001)


@contextmanager
def connected(store: str) -> Iterator[ConnectionSettings]:
    with tempfile.TemporaryDirectory() as folder:
        if store == "redis":
            server = start_redis(folder)
            yield ConnectionSettings(url=f"unix://{folder}/redis.sock")
            server.kill()
            server.wait()
        elif store == "sqlite":
            yield ConnectionSettings(url=f"sqlite:///{folder}/queue.db", embedded=True)
        else:
            with running(_SERVERS[store]) as database, database.database() as url:
                yield ConnectionSettings(url=url)


async def measure(queue: Queue) -> None:
    await asyncio.gather(*(queue.apush("warm") for _ in range(50)))
    gc.collect()
    gc.freeze()
    for name, work in WORKS.items():
        with longest_call() as longest:
            lags, took, busy = await lags_of(work, queue)
        median, most = lags[len(lags) // 2] * 1e3, lags[-1] * 1e3
        p99 = lags[int(len(lags) * 0.99)] * 1e3
        shown = f"p50 {median:6.2f}  p99 {p99:6.2f}  max {most:6.2f} ms"
        shown += f"  call {longest.call * 1e3:5.2f}  gc {longest.collection * 1e3:5.2f} ms"
        say(f"{name:28} {shown}  in {took:5.2f} s, busy {busy:5.2f} s")


def main() -> None:
    for store in sys.argv[1:] or ["redis", "sqlite", *_SERVERS]:
        say(store)
        with connected(store) as settings:
            if store != "redis":
                client = SqlClient(settings.url, create=True)
                migrate(client)
                client.close()
            queue = Queue(settings)
            asyncio.run(measure(queue))
            queue.close()


if __name__ == "__main__":
    main()
