"""A private server, a pool on it, and what can be read of both."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from tests.bench.records import whole
from tests.chaos.hosts import NAMED

ROOT = Path(__file__).parents[2]
_RECORD = struct.Struct("=ddq")
#: seconds that a push may take: thousands of rows at once, on a busy machine
PATIENCE = 60.0


class Rig:
    """One benchmark's world, in a directory of its own; its server is there already."""

    def __init__(self, path: Path, connection: ConnectionSettings, modules: str = "tests.bench.app") -> None:
        self.path = path
        self.modules = modules
        self.trail_file = path / "trail"
        self.connection = connection
        self.queue = Queue(connection)
        self.stores = Stores(connection, reply_timeout=60.0)
        self._pools: list[psutil.Process] = []

    @contextmanager
    def pool(self, workers: int, *more: str, program: Sequence[str] = ("queuepool",), host: str = "") -> Iterator[None]:
        """A started pool; its workers have imported their modules when this begins.

        ``host``: the name of a host of its own, on which it runs; that takes root.
        """
        place = () if "--runtime-dir" in more else ("--runtime-dir", str(self.path / "run"))
        flags = [*self.flags(), "--workers", str(workers), *place, "--quiet", *more]
        env = {**os.environ, "TRAIL": str(self.trail_file), "PYTHONPATH": str(ROOT)}
        there = [*NAMED, host] if host else []
        process = subprocess.Popen([*there, sys.executable, "-m", *program, "start", *flags], env=env, cwd=ROOT)
        self._pools.append(psutil.Process(process.pid))
        try:
            self.drain(200)
            yield
        finally:
            self._pools.pop()
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def flags(self) -> list[str]:
        """What leads a command here."""
        prefix = ["--prefix", self.connection.prefix] if self.connection.prefix else []
        return ["--url", self.connection.url, *prefix, "--modules", self.modules]

    def seconds_of_processor(self) -> float:
        """What the pool has used so far, all of its processes together."""
        return sum(sum(one.cpu_times()[:2]) for one in self.family())

    def memory(self) -> list[float]:
        """MB of each process of the pool, as ``family`` has them; a page that they share counts in parts."""
        return [one.memory_full_info().pss / 2**20 for one in self.family()]

    def family(self) -> list[psutil.Process]:
        """Master, steward, then the workers."""
        return [one for pool in self._pools for one in (pool, *sorted(pool.children(), key=_is_worker))]

    def drain(self, jobs: int) -> None:
        """Let the pool run so many no-ops: it is warm after that."""
        self.queue.bulk([("noop", {}) for _ in range(jobs)])
        until(lambda: self.queue.size() == 0)

    def trail(self) -> list[tuple[float, float, int]]:
        """(the payload's moment, when it began, pid) of every noted start."""
        return list(whole(_RECORD, self.trail_file.read_bytes())) if self.trail_file.exists() else []

    def begun(self) -> int:
        """How many starts were noted."""
        return self.trail_file.stat().st_size // _RECORD.size

    def forget(self) -> None:
        self.trail_file.touch()
        os.truncate(self.trail_file, 0)  # workers have it open, to append

    def calls(self) -> dict[str, int]:
        """Commands that the server has executed, by name; those of scripts count too."""
        text = self.stores.client.command("INFO", "commandstats")
        lines = text.items() if isinstance(text, dict) else ()
        return {name.removeprefix("cmdstat_"): int(stats["calls"]) for name, stats in lines}


@contextmanager
def redis_rig(*modules: str) -> Iterator[Rig]:
    """``modules``: more than the one with the timed jobs."""
    with tempfile.TemporaryDirectory(prefix="queuepool-bench-") as folder, redis_server(Path(folder)) as url:
        connection = ConnectionSettings(url=url, prefix="bench_", timeout=PATIENCE)
        yield Rig(Path(folder), connection, ",".join(("tests.bench.app", *modules)))


@contextmanager
def redis_server(path: Path, port: int = 0) -> Iterator[str]:
    """On a unix socket, and on this port if it is one."""
    binary = shutil.which("redis-server") or "/usr/bin/redis-check-rdb"
    options = ["--port", str(port), "--unixsocket", f"{path}/redis.sock", "--dir", str(path), "--save", ""]
    process = subprocess.Popen(["redis-server", *options], executable=binary, stdout=subprocess.DEVNULL)
    try:
        until(lambda: _hears(f"{path}/redis.sock"))
        yield f"unix://{path}/redis.sock"
    finally:
        process.kill()
        process.wait()


def _hears(address: str) -> bool:
    """Its file is there before anybody listens."""
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(address) == 0


def _is_worker(process: psutil.Process) -> bool:
    """By its title: a steward may have been forked after some of them."""
    return "worker" in " ".join(process.cmdline()[:1])


def until(condition: Callable[[], object], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within:g} s")
        time.sleep(0.0005)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
