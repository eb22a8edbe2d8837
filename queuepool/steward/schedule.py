"""Push the jobs of schedules when they are due. Every steward tries; the store lets each due time be pushed once.

Schedules come from the configuration and from the jobs that declare one; the command line pushes them by hand.
"""

from __future__ import annotations

import hashlib
import json
import logging
import socket
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from queuepool.board.board import Board
from queuepool.board.from_workers import JobSchedule, published_schedules
from queuepool.config.settings import PoolSettings, ScheduleSettings
from queuepool.config.timetable import rule_of, timetable_of
from queuepool.config.urls import folds_keys, kind_of
from queuepool.errors import BadPayload, ConfigError, StoreDenied, StoreDown, StoreError
from queuepool.events import ScheduleMissed, SchedulePushed
from queuepool.log.tracebacks import summary
from queuepool.payload.context import Texts
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, SCHEDULED_FOR, Envelope, encode
from queuepool.payload.lease import Lock
from queuepool.payload.on_push import Stamp, stamper
from queuepool.payload.options import TRACK
from queuepool.payload.php_values import PhpDataRefused, build_command
from queuepool.payload.signing import signer_of
from queuepool.payload.unique_locks import DAY, claimed, exact, new_lock
from queuepool.steward.loop import Chore
from queuepool.steward.side_stores import Emitter
from queuepool.steward.watch_store import WatchControl
from queuepool.stores.contract import Control
from queuepool.stores.control import PERIOD
from queuepool.stores.due_log import DueLine, DueLog
from queuepool.stores.values import Due, Fired, Result, Values

#: seconds after which a due time counts as missed, unless ``late`` allows more
ON_TIME = 10.0
#: seconds until the store's clock is read again, as it may have been set
_LONGEST = 5.0
#: seconds between looks for the schedules of jobs; and until the control keys of new ones are known
_PERIOD, _SOON = 2.0, 0.1
#: for how many intervals an outcome is kept, and seconds of the shortest and the longest time
_KEPT_RUNS, _SHORTEST_KEPT, _LONGEST_KEPT = 3, 60, 35 * 86400
_log = logging.getLogger("queuepool")


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
        self._log = DueLog(store)
        self._host = socket.gethostname()
        #: the outcomes to record; and why the due times of a schedule wait, by its name
        self._lines: list[tuple[str, DueLine]] = []
        self._waits: dict[str, str] = {}
        #: by name: the second up to which all due times are settled; and the next due time
        self._settled: dict[str, int] = {}
        self._next: dict[str, int] = {}

    def run(self, now: float) -> float:
        control = self._control()
        if not self._next:
            self._begin(int(self._clock()))
        due = [name for name, at in self._next.items() if at <= self._clock()]
        is_closed = control.down and not self._works_in_maintenance
        waiting = {name for name in due if is_closed or name in control.schedules}
        self._waits |= dict.fromkeys(waiting, "maintenance" if is_closed else "paused")
        self._settle_all([name for name in due if name not in waiting])
        self._write_down()
        return self._pause(waiting)

    def _begin(self, now: int) -> None:
        marks = self._store.begin({name: job.rule for name, job in self._jobs.items()}, now)
        for name, mark in marks.items():
            self._note(name, mark.settled)

    def _note(self, name: str, settled: int) -> None:
        self._settled[name] = settled
        self._next[name] = self._jobs[name].timetable.next_after(settled)

    def _settle_all(self, names: Sequence[str]) -> None:
        """Settle what is due. If the store refuses one schedule, that is raised once the others have been served."""
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
        if fired is None:  # the marks are gone: all schedules start over
            self._begin(int(now))
            return
        if fired.result is Result.FULL:
            raise StoreError(f"there is no room for the job of schedule {name}")
        self._note(name, max(at, fired.before.settled))
        self._report(job, at, now, fired)

    def _report(self, job: ScheduledJob, at: int, now: float, fired: Fired) -> None:
        """Emit what became of this due time and those before it, if this steward has settled them."""
        settings, local = job.settings, job.timetable.local
        if fired.result is Result.SETTLED:
            return
        last = at if fired.result is Result.PASSED else job.timetable.latest(fired.before.settled, at - 1)
        why = self._waits.pop(settings.name, "late")
        if last is not None:
            first = job.timetable.next_after(fired.before.settled)
            self._listeners.emit(ScheduleMissed(settings.name, local(first), local(last), "late"))
            self._note_line(settings.name, DueLine(int(last), now, first=int(first), reason=why))
        if fired.result is Result.HELD:
            self._listeners.emit(ScheduleMissed(settings.name, local(at), local(at), "overlap"))
            self._note_line(settings.name, DueLine(at, now, first=at, reason="overlap"))
        if fired.result is Result.PUSHED:
            facts = settings.name, settings.pushes, settings.queue, job.id_at(at), local(at)
            self._listeners.emit(SchedulePushed(*facts, late=now - at))
            self._note_line(settings.name, DueLine(at, now, job.id_at(at), first=at))

    def _note_line(self, name: str, line: DueLine) -> None:
        self._lines.append((name, replace(line, host=self._host)))

    def _write_down(self) -> None:
        """Record the outcomes, once everything is settled: the jobs must not wait for that."""
        lines, self._lines = self._lines, []
        with suppress(StoreError):  # the jobs are pushed; the next use of the store reports the outage
            for name, line in lines:
                self._log.write(name, line)

    def _pause(self, waiting: Collection[str]) -> float:
        """Seconds until the next due time, or until the control keys are read again if some must wait for that."""
        now = self._clock()
        until = [PERIOD if name in waiting else max(at - now, 0.0) for name, at in self._next.items()]
        return min([_LONGEST, *until])


