"""A private server, a pool on it, and what can be read of both."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from queuepool.build import Stores
from queuepool.client import Queue
from queuepool.settings import ConnectionSettings

ROOT = Path(__file__).parents[2]
_RECORD = struct.Struct("=ddq")


class Rig:
    """One benchmark's world, in a directory of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trail_file = path / "trail"
        self.connection = ConnectionSettings(url=f"unix://{path}/redis.sock", prefix="bench_")

    @contextmanager
    def server(self) -> Iterator[None]:
        binary = shutil.which("redis-server") or "/usr/bin/redis-check-rdb"
        options = ["--port", "0", "--unixsocket", f"{self.path}/redis.sock", "--dir", str(self.path), "--save", ""]
        process = subprocess.Popen(["redis-server", *options], executable=binary, stdout=subprocess.DEVNULL)
        try:
            until(lambda: (self.path / "redis.sock").exists())
            self.queue = Queue(self.connection)
            self.stores = Stores(self.connection)
            yield
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def pool(self, workers: int) -> Iterator[None]:
        """A started pool; its workers have imported their modules when this begins."""
        flags = ["--url", self.connection.url, "--prefix", self.connection.prefix, "--modules", "tests.bench.app"]
        flags += ["--workers", str(workers), "--runtime-dir", str(self.path / "run"), "--quiet"]
        env = {**os.environ, "TRAIL": str(self.trail_file), "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen([sys.executable, "-m", "queuepool", "start", *flags], env=env, cwd=ROOT)
        try:
            self.drain(200)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def drain(self, jobs: int) -> None:
        """Let the pool run so many no-ops: it is warm after that."""
        self.queue.bulk([("noop", {}) for _ in range(jobs)])
        until(lambda: self.queue.size() == 0)

    def trail(self) -> list[tuple[float, float, int]]:
        """(the payload's moment, when it began, pid) of every noted start."""
        return list(_RECORD.iter_unpack(self.trail_file.read_bytes())) if self.trail_file.exists() else []

    def forget(self) -> None:
        self.trail_file.touch()
        os.truncate(self.trail_file, 0)  # workers have it open, to append

    def calls(self) -> dict[str, int]:
        """Commands that the server has executed, by name; those of scripts count too."""
        text = self.stores.queue.client.command("INFO", "commandstats")
        lines = text.items() if isinstance(text, dict) else ()
        return {name.removeprefix("cmdstat_"): int(stats["calls"]) for name, stats in lines}


@contextmanager
def rig() -> Iterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="queuepool-bench-") as folder:
        world = Rig(Path(folder))
        with world.server():
            yield world


def until(condition: Callable[[], object], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within:g} s")
        time.sleep(0.0005)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
