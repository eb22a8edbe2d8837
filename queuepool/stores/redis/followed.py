"""Follow all sentinels, and tell others in this process or pool where the primary is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from queuepool.stores.redis.sentinel import PERIOD, SILENT, Said, Sentinel, Statement, Told, Whereabouts, believed
from queuepool.unix.originals import sleep, start_thread
from queuepool.unix.signals import leave_signals_to_the_main_thread

#: seconds for which what a sentinel has said counts; the others hear of a failover within two
_LASTS = 5.0
#: a job may have written any number over the epoch
_MOST = 2**40
_log = logging.getLogger("queuepool")


class Follower:
    """Asks each sentinel once a second and at its news, in a thread for each: one that is silent delays no other.

    ``told``: where it writes what it finds. ``moved``: called after that, in such a thread.
    """

    def __init__(self, whereabouts: Whereabouts, told: Told, moved: Callable[[], object]) -> None:
        self._whereabouts = whereabouts
        self._told = told
        self._moved = moved
        self._lock = threading.Lock()
        self._said: dict[Sentinel, tuple[float, Said]] = {}
        whereabouts.read(told)

    def begin(self) -> None:
        """Start the threads; they end with the process."""
        for one in self._whereabouts.own_sentinels():
            start_thread(self._follow, (one,))

    def _follow(self, sentinel: Sentinel) -> None:
        leave_signals_to_the_main_thread()
        problem = ""
        while True:
            try:
                for refusal in sentinel.news():
                    if said := sentinel.look():
                        self._take(sentinel, said)
                    problem = _logged(sentinel, problem, refusal if said else f"knows no {sentinel.name}")
            except SILENT as error:
                problem = _logged(sentinel, problem, str(error))
            sleep(PERIOD)

    def _take(self, sentinel: Sentinel, said: Said) -> None:
        with self._lock:
            found = self._found(sentinel, said)
            before = self._told.store_at
            if found:
                self._told.store_config_epoch = found.config_epoch
            if not found or found.place == before:
                return
            self._told.store_at = found.place
            self._told.store_epoch = self._told.store_epoch % _MOST + 1
        if before:
            _log.warning("the primary has moved: %s -> %s", before.replace(" ", ":"), found.place.replace(" ", ":"))
            self._whereabouts.sever()
            self._moved()

    def _found(self, sentinel: Sentinel, said: Said) -> Said | None:
        """What is believed now; what is known was perhaps found by an earlier steward."""
        now, told = time.monotonic(), self._told
        self._said[sentinel] = now, said
        known = Statement(told.store_config_epoch, told.store_at) if told.store_at else None
        fresh = [one for at, one in self._said.values() if now - at < _LASTS]
        return believed(known, fresh, len(self._whereabouts.sentinels))


def _logged(sentinel: Sentinel, before: str, problem: str) -> str:
    """Log what is new about it; returns what is wrong with it now."""
    if problem and not before:
        _log.warning("sentinel %s: %s", sentinel.where, problem)
    elif before and not problem:
        _log.info("sentinel %s answers again", sentinel.where)
    return problem
