"""The servers, and on them the workers of whatever queue is measured."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import redis

from tests.bench.peers.asides import Asides
from tests.bench.peers.peer import Peer
from tests.bench.peers.trail import Trail
from tests.bench.rig import ROOT, redis_server, until
from tests.support.databases import DatabaseServer, Postgres, running

#: seconds that killed processes take to be gone
_GRACE = 5.0


#: a queue's name, its job, its workers, the seconds to the server
About = tuple[str, str, int, float]
#: of PostgreSQL: where each queue there keeps its jobs
_TABLES = ["jobs", "procrastinate_jobs", "oban_jobs", "pgqueuer"]
_EMPTIED = f"""
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE tablename = ANY(ARRAY{_TABLES}) LOOP
            EXECUTE format('TRUNCATE %I CASCADE', name);
        END LOOP;
    END $$"""


class Way(NamedTuple):
    """How a process reaches the server."""

    port: int
    socket: str

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


class Stage:
    """For one queue at a time."""

    def __init__(self, path: Path, near: Way, database: DatabaseServer | None = None) -> None:
        self.path = path
        self.near = near
        self.database = database
        self.trail = Trail(path / "trail")
        self.asides = Asides()
        #: jobs a second that were drained
        self.rates: defaultdict[About, list[float]] = defaultdict(list)
        #: by queue, job and what: what drains took whose rate alone has been told
        self.spent: defaultdict[tuple[str, str, str], deque[float]] = defaultdict(deque)
        self.server = redis.Redis.from_url(near.url)

    def clear(self) -> None:
        """Nothing is left of the run before, whose workers were killed."""
        self.server.flushall()
        if self.database:
            self.database.execute(self.database.url, _EMPTIED)
        self.trail.forget()
        shutil.rmtree(self.path / "run", ignore_errors=True)

    def ping(self, delay: float) -> float:
        """Milliseconds of the median round trip to a server that far away."""
        with self.way(delay) as way, redis.Redis.from_url(way.url) as client:
            return 1000 * statistics.median(_seconds(client.ping) for _ in range(100))

    @contextmanager
    def workers(self, peer: Peer, count: int, delay: float = 0.0) -> Iterator[list[psutil.Process]]:
        """Started, but perhaps not ready yet; the server answers them ``delay`` seconds later. Killed at the end."""
        with ExitStack() as stack:
            way = stack.enter_context(self.way(delay))
            env = {**os.environ, **environment(way, self.path), "TMPDIR": str(self.path)}
            started = list[psutil.Process]()
            stack.callback(_end, started)
            with (self.path / "log").open("ab") as log:
                for words in peer.commands(count):
                    command = [word.replace("$BENCH_URL", way.url) for word in words]
                    started.append(psutil.Popen(command, env=env, cwd=ROOT, stdout=log, stderr=log))
            yield started

    @contextmanager
    def way(self, delay: float) -> Iterator[Way]:
        """To the server, as if each of its replies took so many seconds longer."""
        if not delay:
            yield self.near
            return
        way = Way(free_port(), f"{self.path}/far.sock")
        words = ["tests.bench.peers.far", self.near.socket, str(way.port), way.socket, str(delay)]
        process = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT)
        try:
            until(Path(way.socket).exists)
            yield way
        finally:
            process.kill()
            process.wait()
            Path(way.socket).unlink()


@contextmanager
def stage(*, has_postgres: bool = False) -> Iterator[Stage]:
    """With the environment that the queues' modules are imported in."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="queuepool-peers-"))
        way = Way(free_port(), f"{folder}/redis.sock")
        os.environ |= environment(way, Path(folder))
        stack.enter_context(redis_server(Path(folder), way.port))
        database = stack.enter_context(running(Postgres, durable=True)) if has_postgres else None
        os.environ["BENCH_POSTGRES"] = database.url if database else ""
        yield Stage(Path(folder), way, database)


def environment(way: Way, path: Path) -> dict[str, str]:
    return {
        "BENCH_URL": way.url,
        "BENCH_TRAIL": str(path / "trail"),
        "BENCH_RUNTIME": str(path / "run"),
        "QP_SOCKET": way.socket,
        "QP_OUT": str(path / "out"),
    }


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def family(started: list[psutil.Process]) -> list[psutil.Process]:
    return [one for process in started for one in (process, *process.children(recursive=True))]


def _end(started: list[psutil.Process]) -> None:
    """At once: nothing is measured after it, and an orderly end of each run would take most of the time."""
    running = [process for process in started if process.is_running()]
    for process in running:
        process.suspend()  # it could fork while we count
    everybody = family(running)
    for process in everybody:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(everybody, _GRACE)
