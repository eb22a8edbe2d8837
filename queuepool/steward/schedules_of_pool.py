"""All schedules that a steward pushes: those of the configuration, and those that the jobs of its workers declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from queuepool.board.board import Board
from queuepool.board.job_schedules import JobSchedule, published
from queuepool.config.settings import PoolSettings, ScheduleSettings
from queuepool.config.timetable import rule_of
from queuepool.steward.chore import Chore
from queuepool.steward.watch_control import WatchControl

#: seconds between looks for the schedules of jobs; and until the control keys of new ones are known
_PERIOD, _SOON = 2.0, 0.1


def declared(pool: PoolSettings, found: Iterable[JobSchedule]) -> tuple[ScheduleSettings, ...]:
    """The schedules of these jobs, with the defaults of ``[schedule]``.

    One of the configuration with the same name wins. The jobs are pushed where a dispatch of theirs goes to: pools on
    other connections, which may import the same modules, leave them alone.
    """
    defaults, taken = pool.job_schedules, {one.name for one in pool.schedules}
    if defaults is None or defaults.connection != pool.connection:
        return ()
    return tuple(made for one in found if one.job not in taken for made in _made(defaults, one))


def _made(defaults: ScheduleSettings, one: JobSchedule) -> Iterator[ScheduleSettings]:
    with suppress(ValueError):  # checked where the job is defined; a job has overwritten it
        cron, every = rule_of(one.rule)
        if cron or every:
            yield replace(defaults, name=one.job, job=one.job, cron=cron, every=every, queue=one.queue)


class SchedulesOfPool:
    """Keeps the chore ``fire`` for the present schedules; without any, nothing of it is imported."""

    def __init__(
        self, pool: PoolSettings, board: Board, watch: WatchControl, fire: Callable[[PoolSettings], Chore]
    ) -> None:
        self._pool = pool
        self._board = board
        self._watch = watch
        self._fire = fire
        self._found: Sequence[JobSchedule] | None = None
        self._chore: Chore | None = None
        self._look_at = 0.0

    def run(self, now: float) -> float:
        if now >= self._look_at:
            self._look_at = now + _PERIOD
            self._look()
        if self._chore is None:
            return _PERIOD
        if not self._watch.knows_schedules:
            return _SOON
        return min(self._chore.run(now), _PERIOD)

    def _look(self) -> None:
        found = published(self._board)
        if found == self._found:
            return
        self._found = found
        schedules = (*self._pool.schedules, *declared(self._pool, found))
        self._chore = self._fire(replace(self._pool, schedules=schedules)) if schedules else None
        self._watch.watch_schedules([one.name for one in schedules])
