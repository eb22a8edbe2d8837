"""The one place that deals with signals.

The master reads its mail: everything it hears is blocked and taken by ``sigtimedwait``, so it has no handlers, nothing
is lost between a fork and a mask, and there is nothing to be re-entered. A worker's handlers set one attribute, and
raise only while it waits: Python restarts a wait that a handler merely interrupted (PEP 475).
A job's timeout needs no handler at all: SIGALRM keeps its default action, and faulthandler's C code writes the stacks
before it takes effect, also inside C code and with the GIL held.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable, Collection
from types import FrameType
from typing import IO

HEARD = {
    signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT,
    signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD,
}  # fmt: skip

#: whatever terminal a process belongs to
_TERMINAL, _TO_LOOK = "/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
#: Python ignores these in every process of its own accord
_PYTHONS = {signal.SIGPIPE, signal.SIGXFSZ}


def begin(blocked: Collection[signal.Signals] = ()) -> None:
    """First of all in a process that others started: only these are blocked, and every signal has its default action.

    Both pass through ``exec``. Where the end of children is ignored the kernel reaps them itself, so that nobody would
    hear of a dead worker, and a job's subprocesses would all seem to have ended well. HUP stays as it is: where it is
    ignored (nohup), the pool is to live on without its terminal.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)  # first: a stop that comes now must not end us
    for signum in signal.valid_signals() - _PYTHONS - {signal.SIGHUP}:
        if signal.getsignal(signum) == signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)


class Terminal:
    """The one that this process was started on, in its foreground, if there is one and it may end us by its end."""

    def __init__(self) -> None:
        self._is_ours = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and _is_in_foreground()

    @property
    def is_gone(self) -> bool:
        """Whether it was closed: then there is nobody to whom the pool belongs."""
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
    """The master's signals, in the kernel's own queue."""

    def __init__(self) -> None:
        self._terminal = Terminal()

    def open(self) -> None:
        """From now on signals wait until they are read."""
        signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)

    def next(self, timeout: float) -> int | None:
        """The next signal, or ``None`` after ``timeout`` seconds; a HUP of a terminal that was closed is a TERM."""
        info = signal.sigtimedwait(HEARD, max(timeout, 0.0))
        if info is not None and info.si_signo == signal.SIGHUP and self._terminal.is_gone:
            return signal.SIGTERM
        return None if info is None else info.si_signo


class Interrupted(BaseException):
    """A signal ended a wait; never leaves ``WorkerSignals.wait``."""


class WorkerSignals:
    """What a worker or steward has been told by signals."""

    def __init__(self, *, paused: bool = False) -> None:
        self.stop = False
        self.paused = paused
        self._news = False
        self._waiting = False

    def listen(self) -> None:
        """From now on. TERM, INT, QUIT: stop. USR2, CONT: pause, go on. USR1, HUP: only wake."""
        for signum in (*_STOPS, _PAUSE, _CONTINUE, signal.SIGUSR1, signal.SIGHUP):
            signal.signal(signum, self._hear)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)

    def begin_round(self) -> bool:
        """Whether a signal came since the last round; one that comes from now on will end the next wait."""
        news, self._news = self._news, False
        return news

    def wait(self, blocking: Callable[[], object]) -> None:
        """Run ``blocking`` until it returns or a signal arrives, or not at all if one came in this round.

        For waits only: never for ``reserve`` or a settlement, which must not be broken off.
        """
        try:
            self._waiting = True
            try:
                if not (self._news or self.stop):
                    blocking()
            finally:
                self._waiting = False
        except Interrupted:
            pass  # the signal's attribute says what it wanted

    def _hear(self, signum: int, frame: FrameType | None) -> None:
        # One handler for all, which calls nothing: a second signal may be handled between any two of these lines, and
        # if that one raised into this one, what this one has heard would be lost.
        if signum in _STOPS:
            self.stop = True
        elif signum in (_PAUSE, _CONTINUE):
            self.paused = signum == _PAUSE
        self._news = True
        if self._waiting and (frame is None or frame.f_code is not _HEAR):
            self._waiting = False
            raise Interrupted


_STOPS = (int(signal.SIGTERM), int(signal.SIGINT), int(signal.SIGQUIT))
_PAUSE, _CONTINUE = int(signal.SIGUSR2), int(signal.SIGCONT)
_HEAR = WorkerSignals._hear.__code__


class Alarm:
    """The kernel's deadline for one job: stacks into ``trace``, then death by signal 14."""

    def __init__(self, trace: IO[bytes]) -> None:
        self._trace = trace
        self._number = trace.fileno()
        self._identity = os.fstat(self._number)
        self.prepare()

    def prepare(self) -> None:
        """So that it can go off; again, when the user's code may have changed that."""
        faulthandler.unregister(signal.SIGALRM)  # it would not look whether it still is what the kernel calls
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.enable(file=self._trace, all_threads=True)
        faulthandler.register(signal.SIGALRM, file=self._trace, all_threads=True, chain=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    def is_intact(self) -> bool:
        """Whether the trace file is still open, and its number nobody else's."""
        try:
            now = os.fstat(self._number)
        except OSError:
            return False
        return now.st_ino == self._identity.st_ino and now.st_dev == self._identity.st_dev

    def is_open(self) -> bool:
        """Whether that number is in use at all: a third of the time."""
        try:
            os.lseek(self._number, 0, os.SEEK_CUR)
        except OSError:
            return False
        return True

    def arm(self, seconds: float) -> None:
        """``seconds`` from now; 0 = never. For every job anew: the one before may have used the timer itself."""
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def disarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def leave_signals_to_the_main_thread() -> None:
    """In another thread: a signal that it took would not end the main thread's wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def default_actions() -> None:
    """In a fresh child: nothing of the master's mask or handlers."""
    for signum in HEARD | {signal.SIGALRM}:
        # Not without need: the kernel would throw away a CONT that the master has sent already, since to ignore it is
        # its default, and who was forked paused would stay so.
        if signal.getsignal(signum) != signal.SIG_DFL:
            signal.signal(signum, signal.SIG_DFL)
