"""What a service manager (systemd) is notified of: ready, reloading, stopping, how long that may take, and that we run.

A ping says that the master's loop runs, and nothing of the store or the jobs. Those have deadlines of their own, and a
restart would mend neither.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from queuepool.master.notify_socket import NotifySocket

#: longest time in seconds between two passes of a loop that notifies
PASS = 0.25
#: seconds between two changes of the words, and between two requests for time
_INTERVAL = 1.0
#: most characters of the words: systemd drops a message of more than 4,096 bytes whole, with all that is in it
_MAX_WORDS = 900
#: most seconds to ask for: a job can write any deadline on the board, and a time must be a number of microseconds
_MOST_TIME = 10 * 365 * 86400.0
#: pings within the time that the watchdog waits for one
_PINGS = 3


class Signs(NamedTuple):
    """How the service is after one pass. ``words`` are for people. Times are monotonic seconds."""

    words: str
    is_ready: bool
    is_reloading: bool = False
    is_stopping: bool = False
    #: the start, or the running jobs, may take until then; 0.0 = as long as the unit says
    until: float = 0.0
    #: whether every loop that this is about has come round lately
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
            self._words, self._next_words = signs.words, now + _INTERVAL
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