class ScheduledJob:
    """One schedule: when it is due, and the job to push then. Raises ``ConfigError`` if its data cannot be a job's."""

    def __init__(self, settings: ScheduleSettings) -> None:
        self.settings = settings
        self.timetable = timetable_of(settings.cron, settings.every, settings.timezone)
        connection, is_object = settings.connection, bool(settings.object)
        signer = signer_of(connection.signing, connection.signing_keys)
        sign = partial(signer.sign, settings.queue) if signer else None
        kind = kind_of(connection.url)
        folds = folds_keys(connection.url)
        self._template = ScheduledPayload(
            settings.name, settings.pushes, is_object, settings.data, kind, sign, folds=folds
        )
        try:
            self.due(0, 0.0)
        except (BadPayload, PhpDataRefused) as error:
            raise ConfigError(f"[schedule:{settings.name}] data", str(error)) from error
        if stamp := stamper(settings.queue):  # only now: the job made above is not pushed
            self._template = self._template._replace(stamp=partial(_stamped, settings.name, stamp))

    @property
    def rule(self) -> str:
        """A digest of when it is due."""
        return hashlib.sha256(self.settings.rule.encode()).hexdigest()[:16]

    @property
    def lock(self) -> str:
        """The name of the lock that its jobs hold; empty if they may overlap."""
        return "" if self.settings.overlap else self._template.lock().name

    def id_at(self, at: int) -> str:
        """The id of the job for this due time."""
        return identity_of(self.settings.name, self.timetable.local(at))

    def due(self, at: int, now: float) -> Due:
        """The due time with its job, created ``now`` (Unix seconds)."""
        return self._made(at, now, self.id_at(at))[1]

    def by_hand(self, now: float) -> tuple[str, Due]:
        """A job for ``now``, which need not be a due time: its id, which is random, and the job."""
        return self._made(int(now), now)

    def missed(self, at: int) -> Due:
        """The due time without a job."""
        return Due(self.settings.name, at)

    def _track(self, at: int) -> int:
        """Seconds for which the outcome is kept: until the next runs have come, so that there are few at any time."""
        interval = self.timetable.next_after(at) - at
        return int(min(max(_KEPT_RUNS * interval, _SHORTEST_KEPT), _LONGEST_KEPT))

    def _made(self, at: int, now: float, identity: str = "") -> tuple[str, Due]:
        lock = None if self.settings.overlap else self._template.lock()
        job_id, payload = self._template.payload(
            self.timetable.local(at), now, lock, identity=identity, track=self._track(at)
        )
        return job_id, Due(self.settings.name, at, self.settings.queue, payload, lock)


