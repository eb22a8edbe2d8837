"""One schedule: when it is due, and the job to push then. Also for the command line, which pushes it by hand."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from functools import partial

from queuepool.config.settings import ScheduleSettings
from queuepool.config.timetable import timetable_of
from queuepool.config.urls import folds_keys, kind_of
from queuepool.errors import BadPayload, ConfigError
from queuepool.log.tracebacks import summary
from queuepool.payload.on_push import Stamp, stamper
from queuepool.payload.php_values import PhpDataRefused
from queuepool.payload.scheduled import Template, identity_of
from queuepool.payload.signing import signer_of
from queuepool.stores.schedules import Due

_log = logging.getLogger("queuepool")


class ScheduledJob:
    """A schedule of the configuration. Raises ``ConfigError`` if its data cannot be a job's."""

    def __init__(self, settings: ScheduleSettings) -> None:
        self.settings = settings
        self.timetable = timetable_of(settings.cron, settings.every, settings.timezone)
        connection, is_object = settings.connection, bool(settings.object)
        signer = signer_of(connection.signing, connection.signing_keys)
        sign = partial(signer.sign, settings.queue) if signer else None
        kind = kind_of(connection.url)
        folds = folds_keys(connection.url)
        self._template = Template(settings.name, settings.pushes, is_object, settings.data, kind, sign, folds=folds)
        try:
            self.due(0, 0.0)
        except (BadPayload, PhpDataRefused) as error:
            raise ConfigError(f"[schedule:{settings.name}] data", str(error)) from error
        if stamp := stamper(settings.queue):  # only now: what was made above is not pushed
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
        """The due time with its job, which is made ``now`` (Unix seconds)."""
        return self._made(at, now, self.id_at(at))[1]

    def by_hand(self, now: float) -> tuple[str, Due]:
        """A job for a time that is none of the schedule's, ``now``: its id, which is random, and the job."""
        return self._made(int(now), now)

    def missed(self, at: int) -> Due:
        """The due time without a job."""
        return Due(self.settings.name, at)

    def _made(self, at: int, now: float, identity: str = "") -> tuple[str, Due]:
        lock = None if self.settings.overlap else self._template.lock()
        job_id, payload = self._template.payload(self.timetable.local(at), now, lock, identity=identity)
        return job_id, Due(self.settings.name, at, self.settings.queue, payload, lock)


def _stamped(schedule: str, stamp: Stamp, fields: Mapping[str, object]) -> Mapping[str, object]:
    """What ``@on_push`` gives. If it raises, nothing: no dispatch could raise it, and the job must not be missed."""
    try:
        return stamp(fields)
    except BaseException as error:  # noqa: BLE001 - whatever a hook raises
        _log.error("schedule %s: its job is pushed without the keys of @on_push: %s", schedule, summary(error))
        return {}
