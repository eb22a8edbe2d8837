"""A real pool under test: the command in a process of its own, its trail and its log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

from queuepool.board.board import Board, Role, State
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.support import warm
from tests.support.eventually import eventually
from tests.support.lines import Appended

ROOT = Path(__file__).parents[2]
NOTHING: Mapping[str, str] = MappingProxyType({})
#: titles of a pool's processes that are at work
MASTER = r"^queuepool: master \[\w+\] running workers=(\d+)"
STEWARD = r"^queuepool: steward \[\w+\] running"
WORKER = r"^queuepool: worker \d+ \[\w+\] (?:idle|busy|paused)"


@dataclass
class Site:
    """A place for pools: a store, a directory, and a trail of what jobs did."""

    connection: ConnectionSettings
    path: Path
    queue: Queue

    @cached_property
    def _trail(self) -> Appended:
        return Appended(self.trail_file)

    @property
    def trail_file(self) -> Path:
        return self.path / "trail"

    def env(self) -> dict[str, str]:
        return {**os.environ, "TRAIL": str(self.trail_file), "PYTHONPATH": f"{self.path}:{ROOT}"}

    def trail(self, **wanted: Any) -> list[dict[str, Any]]:
        """The matching notes that jobs wrote."""
        return [line for line in self._trail.read() if all(line.get(key) == value for key, value in wanted.items())]

    def push(self, mode: str = "ok", *, queue: str = "default", delay: float = 0, name: str = "do", **data: Any) -> str:
        """Push the job ``do``; Laravel's keys in ``data`` (maxTries, timeout …) become options."""
        laravels = ("maxTries", "maxExceptions", "failOnTimeout", "backoff", "timeout", "retryUntil")
        options = {key: data.pop(key) for key in laravels if key in data}
        return self.queue.push(name, {"mode": mode, **data}, queue=queue, delay=delay, options=options)

    @property
    def where(self) -> list[str]:
        """The flags that every verb needs."""
        prefix = ["--prefix", self.connection.prefix] if self.connection.prefix else []
        return ["--url", self.connection.url, *prefix]

    def flags(self, *given: str) -> list[str]:
        """The flags that every worker needs, unless given here."""
        usual = zip([*self.where[::2], "--modules"], [*self.where[1::2], "tests.support.poolapp"], strict=True)
        return [*(word for said in usual if said[0] not in given for word in said), *given]

    def run(
        self, verb: str, *flags: str, check: bool = True, parent: Sequence[str] = (), **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end; ``more`` is as of ``warm.run``."""
        command = [*parent, sys.executable, "-m", "queuepool", verb, *flags]
        return warm.run(command, env=self.env(), capture_output=True, text=True, check=check, cwd=self.path, **more)

    def work(self, *flags: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one worker until its queue is empty."""
        return self.run("work", *self.flags("--stop-when-empty", *flags), check=check)

    @contextmanager
    def pool(
        self, *flags: str, config: str = "", wait: bool = True, parent: Sequence[str] = (),
        env: Mapping[str, str] = NOTHING,
    ) -> Iterator[RunningPool]:  # fmt: skip
        """A pool, started and ready; stopped at the end, when nothing of it may be left.

        ``parent``: a command that prepares the environment and then becomes the pool by ``exec``; ``env``: more of it.
        """
        place = () if "--runtime-dir" in flags else ("--runtime-dir", str(self.path / "run"))
        pool = RunningPool(self, self.flags(*place, *flags), config, parent, env)
        try:
            if wait:
                pool.wait_until_ready()
            yield pool
            pool.end()
        except BaseException:
            print(pool.log()[-5000:])
            pool.kill_all()
            raise


class RunningPool:
    """A running ``queuepool start``, and what can be seen of it."""

    def __init__(
        self, site: Site, flags: list[str], config: str, parent: Sequence[str] = (), env: Mapping[str, str] = NOTHING
    ) -> None:
        self.site = site
        self.log_file = site.path / "log"
        self.runtime = flags[flags.index("--runtime-dir") + 1]
        if config:
            (site.path / "pool.ini").write_text(config)
            flags = [*flags, "-c", str(site.path / "pool.ini")]
        with self.log_file.open("ab") as log:
            self.process = warm.start(
                [*parent, sys.executable, "-m", "queuepool", "start", *flags],
                env=site.env() | dict(env), cwd=site.path, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.seen: set[int] = set()
        self._boards: dict[Path, Board] = {}

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> str:
        return self.log_file.read_text()

    def titles(self) -> dict[int, str]:
        """What ``ps`` shows of the master and its children, by pid."""
        found = {pid: title_of(pid) for pid in self._family()}
        self.seen |= set(found)
        return {pid: title for pid, title in found.items() if title.startswith("queuepool:")}

    def pids(self, pattern: str) -> list[int]:
        """The processes whose title matches."""
        return [pid for pid, title in self.titles().items() if re.search(pattern, title)]

    def workers(self) -> list[int]:
        return self.pids(WORKER)

    def steward(self) -> int:
        return eventually(lambda: self.pids(STEWARD))[0]

    def wait_until_ready(self, workers: int | None = None) -> None:
        """With so many workers, or with as many as it is to have."""

        def is_ready() -> bool:
            if not all(_is_at_work(board, workers) for board in self._board()):
                return False  # a look at the board is cheap, one at all titles costs 4 ms of a processor
            found = "\n".join(self.titles().values())
            master = re.search(MASTER, found, re.MULTILINE)
            wanted = workers or int(master[1]) if master else 0
            at_work = len(re.findall(WORKER, found, re.MULTILINE))
            return wanted > 0 and at_work == wanted and bool(re.search(STEWARD, found, re.MULTILINE))

        eventually(is_ready)

    def signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def wait(self, within: float = 60.0) -> int:
        """Wait for the end; returns the exit code. A start may take half a minute, and of a stop the steward 5 s."""
        return self.process.wait(timeout=within)

    def end(self) -> None:
        """Stop the pool if it runs; then nothing of it may be left."""
        self.titles()
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
            assert 0 == self.wait()
        eventually(lambda: not [pid for pid in self.seen if is_ours(pid)])
        self._close()
        eventually(lambda: not self._files_left())  # a killed master's steward clears them a second after the orphans

    def _files_left(self) -> list[Path]:
        # The note of a deferred hook, of a job that died at the very end, waits for the next start.
        with suppress(FileNotFoundError):  # its directory has just been removed
            return [path for path in Path(self.runtime).glob("*/*") if not path.name.startswith("hook.")]
        return []

    def kill_all(self) -> None:
        """As if all at once: no steward clears up behind its master."""
        from tests.support.processes import kill  # imported here: it needs this module

        kill(*self._family())
        self.process.wait()
        self._close()

    def _close(self) -> None:
        while self._boards:
            self._boards.popitem()[1].memory.close()

    def _family(self) -> list[int]:
        return family(self.pid) if self.process.poll() is None else []

    def _board(self) -> list[Board]:
        """Its board: a pool in a container, or of another version, has none here.

        It stays open: to open one takes longer than to look at it.
        """
        for path in Path(self.site.path, self.runtime).glob(f"*/board.{self.pid}-*") if not self._boards else ():
            with suppress(OSError, ValueError):  # it is gone by now, or a file beside the board
                self._boards[path] = Board.open(path)
        return list(self._boards.values())


def _is_at_work(board: Board, workers: int | None) -> bool:
    at_work = [slot for slot in board.of(Role.WORKER) if slot.state in (State.IDLE, State.BUSY, State.PAUSED)]
    return board.header.state == State.RUNNING and len(at_work) >= (workers or board.header.target)


def is_gone(pid: int) -> bool:
    """Whether the process is dead, reaped or not."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def is_ours(pid: int) -> bool:
    return title_of(pid).startswith("queuepool:")


def title_of(pid: int) -> str:
    """What ``ps`` shows of it; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def family(pid: int) -> list[int]:
    """The process and all that it has started, as the kernel lists them: a search of every process costs 4 ms."""
    children: list[int] = []
    with suppress(OSError):  # it has ended, or one of its threads has
        for thread in os.listdir(f"/proc/{pid}/task"):
            children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return [pid, *(one for child in children for one in family(child))]


@contextmanager
def psutil_gone() -> Iterator[None]:
    """Ignores that a process ends while it is looked at."""
    try:
        yield
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return
