"""The world of one run: server, proxy, two pools, producer and watcher, each a process of its own, in one directory."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path

from tests.chaos.ledger import Ledger
from tests.chaos.orders import Orders
from tests.chaos.plan import Plan
from tests.chaos.pool import Pool, send
from tests.chaos.proxy import Proxy
from tests.chaos.server import Server

ROOT = Path(__file__).parents[2]
PREFIX = "chaos_"
#: what of the plan a producer is told
_PRODUCERS = {field.name for field in fields(Orders)}


class Rig:
    """Built and taken down in order; ``rest`` is how everybody waits, so that dead masters are replaced meanwhile."""

    def __init__(self, folder: Path, plan: Plan, code: Path = ROOT) -> None:
        self.folder = folder
        self.plan = plan
        self.cookie = secrets.token_hex(8)
        self.canary = f"canary{secrets.token_hex(8)}"
        self.chance = random.Random(plan.seed)
        self.ledger = Ledger(folder / "ledger")
        self.server = Server(folder, self.canary)
        self.proxy = Proxy(self.server.socket, folder)
        self._code = code
        self._helpers: list[subprocess.Popen[bytes]] = []
        settings = {
            "prefix": PREFIX,
            "grace": plan.grace,
            "retry_after": plan.retry_after,
            "queues": "high,default,side",
        }
        remote = f"unix://:{self.canary}@{self.proxy.path}"
        near = Pool(
            f"near{self.cookie}", folder, self.ledger, self.env(), workers=plan.workers, url=self.server.url, **settings
        )
        far = Pool(f"far{self.cookie}", folder, self.ledger, self.env(), workers=plan.remote, url=remote, **settings)
        self.pools = [near, far] if plan.remote else [near]

    def env(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("QUEUEPOOL_")}
        paths = f"{self._code}:{ROOT}"
        own = {"CHAOS_RUN": self.cookie, "CHAOS_LEDGER": str(self.folder / "ledger")}
        return {
            **clean,
            **own,
            "CHAOS_WATCHER": self.watcher_address,
            "PYTHONPATH": paths,
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    @property
    def watcher_address(self) -> str:
        return str(self.folder / "watcher.sock")

    def start(self) -> None:
        plan = self.plan
        self.ledger.write(
            "run",
            seed=plan.seed,
            workers=plan.workers + plan.remote,
            seconds=plan.seconds,
            retry_after=plan.retry_after,
        )
        self.server.start()
        self.proxy.start()
        self._help("watcher", self.watcher_address)
        while not Path(self.watcher_address).exists():
            time.sleep(0.005)
        for pool in self.pools:
            pool.start()
        for pool in self.pools:
            pool.wait_until_ready()

    def produce(self) -> None:
        orders = {name: value for name, value in asdict(self.plan).items() if name in _PRODUCERS}
        self._help("producer", json.dumps({"url": self.server.url, "prefix": PREFIX, **orders}))

    def wait_for_jobs(self, within: float = 20.0) -> None:
        """Until the producer has begun."""
        end = time.monotonic() + within
        while b'"enq_ok"' not in (self.folder / "ledger").read_bytes() and time.monotonic() < end:
            self.rest(0.02)

    def _help(self, module: str, argument: str) -> None:
        command = [sys.executable, "-m", f"tests.chaos.{module}", argument]
        self._helpers.append(subprocess.Popen(command, env=self.env(), cwd=ROOT))

    def rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            for pool in self.pools:
                pool.supervise()
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.02))

    def kill(self, pool: Pool, pid: int, signum: signal.Signals, why: str) -> bool:
        """A signal to a child of the pool, written down before it is sent."""
        return send(pid, signum, pool.name, lambda: self.ledger.write("kill", pid=pid, why=why, sig=int(signum)))

    def helpers(self) -> set[int]:
        """Processes that are ours, and not the pools'."""
        return {helper.pid for helper in self._helpers} | ({self.server.process.pid} if self.server.process else set())

    def stop_helper(self, index: int = -1) -> None:
        helper = self._helpers.pop(index)
        helper.terminate()
        helper.wait(10)

    def heal(self) -> None:
        """Whatever a nemesis may have left."""
        self.server.signal(signal.SIGCONT)
        self.server.wait_until_ready()
        self.proxy.heal()
        for words in (
            ("REPLICAOF", "NO", "ONE"),
            ("CONFIG", "SET", "maxmemory", "0"),
            ("CLIENT", "UNPAUSE"),
            ("CONFIG", "SET", "min-replicas-to-write", "0"),
            ("DEL", f"{PREFIX}queues:side"),
        ):
            self.server.say(*words)
        for pool in self.pools:
            pool.supervise()
            if pool.process:
                pool.process.send_signal(signal.SIGCONT)
            for pid in pool.titles():
                send(pid, signal.SIGCONT, pool.name)

    def drain(self) -> int:
        """Until everything is done or the time is over; gives what is left."""
        end = time.monotonic() + self.plan.drain
        while (left := self.left()) and time.monotonic() < end:
            self.rest(0.05)
        return left

    def left(self) -> int:
        """Jobs in the queues, of whatever state."""
        client, count = self.server.client, 0
        for queue in ("high", "default", "side"):
            key = f"{PREFIX}queues:{queue}"
            count += client.llen(key) + client.zcard(f"{key}:delayed") + client.zcard(f"{key}:reserved")  # type: ignore[operator]
        return count

    def take_down(self) -> None:
        """By force, whatever still runs."""
        self.server.signal(signal.SIGCONT)
        for pool in self.pools:
            for pid in [*pool.titles(), *([pool.process.pid] if pool.process and pool.process.poll() is None else [])]:
                send(pid, signal.SIGKILL, "queuepool")
            if pool.process:
                pool.process.wait()
        while self._helpers:
            self.stop_helper()
        self.proxy.stop()
        self.server.kill()
        self.server.client.close()
