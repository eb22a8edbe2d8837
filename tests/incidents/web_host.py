"""A host that runs the shop's pools: a network and a name of its own, and its own copy of the shop."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.bench.rig import ROOT
from tests.chaos.hosts import NAMED
from tests.incidents.console import Console
from tests.support.eventually import eventually
from tests.support.pools import psutil_gone

_SHOP = Path(__file__).with_name("shop.py")
#: seconds that a start or an end may take on a busy machine
_PATIENCE = 90.0
#: the same on both hosts, but for the address of Redis
_SETTINGS = """\
[pool]
modules = shop
workers = 2
timeout = 10m
memory = +48
remote = all
runtime_dir = run

[pool:web]
connection = redis
queue = default,images,campaign,slow

[pool:billing]
connection = postgres
queue = invoices

[connection:redis]
url = {redis}
retry_after = 30

[connection:postgres]
url = {postgres}
retry_after = 30

[schedule:report]
connection = redis
every = 5s
job = shop.report

[schedule:close_books]
connection = redis
every = 5s
job = shop.close_books

[alerts]
wait = 5
"""


class WebHost:
    """One of the two; ``network``: the words before a command that is to run on its network."""

    def __init__(self, name: str, folder: Path, network: Sequence[str], redis: str, postgres: str) -> None:
        self.name = name
        self.folder = folder / name
        (self.folder / "run").mkdir(mode=0o700, parents=True)
        shutil.copy(_SHOP, self.folder)
        (self.folder / "report.csv").touch()
        settings = self.folder / "pool.ini"
        settings.touch(mode=0o600)
        settings.write_text(_SETTINGS.format(redis=redis, postgres=postgres))
        self.console = Console(self.folder, [*network, *NAMED, name], self._env())
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def shop(self) -> Path:
        """Its copy of the module."""
        return self.folder / "shop.py"

    def start(self) -> None:
        """Start the pools; returns when they take jobs."""
        words = ["setpriv", "--pdeathsig", "TERM", *self.console.words("queuepool start")]
        with (self.folder / "pool.log").open("ab") as log:
            self._process = subprocess.Popen(
                words, cwd=self.folder, env=self.console.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        eventually(lambda: self.console.types("queuepool status").code == 0, within=_PATIENCE)

    def wait(self) -> None:
        """Wait for the end of pools that were told to end."""
        if self._process:
            self._process.wait(_PATIENCE)

    def end(self) -> None:
        """End the pools at once; does nothing if they have ended."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.lose()

    def lose(self) -> None:
        """Kill all of it at the same moment, as when the machine dies."""
        assert self._process
        parent = psutil.Process(self._process.pid)
        everybody = [parent, *parent.children(recursive=True)]
        for signum in (signal.SIGSTOP, signal.SIGKILL):  # so that nobody sees the end of another one
            for one in everybody:
                with psutil_gone():
                    one.send_signal(signum)
        self._process.wait()

    def _env(self) -> dict[str, str]:
        ours = ("QUEUEPOOL_", "LC_", "LANG")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        own = {"QUEUEPOOL_CONFIG": str(self.folder / "pool.ini"), "PYTHONPATH": f"{self.folder}:{ROOT}"}
        return {**inherited, "LC_ALL": "C.UTF-8", "TERM": "linux", **own}
