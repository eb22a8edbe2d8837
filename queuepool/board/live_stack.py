"""Where a worker is in its code while its job goes on, even in C code that holds the interpreter's lock.

On a signal, C code in the worker writes its stack to a file beside the board
(``unix.signals.write_stack_on_request``). A stack has no end mark, so it is requested twice: the handler does not
interrupt itself, so once the second stack begins the first is complete.

What a coroutine awaits is on no thread's stack: Python code in the worker answers for these, in the main thread, at a
signal (``LiveStacks``). If C code holds the interpreter's lock there is no answer: then that code is on a stack.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from queuepool.board.board import Board, Slot
from queuepool.board.record import as_count
from queuepool.errors import NoStack
from queuepool.unix import fork, proc
from queuepool.unix.originals import sleep
from queuepool.unix.signals import LIVE_STACK

#: how faulthandler begins a stack, the innermost frame first
HEAD = b"Stack (most recent call first):\n"
#: how the stacks of a job's tasks end; an empty line is between two of them
_TASKS_END = b"\nEnd of tasks\n"
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')
#: seconds between looks, and bytes above which the file is emptied before the next request
_MOMENT, _FULL = 0.002, 256 * 1024
#: seconds until the tasks are asked for again
_AGAIN = 0.1
_TO_CLEAR = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
#: most tasks of a job, and most frames of each
_MOST_TASKS, _DEEPEST = 100, 100
#: of coroutines, generators and async generators: where each has its frame, and what it awaits
_KINDS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


class Frame(NamedTuple):
    """One frame; ``line`` is 0 where it is not known."""

    file: str
    line: int
    function: str


def stack_of(board: Board, slot: Slot, timeout: float = 2.0) -> str:
    """The stack of the thread that runs the jobs of this worker, the innermost frame first; waits ``timeout`` seconds.

    It holds names and places in the code, and no values. Raises ``NoStack``.
    """
    path, until = board.stacks(slot), time.monotonic() + timeout
    try:
        _refuse(slot, path)
        before = _start(path)
        for wanted in (1, 2):
            _ask(slot)
            while (text := _written(path, before)).count(HEAD) < wanted:
                if time.monotonic() >= until:
                    raise NoStack(f"pid {slot.pid} has written no stack in {timeout:g} s: it may be stopped")
                sleep(_MOMENT)
    except OSError as error:
        raise NoStack(f"pid {slot.pid}: {error.strerror}") from error
    return text.split(HEAD)[1].decode("utf-8", "replace")


def frames_in(text: str) -> list[Frame]:
    """The frames of a stack, the innermost first."""
    found = (_FRAME.match(line) for line in text.splitlines())
    return [Frame(one[1], int(one[2]) if one[2].isdecimal() else 0, one[3]) for one in found if one]


def _refuse(slot: Slot, path: Path) -> None:
    """Raise ``NoStack`` if the process has no handler of ours for the signal, or would not write to this file."""
    if not proc.is_alive(slot.pid, slot.start_time):
        raise NoStack(f"pid {slot.pid} has ended")
    if proc.catches(slot.pid, LIVE_STACK) is False:
        raise NoStack(f"pid {slot.pid} does not listen: it still imports its modules, or runs another program")
    if proc.has_open(slot.pid, path) is False:
        raise NoStack(f"pid {slot.pid} has closed its files")


def tasks_of(board: Board, slot: Slot, lane: int | None, timeout: float = 0.5) -> list[list[Frame]] | None:
    """The stacks of the tasks of the job in this lane, or of the only job; ``None`` if C code prevents an answer.

    The board must be open to write. Raises ``NoStack``.
    """
    path, until, number = board.stacks(slot), time.monotonic() + timeout, -1 if lane is None else lane
    try:
        _refuse(slot, path)
        before = _start(path)
        while time.monotonic() < until:
            slot.stack_lane = number + 1
            slot.stack_wanted = as_count(slot.stack_wanted) + 1
            fork.signal_other(slot.pid, signal.SIGUSR1, lambda pid: proc.is_alive(pid, slot.start_time))
            again = time.monotonic() + _AGAIN  # somebody else may have asked for another lane just then
            while time.monotonic() < again:
                _, _, rest = _written(path, before).partition(_tasks_head(number))
                text, end, _ = rest.partition(_TASKS_END)
                if end:
                    found = map(frames_in, text.decode("utf-8", "replace").split("\n\n"))
                    return [frames for frames in found if frames]
                sleep(_MOMENT)
    except OSError as error:
        raise NoStack(f"pid {slot.pid}: {error.strerror}") from error
    return None


def _tasks_head(lane: int) -> bytes:
    """How the stacks of the tasks of the job in this lane begin; -1 = of the only job."""
    return b"Tasks of %d\n" % lane


def _ask(slot: Slot) -> None:
    def is_same(pid: int) -> bool:
        return proc.is_alive(pid, slot.start_time)

    if slot.lanes and slot.lanes.native_thread:
        fork.signal_thread_of_other(slot.pid, slot.lanes.native_thread, LIVE_STACK, is_same)
    else:
        fork.signal_other(slot.pid, LIVE_STACK, is_same)


def _start(path: Path) -> int:
    """Where the next stack begins in the file."""
    size = path.stat().st_size
    if size <= _FULL:
        return size
    fd = os.open(path, _TO_CLEAR)
    with suppress(OSError):
        os.ftruncate(fd, 0)  # the worker appends
    os.close(fd)
    return 0


def _written(path: Path, first: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(first if first <= size else 0)  # somebody else has emptied it
        return file.read()


class LiveStacks:
    """Answers for one worker. ``tasks``: those of the job in this lane; of the only job for ``None``."""

    def __init__(self, slot: Slot, file: IO[bytes], tasks: Callable[[int | None], Iterable[Any]]) -> None:
        self._slot = slot
        self._file = file
        self._tasks = tasks
        self._given = slot.stack_wanted

    def look(self) -> None:
        """From a signal's handler, at any moment: write what is wanted, once."""
        wanted = self._slot.stack_wanted
        if wanted == self._given:
            return
        self._given = wanted
        lane = self._slot.stack_lane - 1
        # An exception here would be raised in the middle of a job, so there is no answer instead.
        with suppress(Exception):  # closed or full; the loop's thread has changed the tasks; the user's own awaitables
            tasks = list(self._tasks(lane if lane >= 0 else None))[:_MOST_TASKS]
            text = "\n\n".join("\n".join(_frames_awaited(task.get_coro())) for task in tasks)
            os.write(self._file.fileno(), _tasks_head(lane) + text.encode("utf-8", "replace") + _TASKS_END)


def _frames_awaited(work: Any) -> list[str]:
    """The frames of a coroutine and of all that it awaits, the innermost first, as faulthandler writes them."""
    frames = [f'  File "{code.co_filename}", line {line} in {code.co_qualname}' for code, line in _codes_awaited(work)]
    return frames[::-1]


def _codes_awaited(work: Any) -> Iterator[tuple[Any, int]]:
    """The code of each and the line where it is, the outermost first."""
    for _ in range(_DEEPEST):
        kind = next((kind for kind in _KINDS if hasattr(work, kind[0])), None)
        if kind is None:
            return  # a future, or the end
        if frame := getattr(work, kind[0]):  # else it is over
            yield frame.f_code, frame.f_lineno or 0
        work = getattr(work, kind[1])
