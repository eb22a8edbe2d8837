"""What happens to a pool likewise on Redis, in a database and behind a pooler."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site


class Server(Protocol):
    """Of the store, or before it."""

    def kill(self) -> object: ...
    def start(self) -> object: ...


def finish_beside_a_stuck_job(site: Site) -> None:
    """Seven quick jobs and one that is stuck in C, which two workers hold ahead; then the pool is stopped at once."""
    site.push("hang_in_c")
    for number in range(7):
        site.push("ok", tag=str(number))
    with site.pool("--workers", "2", "--reserve-ahead", "8") as pool:
        eventually(lambda: 7 == len(site.trail(event="end")))
        eventually(lambda: 1 == site.queue.sizes().reserved)  # the last one's receipt may still be on its way
        pool.signal(signal.SIGQUIT)
        pool.wait()


@contextmanager
def outage(
    site: Site, server: Server, meanwhile: Callable[[RunningPool], object] = lambda _: None
) -> Iterator[RunningPool]:
    """A server is killed, and a running job ends before it is back; yields the pool once that job is settled.

    ``meanwhile`` is called between the job's end and the server's start.
    """
    gate = site.path / "gate"
    site.push("until", gate=str(gate))
    with site.pool("--workers", "2") as pool:
        eventually(lambda: site.trail(event="start"))
        before = set(pool.workers())
        server.kill()
        eventually(lambda: "store lost" in pool.log())
        gate.touch()
        eventually(lambda: site.trail(event="end"))
        meanwhile(pool)
        server.start()
        eventually(lambda: "store regained" in pool.log())
        eventually(lambda: 0 == site.queue.size())
        yield pool
        assert before == set(pool.workers())
