"""The one place that deals with signals.

The master blocks the signals that it handles and reads them with ``sigtimedwait``. It has no handlers, so no signal is
lost between a fork and a mask, and no code is re-entered. A worker's handlers set attributes, and raise only while the
worker waits: Python restarts a wait that a handler merely interrupted (PEP 475).
A job's timeout needs no Python handler: SIGALRM keeps its default action, and faulthandler's C code writes the stacks
before it takes effect, even inside C code and with the GIL held.
A child that user code forks does not keep our handlers: they would swallow the signals meant to end it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import IO, TYPE_CHECKING

from queuepool.unix import at_fork, proc
from queuepool.unix.exit_codes import INTERRUPTED, LEFT
from queuepool.unix.originals import is_in_library

if TYPE_CHECKING:
    from _typeshed import TraceFunction

HANDLED = {
    signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT,
    signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD,
}  # fmt: skip
#: those that ask a process to end
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_STOPS = tuple(map(int, STOPS))
_PAUSE, _CONTINUE, _WAKE = int(signal.SIGUSR2), int(signal.SIGCONT), int(signal.SIGUSR1)
#: the terminal that a process belongs to
_TERMINAL, _TO_LOOK = "/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
#: Python itself ignores these in every process
_PYTHONS = {signal.SIGPIPE, signal.SIGXFSZ}
#: the file of a frame that imports
_IMPORT = "<frozen importlib._bootstrap>"
#: whether this Python was started with faulthandler on
_WANTS_DUMPS = faulthandler.is_enabled()
Handler = Callable[[int, FrameType | None], None] | signal.Handlers
#: the handlers that this process has installed
_ours: dict[int, Handler] = {}
#: the signal mask of the thread in which user code forks; two threads may fork at a time
_mask: ContextVar[set[int | signal.Signals]] = ContextVar("mask")


def reset_inherited(blocked: Collection[signal.Signals] = ()) -> None:
    """Call first in a process that others started: only ``blocked`` is blocked, and no signal is ignored.

    Both are inherited through ``exec``. Where SIGCHLD is ignored, the kernel reaps children itself: a worker's death
    would go unnoticed, and all of a job's subprocesses would seem to have succeeded. HUP stays as it is: where it is
    ignored (nohup), the pool is to outlive its terminal.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)  # first: a stop that arrives now must not end us
    for signum in signal.valid_signals() - _PYTHONS - {signal.SIGHUP}:
        if signal.getsignal(signum) == signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)


class Terminal:
    """The terminal in whose foreground this process was started, if there is one and HUP is not ignored."""

    def __init__(self) -> None:
        self._is_ours = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and _is_in_foreground()

    @property
    def is_gone(self) -> bool:
        """Whether it was closed: then the pool has lost its owner."""
        return self._is_ours and not _has_terminal()


def _is_in_foreground() -> bool:
    try:
        terminal = os.open(_TERMINAL, _TO_LOOK)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _has_terminal() -> bool:
    try:
        os.close(os.open(_TERMINAL, _TO_LOOK))
    except OSError:
        return False
    return True


class Mailbox:
    """The master's signals, queued by the kernel."""

    def __init__(self) -> None:
        self._terminal = Terminal()

    def open(self) -> None:
        """Block the signals, so that they wait until they are read."""
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)

    def next(self, timeout: float) -> int | None:
        """The next signal, or ``None`` after ``timeout`` seconds; a HUP because our terminal was closed is a TERM."""
        info = signal.sigtimedwait(HANDLED, max(timeout, 0.0))
        if info is not None and info.si_signo == signal.SIGHUP and self._terminal.is_gone:
            return signal.SIGTERM
        return None if info is None else info.si_signo


class Interrupted(BaseException):
    """A signal ended a wait; never leaves ``WorkerSignals.wait``."""


