"""Parts of ``check``: the web process' address, the schedules, log files, and what alerts, history and metrics need."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.config.timetable import Cron
from queuepool.config.values import address_of
from queuepool.errors import BadArguments, BadPayload, ConfigError, NotRunning, StoreError, UnknownJob
from queuepool.jobs.arguments import reader_of
from queuepool.jobs.registry import Handler, Registry, bound, unregistered
from queuepool.metrics.server import problem_of
from queuepool.payload.command import Commands
from queuepool.payload.envelope import decode
from queuepool.pool.announce import job_schedules
from queuepool.steward.schedule import ScheduledJob, declared
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Finding, Grade, refusal

#: seconds by which a mark may be ahead of the store's clock
_AHEAD = 60.0
#: seconds after which a key that could not be released expires
_KEY_LIFETIME = 2.0
#: lifetime in seconds of a text that has expired when it is written
_EXPIRED = -60.0
#: what is tried: its name, and the call
_Attempt = tuple[str, Callable[[], object]]


def inspect_address(pool: PoolSettings) -> Iterator[Finding]:
    """Whether the pool can listen on the address of its ``listen``, and who can connect there."""
    what, address = f"listen {pool.listen}", address_of(pool.listen)
    if _is_running(pool):
        yield Finding(Grade.OK, what, "the pool listens there")
    elif problem := problem_of(address):
        yield Finding(Grade.FAIL, what, problem)
    else:
        yield Finding(Grade.OK, what, "it is free")
    if not address.is_private:
        yield Finding(Grade.WARN, what, "is open to other hosts, and asks for no password")


def _is_running(pool: PoolSettings) -> bool:
    try:
        return RuntimeDir(pool).board().header.master_pid > 0
    except (NotRunning, ConfigError):
        return False


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
        # In a queue that is not ours, it may be for Laravel's workers.
        if one.queue in served or not {"@", "\\"} & set(one.pushes):
            yield from (words for _, words in unregistered(registry, {one.name: one.pushes}))
    else:
        yield from _of_handler(job, handler)
    if isinstance(job.timetable, Cron):
        yield from (f"{local.isoformat()} {words}" for local, words in job.timetable.changes(time.time()))


def _of_handler(job: ScheduledJob, handler: Handler) -> Iterator[str]:
    one = job.settings
    if handler.options.queue not in (None, "default", one.queue):
        yield f"its job names queue {handler.options.queue}, but the schedule pushes it to {one.queue}: set queue = ..."
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
        remedy = f"to end this: queuepool schedule forget {job.settings.name}"
        words = f"nothing is pushed before {until}: the clock was ahead; {remedy}"
        yield Finding(Grade.WARN, f"schedule {job.settings.name}", words)


def inspect_rights(stores: Stores, pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether the store permits what these pools, all of one connection, do beside their jobs."""
    for name, ask in _attempts(stores, pools):
        if words := refusal(ask):
            yield Finding(Grade.FAIL, f"connection {stores.settings.name}", f"{name} is refused: {words}")


def inspect_programs(pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether the program of ``[alerts] exec`` can be run by this user."""
    for name in dict.fromkeys(pool.alerts.program[0] for pool in pools if pool.alerts and pool.alerts.program):
        problem = _problem_of(Path(name))
        yield Finding(Grade.FAIL if problem else Grade.OK, f"alerts exec {name}", problem or "it can be run")


def inspect_logs(pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether this user can write to the pools' log files, which are not created here."""
    for path in dict.fromkeys(pool.log for pool in pools if pool.log):
        place = path if path.exists() else path.parent
        if not place.exists():
            yield Finding(Grade.FAIL, f"log {path}", f"there is no directory {place}")
        elif not os.access(place, os.W_OK):
            yield Finding(Grade.FAIL, f"log {path}", f"{place} cannot be written to by uid {os.geteuid()}")


def _attempts(stores: Stores, pools: Sequence[PoolSettings]) -> Iterator[_Attempt]:
    """What is tried, by name. Writes only under a name of our own, and leaves nothing."""
    own = f"check-{secrets.token_hex(6)}"
    if any(pool.metrics for pool in pools):
        queues = dict.fromkeys(queue for pool in pools for queue in pool.queues)
        yield from ((f"measuring queue {queue}", partial(stores.queue.measure, queue)) for queue in queues)
    if any(pool.metrics and pool.history for pool in pools):
        yield "keeping the history", partial(stores.values.keep_history, "1m", 0, own, "", _EXPIRED)
        yield "clearing the history", stores.values.sweep_history
    if any(pool.alerts for pool in pools):
        yield "reading the pools' notices for alerts", stores.control.pools
        yield "taking the key of an alert", partial(stores.values.claim_alert, own, own, _KEY_LIFETIME)
        yield "releasing the key of an alert", partial(stores.values.release_alert, own, own)


def _problem_of(program: Path) -> str:
    try:
        if not program.exists():
            return "there is no such file"
        if not program.is_file():
            return "is not a file"
    except OSError as error:
        return f"cannot be examined: {error.strerror}"
    return "" if os.access(program, os.X_OK) else f"cannot be run by uid {os.geteuid()}: chmod +x it"
