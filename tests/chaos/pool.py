"""A pool under test, kept running as systemd would: a master that has ended is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from queuepool.unix.exit_codes import NO_ROOM
from tests.chaos.alerts import SECTION
from tests.chaos.ledger import Ledger
from tests.chaos.ticks import SCHEDULE

_POOL = """
[pool:{name}]
queue = {queues}
workers = {workers}
modules = {modules}
listeners = {listeners}
timeout = 20
grace = {grace}
tries = 1
memory = 0
preload = {preload}
memory_hard = {memory_hard}
reserve_ahead = {ahead}
concurrency = {lanes}
keep_done = {keep_done}
limits = {limits}
log = {folder}/{name}.log
runtime_dir = {run}
"""
#: what all pools of a file have in common
_COMMON = """
[connection]
url = {url}
prefix = {prefix}
retry_after = {retry_after}
block_for = 1
failed_url = {other}
control_url = {other}
lock_url = {locks}
outcomes = outcomes
{schedule}{alerts}"""


class Pool:
    """``queuepool start`` with its own name, directory and log."""

    def __init__(
        self,
        name: str,
        folder: Path,
        ledger: Ledger,
        env: dict[str, str],
        preface: Sequence[str] = (),
        beside: Pool | None = None,
        **settings: object,
    ) -> None:
        """``beside``: a pool in whose file this one is, on the same connection."""
        settings = {
            "run": folder / "run",
            "modules": "tests.chaos.app",
            "listeners": "tests.chaos.listeners",
            "lanes": 1,
            "memory_hard": 0,
            "keep_done": 0,
            "limits": "",
        } | settings
        settings["alerts"] = SECTION if settings.get("alerts") else ""
        settings["locks"] = settings["url"] if settings["other"] else ""  # else they would be with the control keys
        self.name = name
        self.directory = Path(str(settings["run"]), name)
        #: command words before the master's: the host's, and those that change the signals it inherits
        self._preface = preface
        self.birth: Sequence[str] = ()
        self.workers = int(str(settings["workers"]))
        self._ledger = ledger
        self._env = env
        self._config = beside._config if beside else folder / f"{name}.ini"
        self._output = folder / f"{name}.out"
        with self._config.open("a" if beside else "w") as config:
            sections = _POOL if beside else _POOL + _COMMON
            config.write(sections.format(name=name, folder=folder, schedule=SCHEDULE, **settings))
        self._config.chmod(0o600)
        self._expected = self._may_end = False
        #: while there is no room for it, and whether there was none at some time since its process was started
        self.may_not_start = self._may_refuse = False
        self._is_kept_away = False
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> list[str]:
        """Of the command line, about this pool's connection."""
        return [sys.executable, "-m", "queuepool", *words, "-c", str(self._config)]

    def start(self) -> None:
        self._expected = self._may_end = self._may_refuse = False
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                [*self._preface, *self.birth, *self.command("start", "--pool", self.name)],
                env=self._env, cwd=self._config.parent, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def supervise(self) -> None:
        """Start it again if it has ended; an end that the harness did not cause is an event."""
        self._may_refuse |= self.may_not_start
        if self.process and self.process.poll() is not None and not self._is_kept_away:
            refuses = self._may_refuse and self.process.returncode == NO_ROOM  # by now there may be room again
            if not (self._expected or self._may_end or refuses):
                self._ledger.write("pool_died", pool=self.name, code=self.process.returncode)
            self.start()

    def end(self, signum: signal.Signals) -> None:
        """This signal will end the master; ``supervise`` starts the next one."""
        if self.process:
            self._expected = True
            self.process.send_signal(signum)

    @contextmanager
    def kept_away(self) -> Iterator[None]:
        """Once it has ended, it is started again only after this."""
        self._is_kept_away = True
        try:
            yield
        finally:
            self._is_kept_away = False

    @contextmanager
    def may_end(self) -> Iterator[None]:
        """What befalls it meanwhile may end it; ``supervise`` starts the next one."""
        self._may_end = True
        try:
            yield
        finally:
            has_ended = self.process and self.process.poll() is not None
            self._may_end = bool(has_ended)  # until the next one is started

    def stop(self, within: float) -> int | None:
        """For good; ``None`` when it did not end in time."""
        if not self.process:
            return 0
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            return None

    def titles(self) -> dict[int, str]:
        """Its living children, by pid: what ``ps`` shows."""
        if not self.process:
            return {}
        pid = self.process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return {}
        return {int(child): title for child in children if (title := title_of(int(child)))}

    def pids(self, word: str) -> list[int]:
        """Children whose title has this word."""
        return [pid for pid, title in self.titles().items() if word in title]

    def ready(self) -> int:
        """Workers that work or wait for work."""
        return sum(" idle " in title or " busy " in title for title in self.titles().values() if ": worker " in title)

    def wait_until_ready(self, within: float = 15.0) -> int:
        """Gives how many are ready. What a job has forked has its worker's title until the master ends it."""
        until = time.monotonic() + within
        while not self.workers <= (ready := self.ready()) <= 2 * self.workers and time.monotonic() < until:
            time.sleep(0.02)
        return ready

    def note_size(self, within: float) -> None:
        """Whole or not. Jobs go on killing their workers: for a moment one may be missing, but not for long."""
        began = time.monotonic()
        ready = self.wait_until_ready(within)
        after = round(time.monotonic() - began, 3)
        self._ledger.write("size", pool=self.name[:4], n=ready, want=self.workers, after=after)


def title_of(pid: int) -> str:
    """Empty when it is gone, or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def send(pid: int, signum: signal.Signals, ours: str, before: Callable[[], None] = lambda: None) -> bool:
    """A signal to a process whose title has this word, and to no other that may have its number by now.

    ``before`` is called just before. ``False`` when it is gone.
    """
    if pid <= 0:
        return False
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if ours not in title_of(pid):
            return False
        before()
        signal.pidfd_send_signal(fd, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True
