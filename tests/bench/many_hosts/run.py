"""One run: the store, its network and the hosts, what is pushed meanwhile, and how it ends."""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import time
from pathlib import Path

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import Envelope, encode
from queuepool.stores.contract import NewJob
from tests.bench.many_hosts.clock import build
from tests.bench.many_hosts.network import ADDRESS, Switch
from tests.bench.many_hosts.plan import Plan
from tests.bench.many_hosts.pool_host import PoolHost
from tests.bench.rig import PATIENCE, ROOT, until
from tests.chaos.ledger import Ledger
from tests.chaos.server import Server
from tests.chaos.world import PREFIX

_PORT, _STREAM, _QUEUE = 6379, "h", "default"
#: one in so many jobs takes a moment; so many of each worker outlast their first lease
_NAPS, _LONG = 5, 2
#: seconds between two looks, and in which all that was pushed is to be done at last
_LOOK, _DRAIN = 0.02, 600.0


class Run:
    """``rest`` is how everybody waits: jobs are pushed meanwhile."""

    def __init__(self, folder: Path, plan: Plan, seconds: float) -> None:
        """``seconds``: over which the jobs are pushed."""
        self.plan = plan
        self.folder = folder
        self.chance = random.Random(plan.seed)
        self.ledger = Ledger(folder / "ledger")
        self.switch = Switch()
        self.hosts: list[PoolHost] = []
        self._seconds = seconds
        self._names = self._pushed = 0
        self._began: float | None = None
        self._helpers: list[subprocess.Popen[bytes]] = []
        build(folder)
        (folder / "store").mkdir()
        self._server = Server(folder / "store", secrets.token_hex(8))
        self._server.preface = self.switch.store.preface
        self._server.options = ["--port", str(_PORT), "--bind", "0.0.0.0"]
        self._queue = Queue(ConnectionSettings(url=self._server.url, prefix=PREFIX, timeout=PATIENCE))

    def start(self) -> None:
        """Returns when all workers are there."""
        plan = self.plan
        about = {"workers": plan.hosts * plan.workers, "seconds": self._seconds, "retry_after": plan.retry_after}
        self.ledger.write("run", seed=plan.seed, ahead=0, grace=0, **about)
        self._server.start()
        self._help("watcher", str(self.folder / "watcher.sock"))
        self._help("pace")
        until((self.folder / "watcher.sock").exists)
        self.add(plan.hosts, (plan.clock, -plan.clock))
        until(lambda: self._workers() >= plan.hosts * plan.workers, within=PATIENCE + 2 * plan.hosts)
        self._began = time.monotonic()

    def add(self, count: int, clocks: tuple[int, ...] = ()) -> None:
        """So many new hosts; ``clocks``: seconds by which those of the first are wrong."""
        for number in range(count):
            self._names += 1
            clock = clocks[number] if number < len(clocks) else 0
            host = PoolHost(f"host{self._names}", self.folder, self.switch, self.ledger, clock)
            self.hosts.append(host)
            if abs(host.seconds_wrong() - clock) > 60:
                sys.exit(f"{host.name}: its clock is wrong by {host.seconds_wrong():.0f} s instead of {clock} s")
            url = f"redis://:{self._server.password}@{ADDRESS}:{_PORT}"
            own = {"url": url, "prefix": PREFIX, "workers": self.plan.workers, "retry_after": self.plan.retry_after}
            host.start(self._env(), **own)

    def some(self, count: int, *, may_be_lost: bool = False) -> list[PoolHost]:
        """So many hosts by chance; the two with the wrong clocks stay to the end."""
        those = [host for host in self.hosts if not (may_be_lost and host.clock)]
        return self.chance.sample(those, min(count, len(those)))

    def lose(self, host: PoolHost) -> None:
        self.hosts.remove(host)
        host.lose()

    def rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._push()
            self._look()
            time.sleep(_LOOK)

    def end(self) -> None:
        """Do what is left, and stop all pools."""
        self._push(everything=True)
        end = time.monotonic() + _DRAIN
        while (left := self._left()) and time.monotonic() < end:
            self._look()
            time.sleep(_LOOK)
        for host in self.hosts:
            host.ask_to_stop()
        for host in self.hosts:
            if (code := host.stop()) != 0:
                self.ledger.write("bad_stop", pool=host.name, code=code)
        self._end_helpers()
        self.ledger.write("end", left=left)

    def take_down(self) -> None:
        """By force, whatever still runs."""
        for host in self.hosts:
            host.lose()
        self._end_helpers()
        self._server.kill()
        self.switch.store.close()

    def _end_helpers(self) -> None:
        while self._helpers:
            helper = self._helpers.pop()
            helper.terminate()
            helper.wait()

    def _push(self, *, everything: bool = False) -> None:
        """What is due by now."""
        passed = self._seconds if everything or self._began is None else time.monotonic() - self._began
        first, plan = self._pushed, self.plan
        self._pushed = last = min(plan.jobs, int(plan.jobs * passed / self._seconds)) if self._began else 0
        if first == last:
            return
        facts = {"p": _STREAM, "lo": first, "hi": last - 1, "q": _QUEUE, "delay": 0}
        self.ledger.write("enq_inv", **facts)
        made = [NewJob(_payload(f"{_STREAM}.{number}", self._job(number))) for number in range(first, last)]
        self._queue.stores.queue.push(_QUEUE, made, 0.0)
        self.ledger.write("enq_ok", **facts)

    def _job(self, number: int) -> dict[str, object]:
        """Most do nothing; some take a moment; a few outlast their first lease."""
        plan = self.plan
        if number % max(1, plan.jobs // (_LONG * plan.hosts * plan.workers)) == 1:
            return {"m": "nap", "seconds": plan.long}
        return {} if number % _NAPS else {"m": "nap", "seconds": round(self.chance.uniform(0.02, 0.2), 3)}

    def _look(self) -> None:
        for host in self.hosts:
            if host.has_ended():
                self.ledger.write("pool_died", pool=host.name)
                sys.exit(f"the pool of {host.name} has ended: {self.folder}")

    def _left(self) -> int:
        sizes = self._queue.sizes(_QUEUE)
        return sizes.ready + sizes.delayed + sizes.reserved

    def _workers(self) -> int:
        return (self.folder / "ledger").read_bytes().count(b'"f":"worker"')

    def _env(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("QUEUEPOOL_")}
        own = {"CHAOS_LEDGER": str(self.folder / "ledger"), "CHAOS_WATCHER": str(self.folder / "watcher.sock")}
        return {**clean, **own, "PYTHONPATH": str(ROOT)}

    def _help(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"tests.chaos.{module}", *arguments]
        self._helpers.append(subprocess.Popen(command, env=self._env(), cwd=ROOT))


def _payload(job_id: str, data: dict[str, object]) -> bytes:
    """With an id that says which job it is."""
    made, raw = encode("Chaos@run", data, Envelope(int(time.time())))
    return raw.replace(made.encode(), job_id.encode())
