"""Why a process failed to boot: it leaves a report beside the board, where the others read it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from queuepool.errors import BootFailure
from queuepool.unix import proc
from queuepool.unix.exit_codes import BOOT

_MAX_BYTES = 64 * 1024


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
