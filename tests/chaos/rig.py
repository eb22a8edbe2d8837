"""The set-up of one run: store, two pools, producer and watcher, each a process of its own, in one directory."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tests.chaos import disks, limited
from tests.chaos.counted import Sampler
from tests.chaos.lane_modes import MEMORY_HARD
from tests.chaos.ledger import Ledger
from tests.chaos.plan import Plan
from tests.chaos.pool import Pool, send
from tests.chaos.producer_settings import ProducerSettings
from tests.chaos.stores.base import Place
from tests.chaos.stores.choice import store_named
from tests.chaos.world import QUEUES, ROOT, WIDE, WIDE_QUEUES

#: room for the boards of two pools, and of some that were killed before
_RUN_DIR = "256m"
#: the part of the plan that is passed to a producer
_PRODUCERS = {field.name for field in fields(ProducerSettings)}


class Rig:
    """Built and taken down in order; ``rest`` is how everybody waits, so that dead masters are replaced meanwhile."""

    def __init__(self, folder: Path, plan: Plan, code: Path = ROOT) -> None:
        self.folder = folder
        self.plan = plan
        self.cookie = secrets.token_hex(8)
        self.canary = f"canary{secrets.token_hex(8)}"
        self.chance = random.Random(plan.seed)
        self.ledger = Ledger(folder / "ledger")
        self.run_dir = folder / "run"
        self.store: Any = store_named(plan.store, folder, self.canary, plan.hosts)
        self.other: Any = store_named(plan.other, folder / "other", self.canary) if plan.other else None
        self.stores: list[Any] = [store for store in (self.store, self.other) if store]
        self.pools: list[Pool] = []
        self._code = code
        self._streams = 0
        self._sampler = Sampler()
        self._helpers: list[subprocess.Popen[bytes]] = []
        self._looking: subprocess.Popen[bytes] | None = None

    def env(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("QUEUEPOOL_")}
        paths = f"{self._code}:{ROOT}"
        own = {"CHAOS_RUN": self.cookie, "CHAOS_LEDGER": str(self.folder / "ledger")}
        return {**clean, **own, "CHAOS_WATCHER": self.watcher_address, "PYTHONPATH": paths}

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
            ahead=plan.ahead,
            grace=plan.grace,
            lanes=plan.lanes,
            wide=plan.wide,
            records=plan.records,
            limits=plan.limits > 0,
        )
        disks.mount(self.run_dir, _RUN_DIR)
        for store in self.stores:
            store.start()
        self._help("watcher", self.watcher_address)
        self._help("pace")
        self.look_at_places()
        while not Path(self.watcher_address).exists():
            time.sleep(0.005)
        self.pools = self._pools()
        for pool in self.pools:
            pool.start()
        for pool in self.pools:
            pool.wait_until_ready()

    def _pools(self) -> list[Pool]:
        """One near the store, one that has a worse way to it; and one of lanes, in the file of the first."""
        plan = self.plan
        near, far = self.store.places()
        pools = [
            *self._pool("near", plan.workers, near),
            *self._pool("far", plan.remote, far, preload="yes" if plan.preload else "no"),
        ]
        if plan.lanes:
            beside = pools[0] if plan.workers else None
            own = {"queues": ",".join(WIDE_QUEUES), "lanes": plan.lanes, "ahead": 0}
            pools += self._pool("wide", plan.wide, near, beside, **own)
        return pools

    def _pool(self, name: str, workers: int, place: Place, beside: Pool | None = None, **own: object) -> list[Pool]:
        """None, if it is to have no worker."""
        if not workers:
            return []
        plan, (url, preface) = self.plan, place
        settings = {
            "prefix": self.prefix,
            "other": self.other.url if self.other else "",
            "grace": plan.grace,
            "retry_after": plan.retry_after,
            "queues": ",".join((*QUEUES, WIDE) if plan.lanes else QUEUES),
            "ahead": plan.ahead,
            "alerts": plan.alerts,
            "keep_done": "1h" if plan.records else 0,
            "preload": "no",
            "memory_hard": MEMORY_HARD,
            "limits": f"{limited.LIMITED_QUEUE}:{limited.AT_ONCE}" if plan.limits else "",
            **own,
        }
        env = self.env() | ({"CHAOS_LANES": str(own["lanes"])} if "lanes" in own else {})
        full = f"{name}{self.cookie}"
        return [Pool(full, self.folder, self.ledger, env, preface, beside, workers=workers, url=url, **settings)]

    @property
    def prefix(self) -> str:
        """Of the keys in Redis, whichever store that is."""
        return max(store.prefix for store in self.stores)

    def produce(self) -> None:
        self._help("producer", json.dumps(self._producer_settings()))

    @contextmanager
    def pushing(self, *modes: str, rate: float) -> Iterator[None]:
        """Push jobs of these modes too, at this rate per second."""
        self._streams += 1
        none = dict.fromkeys(
            ("backlog", "naps", "delayed", "refused", "steps", "graphs", "limits", "alerts", "lanes"), 0
        )
        settings = {**self._producer_settings(), **none, "modes": modes, "hostile": rate, "stream": f"s{self._streams}"}
        helper = self._help("producer", json.dumps(settings))
        try:
            yield
        finally:
            self._stop(helper)

    def _producer_settings(self) -> dict[str, Any]:
        plan = {name: value for name, value in asdict(self.plan).items() if name in _PRODUCERS}
        return {"url": self.store.url, "other": self.other.url if self.other else "", "prefix": self.prefix, **plan}

    def look_at_places(self) -> None:
        """Until ``stop_looking``, if any job has limits."""
        if self.plan.limits:
            self._looking = self._help("seen_places", self.store.url, self.prefix)

    def stop_looking(self) -> None:
        if self._looking:
            self._stop(self._looking)

    def wait_for_jobs(self, within: float = 60.0) -> None:
        """Until the producer has begun."""
        end = time.monotonic() + within
        while b'"enq_ok"' not in (self.folder / "ledger").read_bytes() and time.monotonic() < end:
            self.rest(0.02)

    def _help(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        # -P: the package of this run, where a fault may be planted, and not that of the working directory
        command = [sys.executable, "-P", "-m", f"tests.chaos.{module}", *arguments]
        self._helpers.append(subprocess.Popen(command, env=self.env(), cwd=ROOT))
        return self._helpers[-1]

    def rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            for pool in self.pools:
                pool.supervise()
            self._sampler.sample(self)
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.02))

    def kill(self, pool: Pool, pid: int, signum: signal.Signals, why: str) -> bool:
        """A signal to a child of the pool, written down before it is sent."""
        return send(pid, signum, pool.name, lambda: self.ledger.write("kill", pid=pid, why=why, sig=int(signum)))

    def note_master(self, pool: Pool, why: str) -> None:
        """Write down that its master is about to be signalled."""
        if pool.process:
            self.ledger.write("kill", pid=pool.process.pid, why=why, sig=0)

    def helpers(self) -> set[int]:
        """Processes that are ours, and not the pools'."""
        return {helper.pid for helper in self._helpers}.union(*(store.pids() for store in self.stores))

    def stop_producer(self) -> None:
        self._stop(self._helpers[-1])

    def _stop(self, helper: subprocess.Popen[bytes]) -> None:
        self._helpers.remove(helper)
        helper.terminate()
        helper.wait(60)

    def heal(self) -> None:
        """Whatever a nemesis may have left."""
        for store in self.stores:
            store.heal()
        for pool in self.pools:
            pool.supervise()
            if pool.process:
                pool.process.send_signal(signal.SIGCONT)
            for pid in pool.titles():
                send(pid, signal.SIGCONT, pool.name)

    def drain(self) -> int:
        """Until everything is done or the time is over; gives what is left."""
        end = time.monotonic() + self.plan.drain
        while (left := self.store.left()) and time.monotonic() < end:
            self.rest(0.05)
        return left

    def take_down(self) -> None:
        """By force, whatever still runs."""
        for pool in self.pools:
            for pid in [*pool.titles(), *([pool.process.pid] if pool.process and pool.process.poll() is None else [])]:
                send(pid, signal.SIGKILL, "queuepool")
            if pool.process:
                pool.process.wait()
        while self._helpers:
            self._stop(self._helpers[-1])
        for store in self.stores:
            store.end()
        disks.unmount(self.run_dir)
