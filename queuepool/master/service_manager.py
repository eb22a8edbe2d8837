"""Notifications for a service manager (systemd): ready, reloading, stopping, how long that may take, and that we run.

A ping shows that the master's loop runs, and nothing about the store or the jobs: those have their own deadlines, and a
restart would repair neither.
Source: sd_notify(3) and sd_watchdog_enabled(3).
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from queuepool.board.board import RUNS_JOBS, Board, Role, Slot, State
from queuepool.board.health import health_of
from queuepool.board.status import boot_problem, overview, renewed, title
from queuepool.config.settings import PoolSettings

#: longest time in seconds between two passes of a loop that notifies
PASS = 0.25
#: seconds between two changes of the words, and between two requests for time
_WORDS_INTERVAL = 1.0
#: most characters of the words: systemd drops a message of more than 4,096 bytes whole, with all that is in it
_MAX_WORDS = 900
#: most seconds to ask for: a job can write any deadline on the board, and a time must be a number of microseconds
_MOST_TIME = 10 * 365 * 86400.0
#: pings within the time that the watchdog waits for one
_PINGS = 3
#: the variables that name the manager's socket and its watchdog
_SOCKET, _PID, _USEC = "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"
#: most bytes of a socket's address, and the shortest watchdog in seconds: a master's pass may take a quarter of it
_MAX_ADDRESS, _MIN_WATCHDOG = 107, 1.0
#: the manager has not yet read earlier messages; the next one includes this
_FULL = (errno.EAGAIN, errno.ENOBUFS)
#: seconds after a deadline in which the pool still has to start its workers, or to settle the last job
_MARGIN = 5.0
#: seconds between two reads of the board and the files beside it, which take much longer than a pass; a new state is
#: read at once
_READ_INTERVAL = 5.0
_log = logging.getLogger("queuepool")


class Signs(NamedTuple):
    """How the service is after one pass. ``words`` are for people. Times are monotonic seconds."""

    words: str
    is_ready: bool
    is_reloading: bool = False
    is_stopping: bool = False
    #: the start, or the running jobs, may take until then; 0.0 = as long as the unit allows
    until: float = 0.0
    #: whether every loop concerned has come round lately
    is_live: bool = True
    #: the worst of what is wrong, in words for people; empty if nothing is
    trouble: str = ""


class _Phase(Enum):
    """What the manager was last notified of, with the lines that did it."""

    STARTING = ""
    READY = "READY=1"
    RELOADING = "RELOADING=1"
    STOPPING = "STOPPING=1"


class Herald:
    """Call ``notify`` at the end of each pass, at least every ``PASS`` seconds."""

    def __init__(self, notify_socket: NotifySocket) -> None:
        self._socket = notify_socket
        self._phase = _Phase.STARTING
        self._words = ""
        self._next_words = 0.0
        self._next_ping = 0.0

    def __bool__(self) -> bool:
        return bool(self._socket)

    def notify(self, signs: Signs, now: float) -> None:
        """Send what has changed in one message. What is not delivered counts as not sent. ``now`` is monotonic."""
        phase = self._next_phase(signs)
        words = self._new_words(signs, phase, now)
        pings = signs.is_live and bool(self._socket.watchdog) and now >= self._next_ping
        lines = [*self._lines_of(phase, now), *words, *(["WATCHDOG=1"] if pings else [])]
        if not lines or not self._socket.send(lines):
            return
        self._phase = phase
        if words:
            self._words, self._next_words = signs.words, now + _WORDS_INTERVAL
        if pings:  # as early as the next pass would be too late
            self._next_ping = now + self._socket.watchdog / _PINGS - PASS

    def _next_phase(self, signs: Signs) -> _Phase:
        if signs.is_stopping:
            return _Phase.STOPPING
        if not signs.is_ready:
            return _Phase.STARTING
        return _Phase.RELOADING if signs.is_reloading and self._phase is not _Phase.STARTING else _Phase.READY

    def _lines_of(self, phase: _Phase, now: float) -> list[str]:
        if phase is self._phase:
            return []
        is_reload = phase is _Phase.RELOADING
        return [phase.value, *([f"MONOTONIC_USEC={int(now * 1e6)}"] if is_reload else [])]

    def _new_words(self, signs: Signs, phase: _Phase, now: float) -> list[str]:
        """The words, if they have changed, and a request for more time, if one is needed."""
        if now < self._next_words and phase is self._phase:
            return []
        words = [f"STATUS={one_line(signs.words)[:_MAX_WORDS]}"] if signs.words != self._words else []
        takes_longer = phase in (_Phase.STARTING, _Phase.STOPPING) and now < signs.until
        usec = int(min(signs.until - now, _MOST_TIME) * 1e6)
        return [*words, *([f"EXTEND_TIMEOUT_USEC={usec}"] if takes_longer else [])]


def one_line(words: str) -> str:
    """As a line of a message; control characters become spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