def _stamped(schedule: str, stamp: Stamp, fields: Mapping[str, object]) -> Mapping[str, object]:
    """What ``@on_push`` adds; nothing if it raises, as the job must not be missed and no dispatch can raise it."""
    try:
        return stamp(fields)
    except BaseException as error:  # noqa: BLE001 - whatever a hook raises
        _log.error("schedule %s: its job is pushed without the keys of @on_push: %s", schedule, summary(error))
        return {}


def declared(pool: PoolSettings, found: Iterable[JobSchedule]) -> tuple[ScheduleSettings, ...]:
    """The schedules of these jobs, with the defaults of ``[schedule]``.

    A schedule of the configuration with the same name wins. Jobs are pushed where a dispatch of theirs would go, so
    pools on other connections, which may import the same modules, leave them alone.
    """
    defaults, taken = pool.job_schedules, {one.name for one in pool.schedules}
    if defaults is None or defaults.connection != pool.connection:
        return ()
    return tuple(made for one in found if one.job not in taken for made in _settings_of(defaults, one))


def _settings_of(defaults: ScheduleSettings, one: JobSchedule) -> Iterator[ScheduleSettings]:
    with suppress(ValueError):  # checked where the job is defined, so a job has overwritten it
        cron, every = rule_of(one.rule)
        if cron or every:
            yield replace(defaults, name=one.job, job=one.job, cron=cron, every=every, queue=one.queue)


class SchedulesOfPool:
    """Runs the chore that ``fire`` makes for all present schedules; without any, it is not even imported."""

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
        found = published_schedules(self._board)
        if found == self._found:
            return
        self._found = found
        schedules = (*self._pool.schedules, *declared(self._pool, found))
        self._chore = self._fire(replace(self._pool, schedules=schedules)) if schedules else None
        self._watch.watch_schedules([one.name for one in schedules])


_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "queuepool:schedule")


class ScheduledPayload(NamedTuple):
    """What the payloads of one schedule have in common.

    ``job`` names a job, or a PHP class if ``is_object``; ``data`` is JSON, or empty; ``kind`` is the kind of the store,
    which with ``folds`` treats similar keys as equal; ``sign`` and ``stamp`` as for ``Envelope``.
    """

    name: str
    job: str
    is_object: bool
    data: str
    kind: str
    sign: Callable[[dict[str, object]], object] | None = None
    stamp: Callable[[Mapping[str, object]], Mapping[str, object]] | None = None
    folds: bool = False

    def lock(self) -> Lock:
        """The lock of a job with ``overlap = no``, held until it is over, at most a day; its owner is new."""
        lock = new_lock(self.job, f"schedule:{self.name}", DAY)
        assert lock
        return exact(lock, self.job) if self.folds else lock

    def payload(
        self, due: datetime, created_at: float, lock: Lock | None = None, *, identity: str = "", track: int = 0
    ) -> tuple[str, bytes]:
        """The id and bytes of the job for this due time. Raises ``BadPayload`` and ``PhpDataRefused``.

        ``track``: seconds for which its outcome is kept, unless its handler says for how long.
        """
        name, data, display_name = self._call()
        envelope = Envelope(
            created_at,
            display_name=display_name,
            extra=_extra(claimed(None, lock, self.kind), due, track),
            stamp=self.stamp,
            sign=self.sign,
        )
        return encode(name, data, envelope, identity)

    def _call(self) -> tuple[str, Any, str | None]:
        data = json.loads(self.data) if self.data else None
        if not self.is_object:
            return self.job, data, None
        return OBJECT_JOB, {"commandName": self.job, "command": build_command(self.job, data or {})}, self.job


def _extra(context: Texts | None, due: datetime, track: int) -> dict[str, object]:
    return {
        **({CONTEXT: context} if context else {}),
        SCHEDULED_FOR: due.isoformat(),
        **({TRACK: f"+{track}"} if track else {}),
    }


def identity_of(name: str, due: datetime) -> str:
    """The id of the job that this schedule pushes for this time, the same in every process."""
    return str(uuid.uuid5(_NAMESPACE, f"{name} {due.astimezone(UTC).isoformat()}"))
