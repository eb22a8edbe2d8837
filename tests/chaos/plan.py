"""The settings of a run: how long, how hard, with which store and faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.chaos.async_modes import ASYNC
from tests.chaos.async_soft_modes import ASYNC_SOFT
from tests.chaos.boards import ON_BOARDS
from tests.chaos.lane_modes import DEADLY, USUAL
from tests.chaos.modes import MODES
from tests.chaos.overruns import OVERRUN
from tests.chaos.soft_modes import SOFT
from tests.chaos.steps import MODES as STEP_MODES


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run; times in seconds, rates a second. The same seed gives the same order of faults."""

    seconds: float = 60.0
    seed: int = 1
    #: one of ``stores.choice.NAMES``
    store: str = "redis"
    #: likewise, what holds the failed jobs and the control keys; '' = the same store
    other: str = ""
    #: 2: each pool has a network of its own, and so has the store, which is Redis then
    hosts: int = 1
    #: workers of the pool at the store, and of the one behind the proxy
    workers: int = 4
    remote: int = 2
    bulk: int = 100
    backlog: int = 1500
    #: tiny jobs a second, at most and on average: they come in bursts of a backlog
    rate: float = 1200.0
    naps: float = 8.0
    nap: tuple[float, float] = (0.02, 0.4)
    #: seconds of a nap that needs its lease renewed
    long: float = 7.0
    delayed: float = 5.0
    hostile: float = 4.0
    #: jobs after which Laravel is to go on
    steps: float = 4.0
    #: flows of nine jobs
    graphs: float = 1.0
    #: pushes of some jobs with limits
    limits: float = 1.5
    #: jobs that always fail, for people to try again
    refused: float = 2.0
    grace: float = 0.5
    retry_after: float = 6.0
    #: seconds that one nemesis is on
    phase: tuple[float, float] = (1.5, 4.0)
    #: seconds between two kills while killing
    kill_every: tuple[float, float] = (0.02, 0.06)
    #: the share of other nemeses beside which workers are killed too
    with_kills: float = 0.8
    #: most seconds until everything is done, once it is healed
    drain: float = 60.0
    #: seconds of rest at the end, to see whole pools
    settle: float = 2.0
    #: most seconds until a pool that is left in peace is whole again; two are promised to an idle machine
    whole: float = 30.0
    #: most seconds until a pool has stopped
    stop: float = 20.0
    modes: tuple[str, ...] = field(default_factory=lambda: tuple(harmful()))
    step_modes: tuple[str, ...] = STEP_MODES
    #: names of nemeses; none = all
    only: tuple[str, ...] = ()
    #: tiny jobs in all, 0 = no end
    most: int = 0
    #: jobs that a worker reserves at once, 0 = as it sees fit
    ahead: int = 0
    #: whether the far pool's workers are forked by a template, which dies too
    preload: bool = True
    #: seconds that some of the tiny jobs take
    longer: float = 0.0
    #: whether the pools raise alerts
    alerts: bool = True
    #: whether they keep a record of each attempt
    records: bool = False
    #: jobs that each worker of one more pool runs at once, and how many workers that has; 0 = there is no such pool
    lanes: int = 0
    wide: int = 2
    #: pushes for it, of one or of many jobs; and of jobs that end their worker
    beside: float = 3.0
    deadly: float = 0.7
    lane_modes: tuple[str, ...] = (*USUAL, *sorted(DEADLY))


#: A worker on a database takes two or three times as long to become ready: killed at Redis' pace, none ever would, and
#: what is pushed meanwhile must be worked off in the pauses, or all jobs begin late.
#: And a session of PostgreSQL tells of its commands up to a second late: in a short rest the idle seem busy.
_SLOWER = {
    "kill_every": (0.2, 0.8), "with_kills": 0.4, "naps": 2.5, "hostile": 1.2, "delayed": 2.0, "steps": 1.0,
    "graphs": 0.3, "limits": 0.7, "refused": 1.0, "settle": 4.0,
}  # fmt: skip


def plan_for(store: str, *, slower: bool = False, **more: Any) -> Plan:
    """The same plan, at the pace of this store; ``slower``: at that of a database, on any."""
    pace: dict[str, Any] = _SLOWER if slower or store != "redis" else {}
    if more.get("other"):
        # The end of a step whose lock may be in either store waits for both: they must not hold up all workers.
        pace = pace | {"steps": 0.5}
    return Plan(store=store, **{**pace, **more})


def harmful() -> list[str]:
    """Every mode that harms no more than a worker; overruns count once between them, they hold it for long."""
    rest = [mode for mode in MODES if mode not in OVERRUN and mode not in ON_BOARDS]
    stepped = ["stepped"] * (len(rest) // 2)  # harms nobody, and needs many deaths to be put to the test
    return [*rest, *rest, *stepped, *ASYNC, *ASYNC, *SOFT, *SOFT, *ASYNC_SOFT, *OVERRUN]
