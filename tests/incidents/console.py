"""What an operator types on a host, at a terminal of its own, and what comes of it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pexpect

#: of the terminal: wide enough for whole ids
_LINES, _COLUMNS = 50, 160
#: seconds that a command may take on a busy machine
_PATIENCE = 120.0
#: how far a long command is, which the next text replaces
_PROGRESS = re.compile(r"\r[^\r\n]*?\x1b\[K")
#: where the page says that a host has its copy of the shop
PLACE = "/srv/shop"


@dataclass(frozen=True, slots=True)
class Told:
    """A command line, what it has shown, and the exit code; that of a signal is negative."""

    line: str
    text: str
    code: int

    @property
    def words(self) -> str:
        """All of it on one line: a terminal folds long lines between words."""
        return " ".join(self.text.split())

    def lacks(self, words: Sequence[str]) -> list[str]:
        """Which of these it does not show."""
        return [one for one in words if one not in self.words]


class Console:
    """Runs commands on a host, in ``folder``; ``preface`` are the words that take a command to that host."""

    def __init__(self, folder: Path, preface: Sequence[str], env: Mapping[str, str]) -> None:
        self.folder = folder
        self.env = dict(env)
        self._preface = preface

    def words(self, line: str) -> list[str]:
        """The command in full."""
        program, *rest = shlex.split(line)
        begin = [sys.executable, "-m", "queuepool"] if program == "queuepool" else [program]
        return [*self._preface, *begin, *rest]

    def types(self, line: str) -> Told:
        """Run it to its end."""
        program, *rest = self.words(line)
        child = pexpect.spawn(
            program, rest,
            cwd=str(self.folder), env=self.env, dimensions=(_LINES, _COLUMNS), timeout=_PATIENCE, echo=False,
            encoding="utf-8", codec_errors="replace", use_poll=True,
        )  # fmt: skip
        try:
            child.expect(pexpect.EOF)
            child.wait()
        finally:
            child.close(force=True)
        code = -child.signalstatus if child.signalstatus else child.exitstatus
        return Told(line, self._plain(child.before or ""), code)

    def _plain(self, text: str) -> str:
        shown = _PROGRESS.sub("", text.replace("\r\n", "\n"))
        shown = re.sub(rf"{self.folder.parent}/web\d", PLACE, shown).replace(sys.prefix, f"{PLACE}/.venv")
        return "\n".join(line.rstrip() for line in shown.splitlines())
