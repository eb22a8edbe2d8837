"""Payloads of scheduled jobs. A job's id follows from the schedule's name and the due time."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from queuepool.payload.context import Texts
from queuepool.payload.ending import Lock
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, SCHEDULED_FOR, Envelope, encode
from queuepool.payload.unique_locks import DAY, claimed, exact, new_lock

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
        self, due: datetime, created_at: float, lock: Lock | None = None, *, identity: str = ""
    ) -> tuple[str, bytes]:
        """The id and bytes of the job for this due time. Raises ``BadPayload`` and ``PhpDataRefused``."""
        name, data, display_name = self._call()
        envelope = Envelope(
            created_at,
            display_name=display_name,
            extra=_extra(claimed(None, lock, self.kind), due),
            stamp=self.stamp,
            sign=self.sign,
        )
        return encode(name, data, envelope, identity)

    def _call(self) -> tuple[str, Any, str | None]:
        data = json.loads(self.data) if self.data else None
        if not self.is_object:
            return self.job, data, None
        from queuepool.payload.php_serialize import build_command  # imported here: few schedules push such jobs

        return OBJECT_JOB, {"commandName": self.job, "command": build_command(self.job, data or {})}, self.job


def _extra(context: Texts | None, due: datetime) -> dict[str, object]:
    return {**({CONTEXT: context} if context else {}), SCHEDULED_FOR: due.isoformat()}


def identity_of(name: str, due: datetime) -> str:
    """The id of the job that this schedule pushes for this time, the same in every process."""
    return str(uuid.uuid5(_NAMESPACE, f"{name} {due.astimezone(UTC).isoformat()}"))
