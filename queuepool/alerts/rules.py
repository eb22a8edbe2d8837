"""The rules of alerts, as functions of facts: which readings there are, and when they raise and clear an alert.

A value at its limit in two looks in a row raises an alert; below four fifths of the limit it is cleared.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from queuepool.board.counts import PoolCounts, QueueFacts
from queuepool.board.open_alerts import MAX_ALERTS, MAX_OF_ONE, MAX_SUBJECT, OpenAlert
from queuepool.config.alerts import AlertSettings
from queuepool.unix.escape import escaped

#: the kinds whose facts the steward measures in the store
MEASURED = frozenset(("wait", "overdue", "failed", "quarantine", "parked", "unused"))
#: the kinds that are counted over a window of time
COUNTED = frozenset(("failures", "crashes", "failed_flows"))
#: the kinds that are not about one of many queues or jobs
OF_ALL = frozenset(("failed", "crashes", "failed_flows", "lost", "store", "store_full", "boot"))
#: fewest attempts that make a rate of failures
_FEWEST = 20
#: seconds within which attempts and deaths are counted
WINDOW = 300.0
#: the exits of workers that count as deaths
_DEATHS = ("crash", "killed")
#: the ends of flows that count as failures: one that was cancelled was so on purpose
_FAILED_FLOWS = ("failed", "expired")
#: the part of a limit below which an alert is cleared, so that a value that hovers around the limit changes nothing
_CLEARED = 0.8
_Key = tuple[str, str]


class Recent(NamedTuple):
    """What was counted within the window."""

    #: by queue: attempts that ended with a verdict, and how many of them failed for good
    attempts: Mapping[str, tuple[int, int]] = {}
    #: workers that died by themselves or were killed from outside
    deaths: int = 0
    #: whether the looks cover the whole window
    is_whole: bool = True
    #: flows that failed
    flows: int = 0


class AlertReading(NamedTuple):
    """A value, and the limit at which it becomes an alert."""

    kind: str
    subject: str
    value: float
    limit: float
    #: what else is known, in words
    detail: str = ""


class LookFacts(NamedTuple):
    """What one look has found; times are in seconds."""

    pool: str
    counts: PoolCounts
    recent: Recent
    #: for how long the longest running job of each name has run
    running: Mapping[str, float]
    #: for how long each missing store has been away
    away: Mapping[str, float]
    #: for how long each other pool has published nothing
    silent: Mapping[str, float]
    #: what those pools were running when they last published, in words
    ran: Mapping[str, str] = MappingProxyType({})
    #: for how long the next job of each queue that no pool serves has stayed in its place
    unserved: Mapping[str, float] = MappingProxyType({})
    #: by the id of each flow: for how long none of its jobs has begun or ended, and its name
    stalled: Mapping[str, tuple[float, str]] = MappingProxyType({})
    #: whether queues are served: neither a pause of the pool nor maintenance
    is_served: bool = True
    #: for how long the store has been full, the newest code has not become ready, and each pause has lasted
    full: Mapping[str, float] = MappingProxyType({})
    unbooted: Mapping[str, float] = MappingProxyType({})
    paused: Mapping[str, float] = MappingProxyType({})


def readings(facts: LookFacts, limits: AlertSettings) -> list[AlertReading]:
    """A reading for everything that has a limit."""
    found = [
        *_of_queues(facts, limits),
        *_of_limits(facts, limits),
        *(AlertReading("failures", queue, share, limits.failures) for queue, share in _failures(facts.recent)),
        *(AlertReading("running", job, seconds, limits.running) for job, seconds in facts.running.items()),
        AlertReading("failed", "failed jobs", facts.counts.failed_jobs, limits.failed),
        AlertReading("crashes", facts.pool, facts.recent.deaths, limits.crashes),
        AlertReading("failed_flows", facts.pool, facts.recent.flows, limits.failed_flows),
        *(
            AlertReading("stalled", flow, age, limits.stalled, f"its name is {name}" if name else "")
            for flow, (age, name) in facts.stalled.items()
        ),
        *(
            AlertReading("lost", pool, silent, limits.lost, facts.ran.get(pool, ""))
            for pool, silent in facts.silent.items()
        ),
        *(AlertReading("unserved", queue, seconds, limits.unserved) for queue, seconds in facts.unserved.items()),
        *(AlertReading("store", store, seconds, limits.store) for store, seconds in facts.away.items()),
        *(AlertReading("store_full", store, seconds, limits.store_full) for store, seconds in facts.full.items()),
        *(AlertReading("boot", pool, seconds, limits.boot) for pool, seconds in facts.unbooted.items()),
        *(AlertReading("paused", pause, seconds, limits.paused) for pause, seconds in facts.paused.items()),
    ]
    return [_readable(one) for one in found if one.limit]


def _readable(one: AlertReading) -> AlertReading:
    return one._replace(subject=escaped(one.subject)[:MAX_SUBJECT], detail=escaped(one.detail)[:MAX_SUBJECT])


def _of_queues(facts: LookFacts, limits: AlertSettings) -> Iterator[AlertReading]:
    for name, queue in facts.counts.queues.items():
        yield AlertReading("wait", name, _wait(queue, facts), limits.wait_of(name))
        yield AlertReading("overdue", name, queue.overdue, limits.overdue)
        yield AlertReading("quarantine", name, queue.quarantined, limits.quarantine)


def _of_limits(facts: LookFacts, limits: AlertSettings) -> Iterator[AlertReading]:
    """Nobody starts what waits while the pool is paused on purpose."""
    for name, limit in facts.counts.limits.items() if facts.is_served else ():
        yield AlertReading("parked", name, limit.oldest, limits.parked, f"{limit.parked} are parked")
        yield AlertReading("unused", name, limit.unused, limits.unused)


def _wait(queue: QueueFacts, facts: LookFacts) -> float:
    """For how long the next job has been ready; 0.0 if the queue is paused on purpose."""
    return queue.oldest if facts.is_served and not queue.paused else 0.0


def _failures(recent: Recent) -> Iterator[tuple[str, float]]:
    for queue, (ended, failed) in recent.attempts.items():
        if ended >= _FEWEST:
            yield queue, failed / ended


class AlertWindow:
    """Keeps the counters of the looks of the last five minutes, or since the first look if that was later."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Recent]] = deque()
        self._is_whole = False

    def add(self, now: float, counts: PoolCounts) -> Recent:
        """Add a look at ``now`` (monotonic seconds); returns what was counted since the oldest kept look."""
        present = _summed(counts)
        self._looks.append((now, present))
        while self._looks[0][0] < now - WINDOW:
            self._looks.popleft()
            self._is_whole = True
        first = self._looks[0][1]
        came = {queue: _minus(totals, first.attempts.get(queue, (0, 0))) for queue, totals in present.attempts.items()}
        deaths, flows = max(present.deaths - first.deaths, 0), max(present.flows - first.flows, 0)
        return Recent(came, deaths, self._is_whole, flows)


