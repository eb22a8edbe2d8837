"""The rules of alerts: from measured facts to readings, which ``alert_states`` compares with what was before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from queuepool.board.counts import PoolCounts, QueueFacts
from queuepool.board.open_alerts import MAX_SUBJECT
from queuepool.config.alerts import AlertSettings
from queuepool.steward.alert_window import Recent
from queuepool.unix.escape import escaped

#: the kinds whose facts the steward measures in the store
MEASURED = frozenset(("wait", "overdue", "failed", "quarantine"))
#: those whose facts are counted over a window of time
COUNTED = frozenset(("failures", "crashes"))
#: those that are not about one queue or one job of many
OF_ALL = frozenset(("failed", "crashes", "lost", "store", "store_full", "boot"))
#: fewer attempts than these have no rate of failures
_FEWEST = 20


class Reading(NamedTuple):
    """A value and the limit from which on it is an alert."""

    kind: str
    subject: str
    value: float
    limit: float
    #: what else is known, in words
    detail: str = ""


class Facts(NamedTuple):
    """What one look has found; times in seconds."""

    pool: str
    counts: PoolCounts
    recent: Recent
    #: for how long the longest running job of each name has run
    running: Mapping[str, float]
    #: for how long each store that is away has been so
    away: Mapping[str, float]
    #: for how long each other pool has published nothing
    silent: Mapping[str, float]
    #: what those were running when they last did, in words
    ran: Mapping[str, str] = MappingProxyType({})
    #: for how long the next job of each queue that no pool serves has stayed where it is
    unserved: Mapping[str, float] = MappingProxyType({})
    #: whether queues are served: neither is the pool paused, nor is there maintenance
    is_served: bool = True
    #: for how long the store has been full, the newest code has not come to work, and each pause has lasted
    full: Mapping[str, float] = MappingProxyType({})
    unbooted: Mapping[str, float] = MappingProxyType({})
    paused: Mapping[str, float] = MappingProxyType({})


def readings(facts: Facts, limits: AlertSettings) -> list[Reading]:
    """A reading for everything that has a limit."""
    found = [
        *_of_queues(facts, limits),
        *(Reading("failures", queue, share, limits.failures) for queue, share in _failures(facts.recent)),
        *(Reading("running", job, seconds, limits.running) for job, seconds in facts.running.items()),
        Reading("failed", "failed jobs", facts.counts.failed_jobs, limits.failed),
        Reading("crashes", facts.pool, facts.recent.deaths, limits.crashes),
        *(Reading("lost", pool, silent, limits.lost, facts.ran.get(pool, "")) for pool, silent in facts.silent.items()),
        *(Reading("unserved", queue, seconds, limits.unserved) for queue, seconds in facts.unserved.items()),
        *(Reading("store", store, seconds, limits.store) for store, seconds in facts.away.items()),
        *(Reading("store_full", store, seconds, limits.store_full) for store, seconds in facts.full.items()),
        *(Reading("boot", pool, seconds, limits.boot) for pool, seconds in facts.unbooted.items()),
        *(Reading("paused", pause, seconds, limits.paused) for pause, seconds in facts.paused.items()),
    ]
    return [_readable(one) for one in found if one.limit]


def _readable(one: Reading) -> Reading:
    return one._replace(subject=escaped(one.subject)[:MAX_SUBJECT], detail=escaped(one.detail)[:MAX_SUBJECT])


def _of_queues(facts: Facts, limits: AlertSettings) -> Iterator[Reading]:
    for name, queue in facts.counts.queues.items():
        yield Reading("wait", name, _wait(queue, facts), limits.wait_of(name))
        yield Reading("overdue", name, queue.overdue, limits.overdue)
        yield Reading("quarantine", name, queue.quarantined, limits.quarantine)


def _wait(queue: QueueFacts, facts: Facts) -> float:
    """For how long the next job has been ready; 0.0 if the queue is paused on purpose."""
    return queue.oldest if facts.is_served and not queue.paused else 0.0


def _failures(recent: Recent) -> Iterator[tuple[str, float]]:
    for queue, (ended, failed) in recent.attempts.items():
        if ended >= _FEWEST:
            yield queue, failed / ended