class WorkerSignals:
    """What signals have asked of a worker or steward."""

    def __init__(self, *, paused: bool = False) -> None:
        self.stop = False
        self.paused = paused
        #: called in the signal's handler, possibly in the middle of a job, when another process wakes us: it must not
        #: raise
        self.woken: Callable[[], object] = _nothing
        self._news = False
        self._waiting = False
        #: whether a trace function of ours is set (``_raise_behind``), and that of a debugger, say, which it stands for
        self._traces = False
        self._traced_by: TraceFunction | None = None

    def listen(self) -> None:
        """Install the handlers. TERM, INT, QUIT: stop. USR2, CONT: pause, continue. USR1, HUP: only wake."""
        for signum in (*_STOPS, _PAUSE, _CONTINUE, signal.SIGUSR1, signal.SIGHUP):
            install(signum, self._on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)

    def let_end(self) -> None:
        """Have TERM and INT end this process at once, even in C code, until it listens again: it holds no job yet.

        QUIT ends it when Python next looks, since its own action writes a core.
        """
        for signum in STOPS:
            if signum == signal.SIGQUIT or os.getpid() == 1:  # the kernel takes no default action on process 1
                install(signum, _end)
            else:
                install(signum, signal.SIG_DFL)
        if self.stop:  # the stop came before
            _end(signal.SIGTERM, None)

    def let_end_if(self, may_end: Callable[[], bool]) -> None:
        """Have a stop end this process when Python next looks, if ``may_end()`` says so then; else it is noted."""

        def handle(signum: int, frame: FrameType | None) -> None:
            self.stop = True
            if may_end():
                _end(signum, frame)

        for signum in STOPS:
            install(signum, handle)
        if self.stop:  # the stop came before
            handle(signal.SIGTERM, None)

    def wake(self) -> None:
        """As a signal that only wakes, from within."""
        self._news = True

    def begin_round(self) -> bool:
        """Whether a signal came since the last round; a signal from now on ends the next wait."""
        news, self._news = self._news, False
        return news

    def wait(self, blocking: Callable[[], object]) -> None:
        """Run ``blocking`` until it returns or a signal arrives, or not at all if one came in this round.

        For waits only: never for ``reserve`` or a settlement, which must not be interrupted.
        """
        try:
            self._waiting = True
            try:
                if not (self._news or self.stop):
                    blocking()
            finally:
                self._waiting = False
        except Interrupted:
            pass  # the attributes hold what the signal asked for
        finally:
            if self._traces:
                self._traces = False
                sys.settrace(self._traced_by)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        # One handler for all signals, and it calls nothing before it has noted the signal: a second one may be handled
        # between any two of these lines, and if its handler raised into this one, the first signal would be lost.
        if signum in _STOPS:
            self.stop = True
        elif signum in (_PAUSE, _CONTINUE):
            self.paused = signum == _PAUSE
        self._news = True
        if self._waiting and (frame is None or frame.f_code is not _HANDLER) and not is_in_library(frame):
            if not _is_in_finalizer(frame):
                self._waiting = False
                if signum == _WAKE:
                    self.woken()
                raise Interrupted
            self._raise_behind(frame)
        if signum == _WAKE:
            self.woken()

    def _raise_behind(self, finalizer: FrameType | None) -> None:
        """End the wait as soon as the finalizer has ended: Python prints what one raises, and drops it."""

        def trace(frame: FrameType, event: str, argument: object) -> None:
            if self._waiting and not (_is_in_finalizer(frame) or is_in_library(frame)):
                self._waiting = False
                sys.settrace(None)
                raise Interrupted

        if not self._traces:
            self._traces, self._traced_by = True, sys.gettrace()
        frame = finalizer
        while frame:  # the next line of whatever the finalizer has come into
            frame.f_trace = trace
            frame = frame.f_back if frame.f_code is not _WAIT else None
        sys.settrace(trace)


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Whether what the wait has called is in a ``__del__``."""
    while frame and frame.f_code is not _WAIT and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None and frame.f_code is not _WAIT


def _nothing() -> None:
    return None


def _end(signum: int, frame: FrameType | None) -> None:
    os._exit(LEFT)


_HANDLER, _WAIT = WorkerSignals._on_signal.__code__, WorkerSignals.wait.__code__


class Alarm:
    """The kernel's deadline for one job: writes the stacks to ``trace``, then kills the process by signal 14."""

    def __init__(self, trace: IO[bytes]) -> None:
        self._trace = trace
        self._number = trace.fileno()
        self._identity = os.fstat(self._number)
        self.prepare()

    def prepare(self) -> None:
        """Set up handler, file and mask; call again when user code may have changed them."""
        faulthandler.unregister(signal.SIGALRM)  # or register would keep an entry that the kernel no longer calls
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.enable(file=self._trace, all_threads=True)
        faulthandler.register(signal.SIGALRM, file=self._trace, all_threads=True, chain=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    def is_intact(self) -> bool:
        """Whether the trace file is still open and its descriptor was not reused for another file."""
        try:
            now = os.fstat(self._number)
        except OSError:
            return False
        return now.st_ino == self._identity.st_ino and now.st_dev == self._identity.st_dev

    def is_open(self) -> bool:
        """Whether the descriptor is in use at all; takes a third of the time of ``is_intact``."""
        try:
            os.lseek(self._number, 0, os.SEEK_CUR)
        except OSError:
            return False
        return True

    def arm(self, seconds: float) -> None:
        """Fire in ``seconds``; 0 = never. Call for every job: the one before may have used the timer itself."""
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def disarm(self) -> None:
        """Cancel the deadline."""
        signal.setitimer(signal.ITIMER_REAL, 0.0)


#: makes a worker's C code write its stack. By default the kernel ignores this signal, so it harms no other process
LIVE_STACK = signal.SIGURG


def write_stack_on_request(file: IO[bytes]) -> None:
    """From now on write the main thread's stack to ``file`` at each ``LIVE_STACK``, also in C code; the job goes on.

    System calls are restarted. Only that thread's stack is written: another thread may run meanwhile, and its frames
    must not be read. Registered once: a library that takes over the signal (Go's does) then keeps it, and so does one
    that already has it.
    """
    if not proc.catches(os.getpid(), LIVE_STACK):
        faulthandler.register(LIVE_STACK, file=file, all_threads=False, chain=False)


def listen_for(signum: signal.Signals, handler: Handler) -> None:
    """Have Python call ``handler`` for this signal, in the main thread. Repeat it after user code has run."""
    install(signum, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})


