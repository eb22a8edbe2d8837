"""When each nemesis was at work, and when each process died: which events excuse which."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator

from tests.chaos.ledger import Event

#: those that only end workers: for the loss of a worker nothing is excused
WORKERS_ONLY = {
    "broadcast_restarts",
    "laravel",
    "calm",
    "kill_workers",
    "segfault_workers",
    "stop_workers",
    "restart_rolling",
    "forget_scripts",
    "wrong_type",
    "lock_rows",
    "deadlock",
    "hold_a_snapshot",
    "retry_all",
    "retry_one",
    "retry_by_artisan",
    "set_limits",
}
#: those that harm a pool's processes or its files: the store notices nothing, nor does who pushes to it
POOLS_ONLY = WORKERS_ONLY | {
    "kill_steward",
    "stop_steward",
    "kill_template",
    "kill_master",
    "stop_master",
    "kill_host",
    "leave_now",
    "storm_of_signals",
    "stop_beside_orphans",
    "born_deaf",
    "scribble",
    "truncate",
    "vanish",
    "foreign_board",
}
#: those that take a store or a host away, and with it what several workers have just done
_LOSSES = {
    "kill_redis",
    "stop_redis",
    "kill_database",
    "stop_database",
    "freeze_database",
    "kill_host",
    "cut_network",
    "silent_network",
    "blackhole",
    "dead_connections",
    "one_way",
}
#: as many times slower than alone a run makes the machine by itself: its faults, and their clean-up
OWN_PACE = 6.0
#: those after which a board may not show what was done but not yet settled
_WRITTEN_OVER = {"scribble", "truncate"}
#: nanoseconds after the start of a job that does so, which may come late, until the master has ended all whom it hit
_HIT = 1_000_000_000
#: why a steward is killed: for itself, or with its master or all of its pool
_WITH_STEWARD = {"steward", "master", "host"}


class Windows:
    """Built while the history is read; queried at its end."""

    EVENTS = ("run", "nemesis", "kill", "death", "pace", "start")

    def __init__(self) -> None:
        #: seconds
        self.retry_after = 0.0
        self._on: dict[str, int] = {}
        self._over: list[tuple[int, int, str]] = []
        self._kills: dict[int, list[int]] = {}
        self._stops: dict[int, list[int]] = {}
        self._deaths: dict[int, list[int]] = {}
        self._without_steward: list[int] = []
        #: how many times slower than alone the machine was until each moment
        self._paces: list[tuple[int, float]] = []

    def read(self, event: Event) -> None:
        if event["f"] == "run":
            self.retry_after = event["retry_after"]
        elif event["f"] == "death":
            self._deaths.setdefault(event["pid"], []).append(event["t"])
        elif event["f"] == "start":
            if event.get("m") in _WRITTEN_OVER:
                self._over.append((event["t"], event["t"] + _HIT, event["m"]))
        elif event["f"] == "pace":
            self._paces.append((event["t"], event["times"]))
        elif event["f"] == "kill":
            known = self._stops if event["why"] in ("stop", "cont") else self._kills
            known.setdefault(event["pid"], []).append(event["t"])
            self._without_steward += [event["t"]] if event["why"] in _WITH_STEWARD else []
        elif event["on"]:
            self._on[event["name"]] = event["t"]
        else:
            self._over.append((self._on.pop(event["name"], 0), event["t"], event["name"]))

    def excuse(self, since: int, until: float, harmless: Collection[str] = WORKERS_ONLY) -> str:
        """The first nemesis, of those that harm more than workers, that was at work in this time; '' = none."""
        return next((name for name in self._at_work(since, until) if name not in harmless), "")

    def any_of(self, names: Collection[str], since: int, until: int) -> str:
        """The first of these nemeses that was at work in this time; '' = none."""
        return next((name for name in self._at_work(since, until) if name in names), "")

    def _at_work(self, since: int, until: float) -> Iterator[str]:
        for begun, ended, name in [*self._over, *((begun, until, name) for name, begun in self._on.items())]:
            if begun <= until and since <= ended:
                yield name

    def ended_lease(self, since: int, until: int) -> str:
        """As ``excuse``, for what only the end of a lease explains: then it took as long as that.

        But for what was written over: a worker's board says no more what it has done.
        """
        return self.written_over(since, until) or (self.excuse(since, until) if self.is_long(since, until) else "")

    def loss(self, started: int, finished: int, until: int) -> str:
        """The loss, after the job had finished and before it could be settled, that brought it back; '' = none."""
        losses = (name for name in self._at_work(finished, until) if name in _LOSSES)
        return next(losses, "") if self.is_long(started, until) else ""

    def is_long(self, since: int, until: int) -> bool:
        """Whether a lease may have ended in this time."""
        return until - since >= 0.8e9 * self.retry_after

    def written_over(self, since: int, until: int) -> str:
        """The nemesis that was writing over the boards in this time; '' = none."""
        return self.any_of(_WRITTEN_OVER, since, until)

    def slowed(self, span: float, since: int, until: int) -> float:
        """A span of time as it may have become between these moments, if others crowded the machine then.

        The pace of a moment is written down after it.
        """
        first, last = bisect_left(self._paces, (since, 0.0)), bisect_left(self._paces, (until, 0.0))
        paces = [times for _, times in self._paces[first : last + 1]]
        return span * max(1.0, max(paces, default=1.0) / OWN_PACE)

    def killed(self, pid: int, since: int) -> int | None:
        """When we killed this process, the first time after that moment."""
        return _first(self._kills.get(pid, []), since)

    def steward_killed(self, since: int, until: int) -> str:
        """Words for the death of a steward in this time, which cannot tell any more what it has settled; '' = none."""
        killed = _first(self._without_steward, since)
        return "the death of a steward" if killed is not None and killed <= until else ""

    def stopped(self, pid: int, since: int) -> int | None:
        """When we stopped it or let it go on, likewise."""
        return _first(self._stops.get(pid, []), since)

    def died(self, pid: int, since: int) -> int | None:
        """When it was seen dead."""
        return _first(self._deaths.get(pid, []), since)


def _first(moments: list[int], since: int) -> int | None:
    at = bisect_left(moments, since)
    return moments[at] if at < len(moments) else None
