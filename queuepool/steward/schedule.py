"""Push the jobs of schedules when they are due. Every steward tries; the store lets each time be pushed once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.events import ScheduleMissed, SchedulePushed
from queuepool.steward.scheduled_job import ScheduledJob
from queuepool.steward.side_stores import Emitter
from queuepool.stores.contract import Control
from queuepool.stores.control import PERIOD
from queuepool.stores.schedules import Fired, Result
from queuepool.stores.values import Values

#: seconds after which a due time counts as missed, and needs ``late`` to be made good
ON_TIME = 10.0
#: seconds until the store's clock is read again, as it may have been set
_LONGEST = 5.0


class FireSchedules:
    """Settles each schedule's latest due time, by a push or as missed, and sleeps until the next one.

    ``clock``: the store's, in Unix seconds. ``control``: the control keys as last read.
    """

    def __init__(
        self,
        pool: PoolSettings,
        store: Values,
        clock: Callable[[], float],
        control: Callable[[], Control],
        listeners: Emitter,
    ) -> None:
        self._jobs = {one.name: ScheduledJob(one) for one in pool.schedules}
        self._works_in_maintenance = pool.force
        self._store = store
        self._clock = clock
        self._control = control
        self._listeners = listeners
        #: by name: all due times up to this second are settled; and the next one
        self._settled: dict[str, int] = {}
        self._next: dict[str, int] = {}

    def run(self, now: float) -> float:
        control = self._control()
        if not self._next:
            self._begin(int(self._clock()))
        due = [name for name, at in self._next.items() if at <= self._clock()]
        is_closed = control.down and not self._works_in_maintenance
        waiting = {name for name in due if is_closed or name in control.schedules}
        self._settle_all([name for name in due if name not in waiting])
        return self._pause(waiting)

    def _begin(self, now: int) -> None:
        marks = self._store.begin({name: job.rule for name, job in self._jobs.items()}, now)
        for name, mark in marks.items():
            self._note(name, mark.settled)

    def _note(self, name: str, settled: int) -> None:
        self._settled[name] = settled
        self._next[name] = self._jobs[name].timetable.next_after(settled)

    def _settle_all(self, names: Sequence[str]) -> None:
        """Settle what is due. What the store refuses of one schedule is raised after the others have been served."""
        refused: StoreError | None = None
        for name in names:
            try:
                self._settle(name, self._jobs[name], self._clock())
            except StoreDown as error:
                if not isinstance(error, StoreDenied):
                    raise
                refused = error
            except StoreError as error:
                refused = error
        if refused:
            raise refused

    def _settle(self, name: str, job: ScheduledJob, now: float) -> None:
        at = job.timetable.latest(self._settled[name], now)
        if at is None:  # the clock was set back meanwhile
            return
        is_late = now - at > max(job.settings.late, ON_TIME)
        fired = self._store.fire(job.missed(at) if is_late else job.due(at, now))
        if fired is None:  # the marks are gone: all schedules begin anew
            self._begin(int(now))
            return
        if fired.result is Result.FULL:
            raise StoreError(f"there is no room for the job of schedule {name}")
        self._note(name, max(at, fired.before.settled))
        self._report(job, at, now, fired)

    def _report(self, job: ScheduledJob, at: int, now: float, fired: Fired) -> None:
        """Emit what has become of this time and of those before it, if it was this steward who settled them."""
        settings, local = job.settings, job.timetable.local
        if fired.result is Result.SETTLED:
            return
        last = at if fired.result is Result.PASSED else job.timetable.latest(fired.before.settled, at - 1)
        if last is not None:
            first = job.timetable.next_after(fired.before.settled)
            self._listeners.emit(ScheduleMissed(settings.name, local(first), local(last), "late"))
        if fired.result is Result.HELD:
            self._listeners.emit(ScheduleMissed(settings.name, local(at), local(at), "overlap"))
        if fired.result is Result.PUSHED:
            facts = settings.name, settings.pushes, settings.queue, job.id_at(at), local(at)
            self._listeners.emit(SchedulePushed(*facts, late=now - at))

    def _pause(self, waiting: Collection[str]) -> float:
        """Seconds until the next due time; until the control keys are read again if some are not to be pushed now."""
        now = self._clock()
        until = [PERIOD if name in waiting else max(at - now, 0.0) for name, at in self._next.items()]
        return min([_LONGEST, *until])
