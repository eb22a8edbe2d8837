"""A command on a real terminal: a pty, and an emulator that draws what comes out of it."""

from __future__ import annotations

import locale
import os
import shlex
import signal
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pyte

from tests.support import warm
from tests.support.commands import ROOT
from tests.support.eventually import eventually

UP, DOWN, ENTER, ESCAPE, CTRL_C, CTRL_Z = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x03", "\x1a"
#: takes the terminal, as pexpect's child does, opens the streams that Python opens on one, and becomes the command
BECOMES = """
import fcntl, os, runpy, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", 1, closefd=False)
sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)
runpy.run_module("queuepool", run_name="__main__", alter_sys=True)
"""


class Forked:
    """The command on a terminal of its own, forked from the warm interpreter; what pexpect offers of one."""

    def __init__(self, words: Sequence[str], columns: int, lines: int, env: Mapping[str, str], cwd: Path) -> None:
        self._terminal, theirs = os.openpty()
        os.set_blocking(self._terminal, False)
        self.setwinsize(lines, columns)
        modes = termios.tcgetattr(theirs)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        command = [sys.executable, "-c", BECOMES, *words]
        self._process = warm.start(command, env=dict(env), cwd=str(cwd), stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.pid = self._process.pid

    def read_nonblocking(self, size: int, timeout: int) -> bytes:
        try:
            return os.read(self._terminal, size)
        except BlockingIOError:
            raise pexpect.TIMEOUT("nothing yet") from None
        except OSError:  # nobody has its other end any more
            raise pexpect.EOF("its end") from None

    def send(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def setwinsize(self, lines: int, columns: int) -> None:
        termios.tcsetwinsize(self._terminal, (lines, columns))

    def isalive(self) -> bool:
        return self._process.poll() is None

    @property
    def exitstatus(self) -> int:
        return self._process.returncode or 0

    @property
    def signalstatus(self) -> int:
        return max(0, -self.exitstatus)

    def kill(self, signum: int) -> None:
        self._process.send_signal(signum)

    def close(self, force: bool) -> None:
        os.close(self._terminal)


class Terminal:
    """A program on a terminal of this size."""

    def __init__(self, process: Forked | pexpect.spawn, columns: int, lines: int) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.process = process

    def text(self) -> str:
        """What the screen shows now."""
        try:
            while True:
                raw = self.process.read_nonblocking(65536, timeout=0)
                self.sent += raw
                self._stream.feed(raw)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, *words: str) -> str:
        """Wait until the screen has all of these; returns what it shows then."""

        def shown() -> str:
            text = self.text()  # once: the next look may be at the next frame
            return text if all(word in text for word in words) else ""

        return eventually(shown)

    def press(self, keys: str) -> None:
        self.process.send(keys)

    def resize(self, columns: int, lines: int) -> None:
        self.text()
        self.screen.resize(lines, columns)
        self.process.setwinsize(lines, columns)

    def ends(self) -> int:
        """Wait for its end; returns its exit code, that of a signal negative."""
        eventually(lambda: self.text() is not None and not self.process.isalive())
        self.text()  # what it wrote last
        return -self.process.signalstatus if self.process.signalstatus else self.process.exitstatus

    def close(self) -> None:
        if self.process.isalive():
            self.process.kill(signal.SIGKILL)
            eventually(lambda: not self.process.isalive())
        self.process.close(force=True)


@contextmanager
def terminal(
    *words: str, cwd: Path, columns: int = 80, lines: int = 24, shell: str = "", **env: str
) -> Iterator[Terminal]:
    """``queuepool`` with these words, run by a line of bash if one is given. ``env`` is added to ours."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("QUEUEPOOL_")}
    wide = {} if locale.getencoding().lower() == "utf-8" else {"LC_ALL": "C.UTF-8"}  # which is executed
    env = {**inherited, **wide, "TERM": "linux", "PYTHONPATH": str(ROOT), **env}
    process = _in_bash(words, shell, columns, lines, env, cwd) if shell else Forked(words, columns, lines, env, cwd)
    made = Terminal(process, columns, lines)
    try:
        yield made
    except BaseException:
        print(made.text())
        raise
    finally:
        made.close()


def _in_bash(
    words: Sequence[str], shell: str, columns: int, lines: int, env: Mapping[str, str], cwd: Path
) -> pexpect.spawn:
    line = shell.format(shlex.join([sys.executable, "-m", "queuepool", *words]))
    return pexpect.spawn(
        "/bin/bash", ["-c", line],
        dimensions=(lines, columns), env=dict(env), cwd=str(cwd), timeout=30, echo=False, use_poll=True,
    )  # fmt: skip
