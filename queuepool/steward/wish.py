"""How many workers a pool should have: a function of what waits, what comes and how long it takes.

Enough to keep up with arrivals, and enough more to work off the backlog in time. More at once, fewer late: what was
needed a while ago is soon needed again, and each change of direction costs processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite

#: the share of its time for which a worker is to be busy: at all of it, a backlog would never shrink
_BUSY = 0.8
#: how far below the present number the need must be before there are fewer workers
_MARGIN = 1.15
#: in one step, the number of workers may double, or grow by so many
_STEP = 4
#: a job that waits for too long, although the averages need no more workers, adds the present number divided by this
_PART = 4
#: the number shrinks by no less than itself divided by this: else a pool that falls idle has one fewer each second
_WORTH = 8
#: tolerance for a result just above a whole number
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """One queue. Times in seconds; ``run_time``: of its jobs on average, ``None`` = none has ended yet."""

    #: jobs that wait there for this pool
    waiting: int = 0
    running: int = 0
    #: for how long the next job has been ready
    oldest: float = 0.0
    #: jobs a second
    arrivals: float = 0.0
    run_time: float | None = None
    #: whether this was measured since the last wish
    is_new: bool = True
    #: jobs that wait there beside these, and are the part of other pools
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """A pool at one moment. ``lanes``: jobs that a worker runs at once."""

    queues: tuple[QueueLoad, ...]
    #: workers that it is to have, and those of them that are not ready yet
    workers: int
    starting: int = 0
    lanes: int = 1

    @property
    def waiting(self) -> int:
        """Jobs that wait for this pool, in all queues."""
        return sum(queue.waiting for queue in self.queues)

    @property
    def elsewhere(self) -> int:
        """Jobs that wait there for other pools."""
        return sum(queue.elsewhere for queue in self.queues)

    @property
    def running(self) -> int:
        """Jobs that run."""
        return sum(queue.running for queue in self.queues)


@dataclass(frozen=True, slots=True)
class Aims:
    """What an operator wants: the bounds, and in how many seconds what waits is to be worked off."""

    fewest: int
    most: int
    target_wait: float


@dataclass(frozen=True, slots=True)
class Wish:
    """So many ``workers``, and why in a few words.

    ``need``: how many would be busy enough, unrounded; those wished for since a job has waited for too long, if more.
    """

    workers: int
    why: str
    need: float


def wish_for(load: PoolLoad, aims: Aims, recent: float) -> Wish:
    """The wish. ``recent``: the highest need of late; while it is unknown, infinity, which prevents any decrease.

    It never leaves the bounds, and is never less if more jobs wait, or have waited for longer.
    """
    keeps_up, need, why = _need(load, aims)
    waited = max((queue.oldest for queue in load.queues if queue.is_new and _has_jobs(queue)), default=0.0)
    wanted = ceil(need - _ROUNDING)
    is_late = waited > aims.target_wait and not load.starting
    if is_late:
        wanted, why = max(wanted, load.workers + max(1, load.workers // _PART)), f"a job has waited for {waited:.0f} s"
    # Each of more workers than there are jobs would be idle. A job that is late is everybody's: the pool whose part it
    # is may be unable to do it.
    jobs = (load.running + load.waiting + (load.elsewhere if is_late else 0)) / load.lanes
    wanted = min(wanted, ceil(max(keeps_up, jobs) - _ROUNDING))
    wanted = min(wanted, max(2 * load.workers, load.workers + _STEP))
    if wanted < load.workers:
        wanted = _fewer(load.workers, max(wanted, need * _MARGIN, recent * _MARGIN))
        why = "fewer are enough" if wanted < load.workers else "fewer may not be enough"
    elif wanted == load.workers:
        why = "enough"
    if is_late and wanted >= load.workers:
        need = max(need, wanted)  # or the pool would shrink at once when no job is late any more
    return _within(Wish(wanted, why, need), aims)


def _has_jobs(queue: QueueLoad) -> bool:
    return queue.waiting + queue.elsewhere > 0


def _fewer(workers: int, enough: float) -> int:
    """How many of the workers stay where ``enough`` of them suffice; all, unless the difference is worth a change."""
    kept = ceil(enough - _ROUNDING) if isfinite(enough) else workers
    return kept if workers - kept >= max(1, workers // _WORTH) else workers


def _within(wish: Wish, aims: Aims) -> Wish:
    if wish.workers > aims.most:
        return Wish(aims.most, f"{wish.why}; max_workers", wish.need)
    return wish if wish.workers >= aims.fewest else Wish(aims.fewest, f"{wish.why}; min_workers", wish.need)


def _need(load: PoolLoad, aims: Aims) -> tuple[float, float, str]:
    """The workers that keep up with arrivals; those that also work off the backlog; and which of these weigh more."""
    short = [queue for queue in load.queues if queue.run_time is not None and queue.run_time < aims.target_wait]
    comes = sum(queue.arrivals * (queue.run_time or 0.0) for queue in short)
    waits = sum(min(queue.waiting, queue.waiting * (queue.run_time or 0.0) / aims.target_wait) for queue in short)
    # The arrival rate of long jobs is noise: each that waits needs a worker of its own. Jobs of which none has ended
    # yet count as long ones, but at most as many as the workers can run at once.
    seen = max(load.workers, 1) * load.lanes
    for queue in load.queues:
        if queue.run_time is None:
            waits += queue.running + min(queue.waiting, seen)
        elif queue not in short:
            waits += queue.running + queue.waiting
    # A small backlog is worked off in the time kept free; otherwise chance would change the number all the time.
    relaxed, urgent = comes / _BUSY, comes + waits
    why = _jobs(load) if urgent > relaxed else f"{_rate(short)} jobs a second come"
    return relaxed / load.lanes, max(relaxed, urgent) / load.lanes, why


def _jobs(load: PoolLoad) -> str:
    if load.waiting and load.elsewhere:
        return f"{load.waiting} of {load.waiting + load.elsewhere} waiting jobs are its part"
    number, verb = (load.waiting, "wait") if load.waiting else (load.running, "run")
    return f"1 job {verb}s" if number == 1 else f"{number} jobs {verb}"


def _rate(queues: list[QueueLoad]) -> str:
    rate = sum(queue.arrivals for queue in queues)
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
