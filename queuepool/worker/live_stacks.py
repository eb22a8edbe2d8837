"""Where the coroutines of a running job are, on request: written in the main thread, at a signal.

What a coroutine awaits is on no thread's stack. If C code holds the interpreter's lock there is no answer: then that
code is on a stack (``board/live_stack.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

from queuepool.board.fields import Slot
from queuepool.board.live_stack import TASKS_END, tasks_head

#: most tasks of a job, and most frames of each
_MOST, _DEEPEST = 100, 100
#: of coroutines, generators and async generators: where each has its frame, and what it awaits
_KINDS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


class LiveStacks:
    """Answers for one worker. ``tasks_of``: the tasks of the job in this lane; of the only job for ``None``."""

    def __init__(self, slot: Slot, file: IO[bytes], tasks_of: Callable[[int | None], Iterable[Any]]) -> None:
        self._slot = slot
        self._file = file
        self._tasks_of = tasks_of
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
            tasks = list(self._tasks_of(lane if lane >= 0 else None))[:_MOST]
            text = "\n\n".join("\n".join(frames_of(task.get_coro())) for task in tasks)
            os.write(self._file.fileno(), tasks_head(lane) + text.encode("utf-8", "replace") + TASKS_END)


def frames_of(work: Any) -> list[str]:
    """The frames of a coroutine and of all that it awaits, the innermost first, as faulthandler writes them."""
    frames = [f'  File "{code.co_filename}", line {line} in {code.co_qualname}' for code, line in _awaited(work)]
    return frames[::-1]


def _awaited(work: Any) -> Iterator[tuple[Any, int]]:
    """The code of each and the line where it is, the outermost first."""
    for _ in range(_DEEPEST):
        kind = next((kind for kind in _KINDS if hasattr(work, kind[0])), None)
        if kind is None:
            return  # a future, or the end
        if frame := getattr(work, kind[0]):  # else it is over
            yield frame.f_code, frame.f_lineno or 0
        work = getattr(work, kind[1])