def leave_signals_to_the_main_thread() -> None:
    """Block all signals in another thread: one that it received would not end the main thread's wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def default_actions() -> None:
    """In a fresh child: give the signals that we use their default actions. The mask stays as it is."""
    for signum in HANDLED | {signal.SIGALRM}:
        # Only where needed: the kernel discards a pending CONT when its action is set to the default, which is to
        # ignore it, and a worker that was forked paused would stay paused.
        if signal.getsignal(signum) != signal.SIG_DFL:
            signal.signal(signum, signal.SIG_DFL)


def handle_ctrl_c() -> None:
    """In a command: exit at once if interrupted during an import; elsewhere Ctrl-C is ``KeyboardInterrupt`` as always.

    During an import Python may turn it into another exception (``__set_name__``, up to 3.11) or lose it (in the
    callbacks of its own locks). Nothing has to be undone there: a command leaves by ``os._exit`` in any case.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a script's background process ignores it
        signal.signal(signal.SIGINT, _interrupted)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """In a command: Ctrl-C waits for the end of the block, so that what is under way ends with a known result."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupted(_: int, frame: FrameType | None) -> None:
    while frame:
        if frame.f_code.co_filename == _IMPORT:
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def install(signum: int, handler: Handler) -> None:
    """Have Python call ``handler`` for this signal, in the main thread of this process alone; or set an action."""
    at_fork.watch(_hold, _give_up, _let_go)
    signal.signal(signum, handler)
    _ours[signum] = handler


def _intact() -> list[int]:
    """The signals whose handlers still are ours."""
    return [signum for signum, handler in _ours.items() if signal.getsignal(signum) == handler]


def _hold() -> None:
    """Before user code forks: a signal that came to the child too early would be lost in our handler."""
    _mask.set(signal.pthread_sigmask(signal.SIG_BLOCK, _intact()))


def _let_go() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask.get())


def _give_up() -> None:
    """In the child: our handlers give way to Python's own; those of user code stay."""
    given_up = _intact()
    for signum in given_up:
        signal.signal(signum, signal.SIG_DFL)
    _ours.clear()
    if signal.getsignal(signal.SIGALRM) == signal.SIG_DFL:  # as far as Python knows: it is faulthandler's
        faulthandler.unregister(signal.SIGALRM)
    faulthandler.unregister(LIVE_STACK)
    faulthandler.disable()  # its file is the worker's: a dump of the child would be taken for the worker's own
    if _WANTS_DUMPS:
        faulthandler.enable(2)
    _let_go()
    # Last: Python ignores what an interrupt raises here. One that came before this kills.
    if signal.SIGINT in given_up:
        signal.signal(signal.SIGINT, signal.default_int_handler)