def _summed(counts: PoolCounts) -> Recent:
    ended, failed = Counter[str](), Counter[str]()
    for (queue, _), job in counts.jobs.items():
        ended[queue] += job.ended - job.given_back
        failed[queue] += job.failed
    attempts = {queue: (ended[queue], failed[queue]) for queue in ended}
    deaths = sum(counts.exits.get(reason, 0) for reason in _DEATHS)
    return Recent(attempts, deaths, flows=sum(counts.flows.ended.get(state, 0) for state in _FAILED_FLOWS))


def _minus(totals: tuple[int, int], first: tuple[int, int]) -> tuple[int, int]:
    # Never below 0: a job that overwrites the file may make a counter smaller.
    return max(totals[0] - first[0], 0), max(totals[1] - first[1], 0)


class Changes(NamedTuple):
    """What a look has changed; ``kept_back``: how many alerts there is no room for."""

    raised: Sequence[OpenAlert]
    cleared: Sequence[OpenAlert]
    kept_back: int = 0


class AlertStates:
    """The raised alerts, at first those of an earlier steward, and what was at its limit in the last look."""

    def __init__(self, alerts: Iterable[OpenAlert] = ()) -> None:
        self._open = {(one.kind, one.subject): one for one in alerts}
        self._inherited = set(self._open)
        #: since when each has been at its limit, in Unix seconds
        self._reached: dict[_Key, float] = {}

    @property
    def alerts(self) -> list[OpenAlert]:
        """The raised alerts, in order of kind and subject."""
        return [self._open[key] for key in sorted(self._open)]

    def put(self, alert: OpenAlert) -> None:
        """Replace a raised alert."""
        self._open[alert.kind, alert.subject] = alert

    def update(
        self, readings: Iterable[AlertReading], unknown: Collection[str], now: float, incomplete: Collection[str] = ()
    ) -> Changes:
        """Take the readings of a look at ``now`` (Unix seconds). Alerts of ``unknown`` kinds do not change.

        Alerts of ``incomplete`` kinds that an earlier steward has raised stay, as it had counted for longer. An alert
        without a reading counts as 0.
        """
        found = {(one.kind, one.subject): one for one in readings if one.kind not in unknown}
        kept = {key for key in self._inherited if key[0] in incomplete}
        cleared = self._clear(found, unknown, kept)
        reached = {key: one for key, one in found.items() if key not in self._open and one.value >= one.limit}
        confirmed = [one for key, one in reached.items() if key in self._reached]
        worst_first = sorted(confirmed, key=lambda one: one.value / one.limit, reverse=True)
        raised = [self._raise(one) for one in worst_first if self._has_room(one)]
        waiting = {key: since for key, since in self._reached.items() if key[0] in unknown}
        self._reached = waiting | {key: self._reached.get(key, now) for key in reached}
        return Changes(raised, cleared, len(confirmed) - len(raised))

    def _clear(
        self, found: Mapping[_Key, AlertReading], unknown: Collection[str], kept: Collection[_Key]
    ) -> list[OpenAlert]:
        """Update the alerts' values; remove and return the alerts that are over."""
        cleared = []
        for key, alert in list(self._open.items()):
            if alert.kind in unknown or key in kept:
                continue
            value = found[key].value if key in found else 0.0
            self._open[key] = alert = alert._replace(value=value)
            if value < _CLEARED * alert.limit:
                cleared.append(self._open.pop(key))
        return cleared

    def _has_room(self, one: AlertReading) -> bool:
        """Whether there is room: queues and jobs may not take it all, as a lost store must still be reported."""
        return len(self._open) < (MAX_ALERTS if one.kind in OF_ALL else MAX_OF_ONE)

    def _raise(self, one: AlertReading) -> OpenAlert:
        key = one.kind, one.subject
        about = one.kind, one.subject, one.value, one.limit
        self._open[key] = OpenAlert(*about, since=self._reached[key], detail=one.detail)
        return self._open[key]
