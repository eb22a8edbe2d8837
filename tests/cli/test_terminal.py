"""A closed terminal ends the pool in its foreground, but not a pool that was started under nohup."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.commands import ROOT
from tests.support.eventually import eventually


class Session:
    """A pool on a terminal of its own."""

    def __init__(self, path: Path, before: Sequence[str]) -> None:
        self._log = path / "log"
        self._screen, terminal = pty.openpty()
        words = ["--workers", "1", "--modules", "tests.support.poolapp", "--log", "log", "--runtime-dir", "run"]
        self.master = subprocess.Popen(
            [*before, sys.executable, "-m", "queuepool", "start", *words],
            cwd=path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=terminal, stdout=terminal, stderr=terminal,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(terminal)

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def close_terminal(self) -> None:
        os.close(self._screen)
        self._screen = -1

    def end(self) -> None:
        if self._screen >= 0:
            self.close_terminal()
        self.master.terminate()
        self.master.wait(timeout=60)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup


@contextmanager
def session(path: Path, *before: str) -> Iterator[Session]:
    found = Session(path, before)
    try:
        eventually(lambda: "worker starting" in found.log())
        yield found
    finally:
        found.end()


def test_a_pool_ends_in_order_with_the_terminal_that_it_was_started_on(tmp_path):
    with session(tmp_path) as found:
        found.master.send_signal(signal.SIGHUP)
        eventually(lambda: 2 == found.log().count("worker starting"))  # the terminal is there: a restart
        found.close_terminal()

        assert 0 == found.master.wait(timeout=60)

    assert 1 == found.log().count("restarting: every worker is replaced")
    assert 1 == found.log().count("stopping: no job runs")


def test_a_pool_under_nohup_lives_on_without_its_terminal(tmp_path):
    with session(tmp_path, "nohup") as found:
        found.close_terminal()
        eventually(lambda: "restarting: every worker is replaced" in found.log())  # that is what HUP means

        assert None is found.master.poll()
