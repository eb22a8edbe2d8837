"""Looks after limits, in pools that run jobs with some: hands on what comes free by itself, and measures them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from queuepool.board.counts import LimitFacts
from queuepool.board.fields import Header
from queuepool.errors import StoreDenied, TableMissing
from queuepool.payload.envelope import ready_for
from queuepool.steward.measure import MeasuringPace, PoolMeters
from queuepool.stores.limits import JobLimits, KeyRecord, LimitLine, LimitSum, sums_of

#: the shortest pause between two looks, in seconds
_SHORTEST = 0.02
#: the longest pause while jobs wait: meanwhile others may have parked some for which a place comes free sooner
_WHILE_JOBS_WAIT = 0.1
#: the longest pause for ``_LATELY`` seconds after a job with limits has started; and later, as others may park some
_WHILE_IN_USE, _PERIOD = 0.2, 1.0
_LATELY = 60.0


class LookAtLimits:
    """A pool without limits asks its store once: jobs may be parked at limits that its code no longer has."""

    def __init__(self, limits: JobLimits, header: Header) -> None:
        self._limits = limits
        self._header = header
        self._is_new = True

    def notice(self) -> None:
        """Before leases are renewed: from a pool's first job with a limit on, places must last as long as they do."""
        self._limits.in_use = self._header.limits_at > 0

    def run(self, now: float) -> float:
        """As of every chore."""
        marked = self._header.limits_at
        if not (marked or self._is_new):
            return _PERIOD
        self.notice()  # first: whatever comes of the look, places must last as long as leases
        try:
            due = self._limits.sweep()
        except StoreDenied as error:
            # A table is missing in a database from before there were limits, or nothing is granted where none is used.
            if marked and not isinstance(error, TableMissing):
                raise
            self._is_new = False
            return _PERIOD
        self._is_new = False
        if not marked and due is not None:
            self._header.limits_at = now
        self.notice()
        if due is None:
            return _WHILE_IN_USE if now < marked + _LATELY else _PERIOD
        return min(max(due, _SHORTEST), _WHILE_JOBS_WAIT)


class MeasureLimits:
    """Measures how many jobs wait at limits, and for how long. A pool without limits never asks its store."""

    def __init__(self, limits: JobLimits, header: Header, meters: PoolMeters, clock: Callable[[], float]) -> None:
        """``clock``: the store's."""
        self._limits = limits
        self._header = header
        self._meters = meters
        self._clock = clock
        self._pace = MeasuringPace()
        #: what has been so since when (monotonic): a line with its first job, a key with its free place
        self._since: dict[Any, float] = {}

    def run(self, now: float) -> float:
        """As of every chore."""
        if self._header.limits_at and self._limits.in_use:
            self._pace.run(now, lambda: self._measure(now))
        return _PERIOD

    def _measure(self, now: float) -> None:
        sums = sums_of(self._limits.all(), self._limits.by_key())
        before, self._since = self._since, {}
        found = [(one.limit.name, self._facts(one, before, now)) for one in sums]
        found.sort(key=lambda pair: (-pair[1].parked, pair[0]))
        self._meters.note_limits(found)

    def _facts(self, one: LimitSum, before: dict[Any, float], now: float) -> LimitFacts:
        oldest = self._age(one.first, before, now) if one.first else 0.0
        # A free place has not been handed on as long as the same jobs are still the first ones of all its lines.
        idle = [(key.key, _firsts(key)) for key in one.keys if _has_room(one, key)]
        unused = max((self._lasted(what, before, now) for what in idle), default=0.0)
        return LimitFacts(one.limit.in_force, one.held, one.parked, one.is_at_least, oldest, unused)

    def _age(self, line: LimitLine, before: dict[Any, float], now: float) -> float:
        """By its payload; else since it was first seen there, so less than it has waited."""
        seen = self._lasted((line.queue, line.first), before, now)
        age = ready_for(self._limits.parked_job(line.queue, line.first), self._clock())
        return seen if age is None else age

    def _lasted(self, what: Any, before: dict[Any, float], now: float) -> float:
        self._since[what] = before.get(what, now)
        return now - self._since[what]


def _has_room(one: LimitSum, key: KeyRecord) -> bool:
    return bool(key.parked) and key.held + key.granted < one.limit.in_force


def _firsts(key: KeyRecord) -> Sequence[int]:
    return tuple(line.first for line in key.parked)
