"""Why a process failed to boot, and why a pool is down: reports beside the board, where the others read them.

Of a pool that is down while its parent retries it there is also the signal that a command has for it: there is no
master to signal, and the parent has others to look after.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from queuepool.board.board import BoardName
from queuepool.errors import BootFailure
from queuepool.unix import proc
from queuepool.unix.exit_codes import BOOT
from queuepool.unix.signals import STOPS

_MAX_BYTES = 64 * 1024
_NOTE, _SIGNAL = "retried", "signal"
#: what commands send: a job may have written the file
_KNOWN = {signum.name: signum for signum in (*STOPS, signal.SIGHUP, signal.SIGUSR2, signal.SIGCONT)}


class BootReport(NamedTuple):
    """The ``problem`` in one line, and the traceback or stacks, if there are any."""

    problem: str
    trace: str = ""


def leave(failure: BootFailure, file: FileIO) -> None:
    """Write the report to the process's trace file; the process must exit with ``BOOT``."""
    with suppress(OSError):  # no room: the exit code is enough
        file.write(f"{failure}\n{failure.trace}".encode("utf-8", "replace"))


def too_late(what: str, limit: float, step: str = "import") -> str:
    """The problem of a process that the alarm kills in this step of its boot after ``limit`` seconds."""
    return f"the {step} of {what} took longer than boot_timeout ({limit:g} s)"


def read(path: Path, status: int) -> BootReport:
    """The report of a process that ended with this wait status before it was ready."""
    return of_text(text_in(path), status)


def of_text(text: str, status: int, noted: str = "") -> BootReport:
    """As ``read``, from the file's text. ``noted``: the process's own ``too_late``, from before its end."""
    code = os.waitstatus_to_exitcode(status)
    if code == BOOT and text:
        problem, _, trace = text.partition("\n")
        return BootReport(problem, trace)
    if code == -signal.SIGALRM:
        return BootReport(noted or "the modules' import took longer than boot_timeout", text)
    return BootReport(f"the process ended before it became ready: {proc.cause_of(status)}", text)


def replace_text(path: Path, text: str) -> None:
    """Replace what the file holds, completely or not at all; what a kill leaves is removed. Raises ``OSError``."""
    draft = path.with_name(f"draft.{os.urandom(8).hex()}")
    draft.write_text(text, "utf-8", "replace")
    draft.replace(path)


def text_in(path: Path, most: int = _MAX_BYTES) -> str:
    """The text that a process left, or empty; never blocks, whatever a job has put in the file's place.

    Of a longer one than ``most`` bytes only the start.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, most).decode("utf-8", "replace").strip()
    except OSError:  # a directory, or a FIFO
        return ""
    finally:
        os.close(fd)


def note_retried(place: Path, cause: str) -> None:
    """By the parent, which is this process: the pool in this directory is down, and is retried."""
    with suppress(OSError):  # no room, or a directory that is not ours: then it is in the log alone
        place.mkdir(mode=0o700, exist_ok=True)
        replace_text(place / _NOTE, f"{BoardName.own()}\n{cause}")


def forget_retried(place: Path) -> None:
    """By the parent: it is no longer down, or no longer retried."""
    for name in (_NOTE, _SIGNAL):
        with suppress(OSError):
            (place / name).unlink()


def cause_of_retry(place: Path) -> str | None:
    """Why the pool in this directory is down, if its parent lives and retries it."""
    name, _, cause = text_in(place / _NOTE).partition("\n")
    return cause if name and BoardName.parsed(Path(name)).has_master else None


def leave_signal(place: Path, signum: signal.Signals) -> None:
    """Leave a signal for the parent of a pool that is down, as it has no master to get it. Raises ``OSError``."""
    replace_text(place / _SIGNAL, signum.name)


def taken_signal(place: Path) -> signal.Signals | None:
    """By the parent: the last signal that was left since the last call."""
    if not (name := text_in(place / _SIGNAL)):
        return None
    with suppress(OSError):
        (place / _SIGNAL).unlink()
    return _KNOWN.get(name)
