"""Why a process failed to boot, and why a pool is down: reports beside the board, where the others read them.

While a pool is down and its parent retries it, a file here also holds the last signal that a command had for it: there
is no master to signal, and the parent, which serves other pools too, must not be signalled in its place.
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
#: the signals that commands leave; any other is ignored, since a job may have written the file
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
    """The problem to report if the alarm kills the process in this step of its boot, after ``limit`` seconds."""
    return f"the {step} of {what} took longer than boot_timeout ({limit:g} s)"


def read(path: Path, status: int) -> BootReport:
    """The report of a process that ended with this wait status before it was ready."""
    return of_text(text_in(path), status)


def of_text(text: str, status: int, noted: str = "") -> BootReport:
    """As ``read``, from the file's text. ``noted``: what ``too_late`` gave the process before it ended."""
    code = os.waitstatus_to_exitcode(status)
    if code == BOOT and text:
        problem, _, trace = text.partition("\n")
        return BootReport(problem, trace)
    if code == -signal.SIGALRM:
        return BootReport(noted or "the modules' import took longer than boot_timeout", text)
    return BootReport(f"the process ended before it became ready: {proc.cause_of(status)}", text)


def replace_text(path: Path, text: str) -> None:
    """Replace the file's content, completely or not at all; a draft left by a kill is removed. Raises ``OSError``."""
    draft = path.with_name(f"draft.{os.urandom(8).hex()}")
    draft.write_text(text, "utf-8", "replace")
    draft.replace(path)


def text_in(path: Path, most: int = _MAX_BYTES) -> str:
    """The text that a process left, or empty; never blocks, whatever a job has put in the file's place.

    At most its first ``most`` bytes.
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
    """By the parent: record that the pool in this directory is down, and that this process retries it."""
    with suppress(OSError):  # no room, or a directory that is not ours: then only the log has it
        place.mkdir(mode=0o700, exist_ok=True)
        replace_text(place / _NOTE, f"{BoardName.own()}\n{cause}")


def forget_retried(place: Path) -> None:
    """By the parent: remove that record. The pool is no longer down, or no longer retried."""
    for name in (_NOTE, _SIGNAL):
        with suppress(OSError):
            (place / name).unlink()


def cause_of_retry(place: Path) -> str | None:
    """Why the pool in this directory is down, if its parent lives and retries it."""
    name, _, cause = text_in(place / _NOTE).partition("\n")
    return cause if name and BoardName.parsed(Path(name)).has_master else None


def leave_signal(place: Path, signum: signal.Signals) -> None:
    """Leave a signal for the parent of a pool that is down, as there is no master to receive it. Raises ``OSError``."""
    replace_text(place / _SIGNAL, signum.name)


def taken_signal(place: Path) -> signal.Signals | None:
    """By the parent: the last signal left since the last call."""
    if not (name := text_in(place / _SIGNAL)):
        return None
    with suppress(OSError):
        (place / _SIGNAL).unlink()
    return _KNOWN.get(name)
