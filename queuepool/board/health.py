"""Whether a pool is well, and if not, why: from the processes on its board, not from its settings.

``status``, ``top``, probes, metrics, alerts, the service manager and the exit codes all report this.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from queuepool.board.overview import PoolOverview
from queuepool.board.states import State

#: the states that no process writes itself: no live master, a stopped master, and no more notices
NOT_RUNNING, STUCK, LOST = "not running", "stopped by a signal", "lost"
#: seconds after which a master that goes round every quarter of a second is late, and those after which it hangs
LATE_AFTER, DEAD_AFTER = 5.0, 15.0
#: seconds without its store after which a pool takes no jobs: a shorter outage is over before anyone looks
MAX_OUTAGE = 60.0

#: troubles that an operator asked for: there is nothing to fix
_WANTED = frozenset(("paused", "maintenance", "paused_queues", "restart"))
_WAITS_FOR_KEYS = (
    "workers wait: the steward has not read the control keys yet (restart, pause, maintenance); if this lasts, the "
    "log says why"
)
_STATES = {state.name.lower(): state for state in State}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an operator should know; ``kind`` is one word for programs, ``text`` a line for people."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Health:
    """A pool at one moment. ``troubles``: the worst first; one at least if it takes no jobs."""

    #: the word that ``status`` shows
    state: str
    #: whether a worker lives that may begin a job now
    takes_jobs: bool
    #: whether no job begins only because an operator wants that
    rests: bool
    #: whether there is nothing to fix
    is_well: bool
    troubles: tuple[Trouble, ...]

    def has(self, kind: str) -> bool:
        """Whether it has a trouble of this kind."""
        return any(trouble.kind == kind for trouble in self.troubles)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def health_of(pool: PoolOverview) -> Health:
    """The health of a pool that a board or a notice shows."""
    workers = [process.state for process in pool.processes if process.role == "worker"]
    state = _state_of(pool, workers)
    hindrances = tuple(_hindrances(pool, state, workers))
    others = tuple(_others(pool, {trouble.kind for trouble in hindrances}))
    rests = bool(hindrances) and all(trouble.kind in _WANTED for trouble in hindrances)
    is_well = (rests or not hindrances) and all(trouble.kind in _WANTED for trouble in others)
    return Health(state, not hindrances, rests, is_well, (*hindrances, *others))


def health_of_none() -> Health:
    """The health of a pool without a live master."""
    return _gone(NOT_RUNNING, Trouble("not_running", "no master of it runs"))


def health_of_lost(silent: float, ran: str) -> Health:
    """The health of a pool that has published nothing for ``silent`` seconds; ``ran``: what it ran then, if known."""
    words = (
        f"lost: it has published nothing for {silent:.0f} s and was not stopped"
        f"{f'; {ran}' if ran else ''}. What it ran begins again when the leases end"
    )
    return _gone(LOST, Trouble("lost", words))


def lived_state(state: State, wanted: int, workers: Collection[State], *, cannot_boot: bool) -> State:
    """The state of a pool that would be ``state`` if its workers had become ready; ``workers`` are the living ones.

    While no worker has become ready it is starting, and as soon as one could not, it is failing.
    """
    if state not in (State.RUNNING, State.PAUSED) or wanted <= 0 or any(one != State.STARTING for one in workers):
        return state
    if cannot_boot:
        return State.FAILING
    return State.STARTING if state is State.RUNNING else state


def _gone(state: str, trouble: Trouble) -> Health:
    """The health of a pool of which no process is known to be alive."""
    return Health(state, takes_jobs=False, rests=False, is_well=False, troubles=(trouble,))


def _state_of(pool: PoolOverview, workers: Collection[str]) -> str:
    """The state that the pool reports, unless it should have workers and none is ready: an older version still reports
    "running" then.
    """
    known = _STATES.get(pool.state)
    if known is None:
        return pool.state
    living = [_STATES.get(state, State.STARTING) for state in workers if state != "dead"]
    cannot_boot = bool(pool.boot_problem) or not (living or _is_starting(pool))
    return lived_state(known, pool.workers, living, cannot_boot=cannot_boot).name.lower()


def _is_starting(pool: PoolOverview) -> bool:
    """Whether workers may come: a template imports, or waits to fork them."""
    return any(process.role == "template" and process.state != "dead" for process in pool.processes)


def _hindrances(pool: PoolOverview, state: str, workers: Collection[str]) -> Iterator[Trouble]:
    """What keeps jobs from beginning."""
    if state == STUCK:
        ways = f"queuepool continue or kill -CONT {pool.master}"
        yield Trouble("stopped", f"no worker is replaced, or killed when it is late, until {ways}")
    if (age := pool.beat_age or 0.0) >= DEAD_AFTER:
        yield Trouble("hanging", f"the master's loop last came round {age:.0f} s ago: it replaces and kills no worker")
    if state == "failing":
        yield from _failures(pool, workers)
    elif state == "starting":
        yield _not_at_work(pool)
    elif state == "draining":
        yield Trouble("draining", "the pool is being stopped: running jobs may finish")
    if _away_for(pool.store_lost) > MAX_OUTAGE:
        yield _store_away(pool)
    if not pool.workers:
        yield Trouble("scaled", "no job runs: it was scaled to 0 workers")
    if state == "paused":
        yield Trouble("paused", f"no worker begins a job until queuepool continue{pool.pause_words}")
    elif state == "running" and pool.workers and not _may_begin(workers):
        yield _closed(pool, workers)


def _not_at_work(pool: PoolOverview) -> Trouble:
    """Why no worker of a pool that starts has become ready."""
    if pool.store_lost:
        return Trouble("starting", "no worker becomes ready before the store is back")
    booting = "no worker has become ready yet: they import their modules"
    return Trouble("starting", booting if pool.control_known else _WAITS_FOR_KEYS)


def _failures(pool: PoolOverview, workers: Collection[str]) -> Iterator[Trouble]:
    """Why it fails: no worker becomes ready, or else the steward dies."""
    if pool.workers and set(workers) <= {"starting", "dead"}:
        why = f": {problem}" if (problem := pool.boot_problem) else ", see the log"
        yield Trouble("boot", f"no worker becomes ready, so no job begins{why}")
        return
    yield Trouble(
        "steward", "the steward dies again and again, see the log: jobs of dead workers and delayed jobs wait"
    )


def _may_begin(workers: Collection[str]) -> bool:
    """Whether a worker waits for a job; or some run one, and none is paused: they will take the next."""
    return "idle" in workers or ("busy" in workers and "paused" not in workers)


def _closed(pool: PoolOverview, workers: Collection[str]) -> Trouble:
    """Why no worker of a running pool begins a job."""
    if "paused" not in workers:
        return Trouble("no_worker", "no worker takes jobs: those still alive are leaving")
    if pool.maintenance:
        words = f"maintenance mode{pool.maintenance_words}: no worker begins a job until queuepool up"
        return Trouble("maintenance", words)
    if pool.paused:
        return Trouble("paused", f"no worker begins a job, its queues are paused: {pool.paused_words}")
    return Trouble("paused", "no worker begins a job: a listener of Looping returns False")


def _others(pool: PoolOverview, hindering: Collection[str]) -> Iterator[Trouble]:
    """The other troubles; ``hindering``: the kinds already reported."""
    if "boot" not in hindering and (problem := pool.boot_problem):
        yield Trouble("boot", f"the new code does not become ready: {problem}")
    if pool.store_lost and "store" not in hindering:
        yield _store_away(pool)
    if since := pool.store_full:
        yield Trouble(
            "store_full", f"the store has been full since {since}: it takes no new jobs, but serves those it has"
        )
    if not hindering and (age := pool.beat_age or 0.0) > LATE_AFTER:
        yield Trouble("late", f"the master has been busy or stuck for {age:.0f} s: it replaces and kills no worker")
    if outdated := pool.outdated:
        yield Trouble("restart", f"restart under way: workers that still run the old code: {outdated}")
    if orphans := pool.orphans:
        yield Trouble("orphans", f"workers of a killed master still run, and a stop waits for them: {orphans}")
    for alert in pool.alerts:
        yield Trouble("alert", f"alert since {alert.since}: {alert.text}")
    if pool.maintenance and "maintenance" not in hindering:
        yield Trouble("maintenance", f"maintenance mode{pool.maintenance_words}")
    if pool.paused and ("paused" not in hindering or pool.state == "paused"):  # else they were named above
        yield Trouble("paused_queues", f"paused queues: {pool.paused_words}")
    yield from _side_stores(pool)


def _side_stores(pool: PoolOverview) -> Iterator[Trouble]:
    for store, since in (("failed_store", pool.failed_store_lost), ("control_store", pool.control_store_lost)):
        if since:
            yield Trouble(store, f"the {store.replace('_', ' ')} has been away since {since}; jobs go on")
    if waiting := pool.unrecorded:
        yield Trouble("unrecorded", f"failed jobs wait for the failed store: {waiting}")


def _store_away(pool: PoolOverview) -> Trouble:
    return Trouble("store", f"the store has been away since {pool.store_lost}")


def _away_for(since: str | None) -> float:
    """Seconds since this time in ISO 8601; 0.0 if there is none."""
    return time.time() - datetime.fromisoformat(since).timestamp() if since else 0.0