class NotifySocket:
    """The manager's socket: sends datagrams without waiting. A problem is logged once; later messages are tried too.

    ``address`` is a path, or ``@`` and an abstract name; empty = there is no service manager.
    ``watchdog``: seconds within which it wants to be pinged; 0.0 = it does not.
    """

    def __init__(self, address: str = "", watchdog: float = 0.0) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog = watchdog
        self._has_warned = False

    @classmethod
    def taken_from(cls, environ: MutableMapping[str, str]) -> NotifySocket:
        """The one that these variables name. They are removed: a program that a job starts must not notify for us."""
        address, pid, usec = (environ.pop(name, "") for name in (_SOCKET, _PID, _USEC))
        if not address:
            return cls()
        if problem := _problem_of(address):
            _log.warning("%s=%s is ignored: %s", _SOCKET, address[:_MAX_ADDRESS], problem)
            return cls()
        return cls(address, _watchdog(usec) if usec and pid in ("", str(os.getpid())) else 0.0)

    def __bool__(self) -> bool:
        return bool(self._address)

    def send(self, lines: list[str]) -> bool:
        """Send one message; returns whether it arrived."""
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as sender:
                sender.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except OSError as error:
            if error.errno not in _FULL:
                self._warn(error)
            return False
        return True

    def _warn(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            shown = self._address.replace("\0", "@")
            _log.warning("the service manager cannot be notified at %s: %s", shown, error.strerror)


def _problem_of(address: str) -> str:
    """Why nothing can be sent there; empty if it may work."""
    if address[0] not in "/@" or len(address) == 1:
        return "it is neither a path from the root nor an abstract name"
    return "it is too long" if len(os.fsencode(address)) > _MAX_ADDRESS else ""


def _watchdog(usec: str) -> float:
    """Seconds; 0.0 for a time that cannot be kept."""
    seconds = int(usec) / 1e6 if usec.isascii() and usec.isdecimal() and len(usec) < 20 else 0.0
    if seconds < _MIN_WATCHDOG:
        _log.warning("%s=%s is ignored: it is not a time of at least %g s", _USEC, usec[:20], _MIN_WATCHDOG)
        return 0.0
    return seconds


class SignsOfPool:
    """The signs of one pool, read from its board by its master, or by the parent of several masters.

    Made when the pool has just been started, or its board has just appeared.
    """

    def __init__(self, settings: PoolSettings, board: Board) -> None:
        self._settings = settings
        self._board = board
        self._head = title(settings.name, State.STARTING, (), board.totals()).partition("starting")[0]
        self._boot_until = time.monotonic() + settings.boot_timeout if settings.boot_timeout else 0.0
        #: monotonic time at which running jobs are killed; infinity = never
        self._kill_at = float("inf")
        self._trouble = ""
        self._seen: State | None = None
        self._next_look = 0.0

    def now(self) -> Signs:
        """After a pass of the master's loop."""
        header, state = self._board.header, State(self._board.header.state)
        workers = [slot for slot in self._board.of(Role.WORKER) if slot.pid and not slot.dead]
        is_ready, is_stopping = bool(header.ready), state is State.DRAINING
        until = self._stop_until(workers) if is_stopping else 0.0 if is_ready else self._boot_until
        self._look(state)
        return Signs(
            self._words(state, workers),
            is_ready,
            is_reloading=is_being_replaced(header.generation, header.target, workers) and not boot_problem(header),
            is_stopping=is_stopping,
            until=until + _MARGIN if until else 0.0,
            trouble=self._trouble,
        )

    def _words(self, state: State, workers: Sequence[Slot]) -> str:
        """The master's title, and the worst of the troubles that ``status`` shows."""
        words = title(self._settings.name, state, workers, self._board.totals()).removeprefix(self._head)
        return f"{words}; {self._trouble}" if self._trouble else words

    def _look(self, state: State) -> None:
        now = time.monotonic()
        if now >= self._next_look or state is not self._seen:
            self._seen, self._next_look = state, now + _READ_INTERVAL
            self._trouble = self._worst()

    def _worst(self) -> str:
        """Empty if it cannot be read."""
        with suppress(Exception):  # whatever a job has written there must end neither a master nor its parent
            troubles = health_of(overview(self._settings.name, self._board)).troubles
            return troubles[0].text if troubles else ""
        return ""

    def _stop_until(self, workers: Sequence[Slot]) -> float:
        """When the last running job must be over, as far as they have deadlines; 0.0 if none has."""
        if self._settings.stop_timeout and self._kill_at == float("inf"):
            self._kill_at = time.monotonic() + self._settings.stop_timeout
        running = [one for slot in workers for one in slot.running()]
        ends = [one.deadline + self._settings.grace if one.deadline else self._kill_at for one in running]
        return max((min(end, self._kill_at) for end in ends if end != float("inf")), default=0.0)


def is_being_replaced(generation: int, target: int, workers: Sequence[Slot]) -> bool:
    """Whether workers of an older generation may still take jobs: their number has no newer one yet, or they are idle.

    A busy one whose successor is ready leaves after its job.
    """
    old = [slot for slot in workers if slot.generation < generation]
    return bool(old) and (
        len(renewed(workers, generation)) < target or any(slot.state not in RUNS_JOBS for slot in old)
    )
