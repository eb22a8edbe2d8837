"""Examine schedules: their data, their jobs and queues, and what clock changes do to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from queuepool.config.settings import PoolSettings
from queuepool.config.timetable import Cron
from queuepool.errors import BadArguments, BadPayload, ConfigError, StoreError, UnknownJob
from queuepool.jobs.arguments import reader_of
from queuepool.jobs.registry import Handler, Registry, bound
from queuepool.jobs.unserved import unregistered
from queuepool.payload.command import Commands
from queuepool.payload.envelope import decode
from queuepool.pool.announce import job_schedules
from queuepool.steward.scheduled_job import ScheduledJob
from queuepool.steward.schedules_of_pool import declared
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Finding, Grade

#: seconds by which a mark may be ahead of the store's clock
_AHEAD = 60.0


def inspect_schedules(pools: Sequence[PoolSettings], registry: Registry) -> Iterator[Finding]:
    """The findings about the schedules of these pools; ``registry`` has the jobs of their modules."""
    found = job_schedules()
    for one in dict.fromkeys(one for pool in pools for one in (*pool.schedules, *declared(pool, found))):
        try:
            job = ScheduledJob(one)
        except ConfigError as error:
            yield Finding(Grade.FAIL, f"schedule {one.name}", str(error))
            continue
        following = job.timetable.local(job.timetable.next_after(time.time()))
        yield Finding(Grade.OK, f"schedule {one.name}", f"{one.rule}, next {following.isoformat()}")
        served = {queue for pool in pools if pool.connection == one.connection for queue in pool.queues}
        yield from (Finding(Grade.WARN, f"schedule {one.name}", words) for words in _about(job, served, registry))
        yield from _mark(job)


def _about(job: ScheduledJob, served: set[str], registry: Registry) -> Iterator[str]:
    one = job.settings
    if one.queue not in served:
        yield f"no pool of this configuration serves its queue {one.queue}"
    try:
        handler = registry.find(one.pushes)
    except UnknownJob:
        # Of a queue that is not ours it may be for Laravel's workers.
        if one.queue in served or not {"@", "\\"} & set(one.pushes):
            yield from (words for _, words in unregistered(registry, {one.name: one.pushes}))
    else:
        yield from _of_handler(job, handler)
    if isinstance(job.timetable, Cron):
        yield from (f"{local.isoformat()} {words}" for local, words in job.timetable.changes(time.time()))


def _of_handler(job: ScheduledJob, handler: Handler) -> Iterator[str]:
    one = job.settings
    if handler.options.queue not in (None, "default", one.queue):
        yield f"its job names queue {handler.options.queue}, but is pushed to {one.queue}: say queue = ..."
    try:
        payload = decode(job.due(0, 0.0).payload)
        bound(handler, Commands().data_of(payload), reader_of(handler.name, handler.target))
    except (BadPayload, BadArguments) as error:
        yield f"data: {error}"


def _mark(job: ScheduledJob) -> Iterator[Finding]:
    with closing(Stores(job.settings.connection, shared=True, by_hand=True)) as stores:
        try:
            mark, now = stores.values.marks().get(job.settings.name), stores.queue.now()
        except StoreError as error:
            yield Finding(Grade.FAIL, f"schedule {job.settings.name}", str(error))
            return
    if mark and mark.settled > now + _AHEAD:
        until = job.timetable.local(mark.settled).isoformat()
        words = f"nothing is pushed before {until}: the clock was ahead; queuepool schedule forget {job.settings.name}"
        yield Finding(Grade.WARN, f"schedule {job.settings.name}", words)
