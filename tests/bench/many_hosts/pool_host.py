"""A host with a pool: its place on the network, its name, its clock, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.bench.many_hosts.clock import wrong_by
from tests.bench.many_hosts.network import Port, Switch
from tests.bench.rig import ROOT
from tests.chaos.hosts import NAMED, Host
from tests.chaos.ledger import Ledger

_SETTINGS = """\
[pool]
modules = tests.chaos.app
listeners = tests.chaos.listeners
workers = {workers}
timeout = 60
tries = 1
runtime_dir = {folder}/run
log = {folder}/log

[connection]
url = {url}
prefix = {prefix}
retry_after = {retry_after}
"""


class PoolHost:
    """``clock``: seconds by which its wall clock is to be wrong."""

    def __init__(self, name: str, folder: Path, switch: Switch, ledger: Ledger, clock: int = 0) -> None:
        self.name = name
        self.folder = folder / name
        self._ledger = ledger
        self.clock = clock
        self._host = Host()
        self.port: Port = switch.connect(self._host)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, env: dict[str, str], **settings: object) -> None:
        """Start its pool; the ledger knows then which master is whose."""
        (self.folder / "run").mkdir(mode=0o700, parents=True)
        config = self.folder / "pool.ini"
        config.touch(mode=0o600)
        config.write_text(_SETTINGS.format(folder=self.folder, **settings))
        command = [sys.executable, "-m", "queuepool", "start", "-c", str(config), "--quiet"]
        words = ["setpriv", "--pdeathsig", "TERM", *self._preface(), *command]
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                words, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self._ledger.write("host", name=self.name, master=self._process.pid, clock=self.clock)

    def seconds_wrong(self) -> float:
        """By how much its clock is wrong, as a process there sees it."""
        ours = float(subprocess.check_output(["date", "+%s.%N"]))
        return float(subprocess.check_output([*self._preface(), "date", "+%s.%N"])) - ours

    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def lose(self) -> None:
        """As when its power fails: it says nothing more to anybody, and nobody there sees the end of another."""
        self.port.cut()
        for signum in (signal.SIGSTOP, signal.SIGKILL):
            for pid in self._host.processes():
                if signum == signal.SIGKILL:
                    self._ledger.write("kill", pid=pid, why="host", sig=int(signum))
                with suppress(ProcessLookupError):
                    os.kill(pid, signum)
        if self._process:
            self._process.wait()
        self._host.close()

    def stop(self) -> int | None:
        """Ask its pool to end; ``None`` where it was never started."""
        if self._process is None:
            return None
        self._process.terminate()
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            return self._process.poll()

    def ask_to_stop(self) -> None:
        if self._process:
            self._process.terminate()

    def _preface(self) -> list[str]:
        return [*self._host.preface, *NAMED, self.name, *wrong_by(self.clock, self.folder.parent)]
