"""The signal handlers that are ours, which no child has that user code forks: it would swallow what is to end it."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType

from queuepool.unix import at_fork

Handler = Callable[[int, FrameType | None], None] | signal.Handlers
#: those that this process has installed
_ours: dict[int, Handler] = {}
#: the mask of the thread in which user code forks, which two threads may do at a time
_mask: ContextVar[set[int | signal.Signals]] = ContextVar("mask")
_WANTS_DUMPS = faulthandler.is_enabled()  # who started this Python does


def install(signum: int, handler: Handler) -> None:
    """Have Python call ``handler`` for this signal, in the main thread of this process alone; or set an action."""
    at_fork.watch(_hold, _give_up, _let_go)
    signal.signal(signum, handler)
    _ours[signum] = handler


def _intact() -> list[int]:
    """The signals whose handlers still are ours."""
    return [signum for signum, handler in _ours.items() if signal.getsignal(signum) == handler]


def _hold() -> None:
    """Before user code forks: our handler would catch what comes to the child too early, and it would be lost."""
    _mask.set(signal.pthread_sigmask(signal.SIG_BLOCK, _intact()))


def _let_go() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask.get())


def _give_up() -> None:
    """In the child: what is ours becomes Python's own. Handlers of user code's stay."""
    given_up = _intact()
    for signum in given_up:
        signal.signal(signum, signal.SIG_DFL)
    _ours.clear()
    if signal.getsignal(signal.SIGALRM) == signal.SIG_DFL:  # as far as Python knows: it is faulthandler's
        faulthandler.unregister(signal.SIGALRM)
    faulthandler.disable()  # its file is the worker's, for whose own dump the child's would be taken
    if _WANTS_DUMPS:
        faulthandler.enable(2)
    _let_go()
    # Last: what an interrupt raises here, Python ignores. One that has come already kills.
    if signal.SIGINT in given_up:
        signal.signal(signal.SIGINT, signal.default_int_handler)
