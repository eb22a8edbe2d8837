"""A command on a real terminal: a pty, and an emulator that draws what comes out of it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pyte

from tests.support.commands import ROOT
from tests.support.eventually import eventually

UP, DOWN, ENTER, ESCAPE, CTRL_C, CTRL_Z = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x03", "\x1a"


class Terminal:
    """A program with its words, on a terminal of this size."""

    def __init__(self, words: list[str], columns: int, lines: int, env: Mapping[str, str], cwd: Path) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""
        program, *rest = words
        self.process = pexpect.spawn(
            program, rest,
            dimensions=(lines, columns), env=dict(env), cwd=str(cwd), timeout=30, echo=False, use_poll=True,
        )  # fmt: skip

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
    *words: str, cwd: Path, columns: int = 80, lines: int = 24, shell: str = "exec {}", **env: str
) -> Iterator[Terminal]:
    """``queuepool`` with these words, run by a line of bash. ``env`` is added to ours."""
    command = shell.format(shlex.join([sys.executable, "-m", "queuepool", *words]))
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("QUEUEPOOL_", "LC_", "LANG"))}
    usual = {"TERM": "linux", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    made = Terminal(["/bin/bash", "-c", command], columns, lines, {**inherited, **usual, **env}, cwd)
    try:
        yield made
    except BaseException:
        print(made.text())
        raise
    finally:
        made.close()
