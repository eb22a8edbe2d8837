"""Exceptions as text, for the failed store and the log, whatever the exception's own code does."""

from __future__ import annotations

import importlib
import os
import re
import traceback
from itertools import islice, takewhile
from types import TracebackType

from queuepool.errors import AttemptLost, JobError

#: how many frames are shown of a traceback that is too deep, and how many make it so
_MAX_FRAMES, _DEEP = 100, 5000
#: how the names of our own files begin
OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
#: what calls the user's imports
_BOOTING = (f'File "{OURS}worker/boot.py"', f'File "{OURS}worker/django_support.py"')
#: what Python writes between an exception and the one that it led to, which comes last
_LED_TO = re.compile(
    "\n\n(?:The above exception was the direct cause of the following exception"
    "|During handling of the above exception, another exception occurred):\n\n"
)
_HEADS = ("Traceback (most recent call last):", "Exception Group Traceback (most recent call last):")
_CUT = "[…]"
_IMPORTING = ('File "<frozen importlib', f'File "{importlib.__file__}"')
#: most characters of a text: an exception's is the user's data, of any content and size
MAX_TEXT = 64 * 1024


def text_of(error: BaseException) -> str:
    """The traceback, cut to ``MAX_TEXT``; for an attempt that ended with its process, faulthandler's dump."""
    if isinstance(error, AttemptLost):
        text = f"{type(error).__name__}: {error}\n{users_part(error.trace)}"
    elif isinstance(error, JobError):
        text = f"{type(error).__name__}: {error}"  # our own decision: where we raised it is of no use
    else:
        text = traceback_of(error)
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n{_CUT}\n{text[-MAX_TEXT // 2 :]}"
    return text


def traceback_of(error: BaseException) -> str:
    """The traceback from the user's first frame on: our frames and those of the import explain nothing."""
    try:
        # Show the last frames: an endless recursion has millions.
        limit = -_MAX_FRAMES if _is_deep(error) else None
        return "".join(traceback.format_exception(type(error), error, users_traceback(error), limit=limit))
    except (MemoryError, RecursionError):
        return f"{type(error).__name__}: the traceback could not be formatted"


def users_traceback(error: BaseException) -> TracebackType | None:
    """The traceback from the user's first frame on; ``None`` if all are ours."""
    frames = error.__traceback__
    while frames and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return frames


def _is_deep(error: BaseException | None) -> bool:
    """Whether the exception, or one that led to it, has more frames than anyone would read."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if next(islice(traceback.walk_tb(error.__traceback__), _DEEP, None), None):
            return True
        error = error.__context__ if error.__cause__ is None else error.__cause__
    return False


def users_part(dump: str) -> str:
    """A faulthandler dump with each thread cut after the user's frames; a thread of only our frames stays whole."""
    return _threads_from(dump, (f'File "{OURS}',))


def imports_part(dump: str) -> str:
    """As ``users_part``, of a process that imported the user's modules; the frames of Python's import are left out."""
    # Our frames within the import stay: a module that pushes a job hangs in us, and is itself below.
    threads = _threads_from(dump, _BOOTING).splitlines()
    return "\n".join(line for line in threads if not any(file in line for file in _IMPORTING))


def _threads_from(dump: str, callers: tuple[str, ...]) -> str:
    """The dump with each thread cut before the first of these frames, from the innermost on, unless it begins so."""
    threads = []
    for thread in dump.split("\n\n"):
        head, *frames = thread.splitlines() or [""]
        users = list(takewhile(lambda frame: not any(caller in frame for caller in callers), frames))
        threads.append("\n".join([head, *(users or frames)]))
    return "\n\n".join(threads)


def _is_ours(file: str) -> bool:
    return file.startswith((OURS, "<frozen importlib")) or file == importlib.__file__


def summary(error: BaseException) -> str:
    """``TYPE: text``, for a line of a log."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - an exception's __str__ is the user's code
        text = f"<its text cannot be shown: {type(broken).__name__}>"
    return f"{type(error).__name__}: {text}"


def headline(text: str) -> str:
    """The line of a recorded exception that shows what was raised: its class, and the first line of its message.

    Of a chain that is the last exception, of a group the group. Below that line are more lines of its message and its
    notes; what PHP has recorded begins with it.
    """
    lines = [line for line in map(_without_rails, _LED_TO.split(text)[-1].splitlines()) if line.strip()] or [""]
    return next((line for line in lines if not line.startswith((" ", *_HEADS, _CUT))), lines[0])


def _without_rails(line: str) -> str:
    """A line of an exception group without what is drawn before it; one of its members stays indented."""
    return line[4:] if line.startswith(("  | ", "  + ")) else line
