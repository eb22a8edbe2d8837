"""A child that user code forks keeps nothing of ours: it behaves as it would under Python alone.

Our own forks are exempt, as their children need what they inherit: blocked signals, handlers, a log.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import NoReturn

from queuepool.unix.exit_codes import BROKEN, FAILED, OK

Call = Callable[[], None]
#: whether this thread is at a fork of ours
_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)
#: what is called in children that user code forks; inherited by all
_watchers: list[Call] = []
_fork = os.fork


def fork() -> int:
    """As ``os.fork``, for a process of ours. Raises ``OSError``."""
    token = _is_ours.set(True)
    try:
        return _fork()
    finally:
        _is_ours.reset(token)


def watch(before: Call, in_child: Call, in_parent: Call | None = None) -> None:
    """Have these called around each fork by user code, from now on; repeating it does nothing.

    They must not block, and Python ignores what they raise.
    """
    if in_child not in _watchers:
        _watchers.append(in_child)
        os.register_at_fork(
            before=_unless_ours(before), after_in_child=_unless_ours(in_child), after_in_parent=_unless_ours(in_parent)
        )


def _unless_ours(call: Call | None) -> Call:
    def of_users() -> None:
        if call is not None and not _is_ours.get():
            call()

    return of_users


def leave_if_copy(pid: int, error: BaseException | None = None) -> None:
    """Call after user code: if this is no longer process ``pid``, it is a child that returned into our code: end it."""
    if os.getpid() != pid:
        leave(error)


def leave(error: BaseException | None = None) -> NoReturn:
    """End such a child: with an error as Python would; without one it must not go on as its parent does."""
    code = BROKEN if error is None else FAILED
    try:
        if isinstance(error, SystemExit):
            code = _code_of(error)
        elif error is not None:
            traceback.print_exception(error)
    finally:
        with suppress(OSError, ValueError):  # closed
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _code_of(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return (ended.code or OK) & 0xFF
    sys.stderr.write(f"{ended.code}\n")
    return FAILED
