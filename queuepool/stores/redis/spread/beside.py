"""What is kept beside the queues of several hash tags: failed jobs, values, attempts, steps, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from queuepool.errors import NeedsOneSlot, StoreDown, StoreError
from queuepool.payload.lease import AttemptRecord, Lease, Lock, StateRecord, Unlock
from queuepool.payload.limits import PlaceAsked
from queuepool.payload.members import MemberOf, NewFlow, NewMember
from queuepool.stores.attempts import KeptAttempt
from queuepool.stores.elsewhere import Forwarder
from queuepool.stores.limits import Admission, LimitRecord
from queuepool.stores.locks import LocksOf
from queuepool.stores.records import PendingFailure, Quarantined, Retrying, Returned
from queuepool.stores.redis.arrivals import RedisArrivals
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.flows import RedisFlows
from queuepool.stores.redis.limits import RedisLimits
from queuepool.stores.redis.records import RedisRecords
from queuepool.stores.redis.spread.groups import Groups, TagGroup, of_each
from queuepool.stores.redis.spread.relay import deliver, parcel, relay_of
from queuepool.stores.redis.values import RedisValues
from queuepool.stores.redis.wire import TaggedKeys
from queuepool.stores.values import Due, Fired, Result


class LocksApart(LocksOf):
    """All unique locks are elsewhere: none is in the slot of its job."""

    def own_among(self, unlocks: Sequence[Unlock]) -> Sequence[Unlock]:
        return ()


class FlowsRefused(RedisFlows):
    """No flow is written, as its members could not start each other in other slots."""

    def write(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        raise NeedsOneSlot("a flow")


class LimitsRefused(RedisLimits):
    """No job with limits starts, as places that jobs in several slots hold could not be counted in one step."""

    def declare(self, name: str, number: int, per: float) -> LimitRecord | None:
        raise NeedsOneSlot(f"limit {name}")

    def enter(self, lease: Lease, job_id: str, asked: Sequence[PlaceAsked], start: str = "") -> Admission:
        raise NeedsOneSlot("a job with limits")


class ArrivalsRefused(RedisArrivals):
    """No job comes from another store: whether it has come is asked by its number alone, which tells no slot."""

    def place(self) -> str:
        raise NeedsOneSlot("moving jobs to another connection")


class DurationsRefused:
    """No use is counted in Redis itself, as each name's window is a key in another slot."""

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        raise NeedsOneSlot("a rate that is counted in Redis (in_redis=True)")

    def forget_uses(self, name: str) -> None:
        raise NeedsOneSlot("a rate that is counted in Redis (in_redis=True)")


class SpreadValues(RedisValues):
    """The values of the home; states are beside their jobs, and the jobs of schedules are carried to their queues."""

    def __init__(self, client: RedisClient, keys: TaggedKeys, groups: Groups) -> None:
        super().__init__(client, keys)
        self._home = keys
        self._groups = groups
        self._noted: set[str] = set()

    def fire(self, due: Due) -> Fired | None:
        home, payload = self._groups.tagged(self._home.tag), due.payload and parcel(due.queue, due.payload)
        fired, at = super().fire(due._replace(queue=relay_of(home.tag), payload=payload)), time.monotonic()
        if fired and fired.result is Result.PUSHED:
            with suppress(StoreError):  # a steward does it, as soon as the other node answers
                deliver(payload, at, home, self._groups)
        return fired

    def note_in_use(self, groups: Sequence[TagGroup]) -> None:
        """Have every process find the states of their jobs."""
        if new := {group.tag for group in groups} - self._noted:
            # With commands that every role has: a set would need two more.
            self._client.command("ZADD", self._home.tags_in_use, *(word for tag in sorted(new) for word in (0, tag)))
            self._noted |= new

    def state(self, job_id: str) -> bytes | None:
        problem = None
        for group in self._known():
            try:
                found = group.ask(lambda group=group: RedisValues(group.client, group.keys).state(job_id))  # type: ignore[misc]
            except StoreDown as error:
                problem = error  # of the other nodes, one may have it
            else:
                if found:
                    return found
        if problem:
            raise problem
        return None

    def tracked(self, job_ids: Sequence[str]) -> set[str]:
        found = of_each(self._known(), lambda group: RedisValues(group.client, group.keys).tracked(job_ids))
        return {job_id for ids in found for job_id in ids}

    def _known(self) -> list[TagGroup]:
        tags = {tag.decode() for tag in self._client.command("ZRANGE", self._home.tags_in_use, 0, -1)}
        return list(dict.fromkeys((*self._groups.all(), *map(self._groups.tagged, sorted(tags)))))


class SpreadRecords(RedisRecords):
    """Failed jobs in the home, or in another store that its outbox leads to; what is of a queue, beside that."""

    def __init__(
        self, client: RedisClient, keys: TaggedKeys, locks_of: LocksOf, groups: Groups, *, is_elsewhere: bool
    ) -> None:
        super().__init__(client, keys, locks_of)
        self._home = keys.tag
        self._groups = groups
        self._is_elsewhere = is_elsewhere

    def record(self, failure: PendingFailure) -> None:
        self._groups.tagged(self._home).ask(lambda: self._record(failure))

    def _record(self, failure: PendingFailure) -> None:
        if not self._is_elsewhere:
            super().record(failure)
            return
        self._client.command("HSET", self._keys.pending, failure.id, json.dumps(failure.record))
        self._client.command("ZADD", self._keys.pending_times, time.time(), failure.id)

    def forward(self, group: TagGroup) -> None:
        """Take what has failed in this group. Raises ``StoreDown``."""
        Forwarder(group.records, self).forward()

    def resume(self, job: Retrying, member: MemberOf, queue: str | None = None, *, is_here: bool = False) -> Returned:
        return Returned.ALONE

    def quarantined(self, queue: str) -> Iterator[Quarantined]:
        return self._groups.of(queue).records.quarantined(queue)

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None, lock: Lock | None = None) -> Returned:
        if lock and not self._locks_of.own.take(lock):
            return Returned.HELD
        return self._groups.of(queue).records.requeue(queue, entry_id, payload)

    def drop_quarantined(
        self, queue: str, entry_id: str, unlocks: Sequence[Unlock] = (), state: StateRecord | None = None
    ) -> bool:
        return self._groups.of(queue).records.drop_quarantined(queue, entry_id, unlocks, state)


class SpreadAttempts:
    """The kept attempts, each beside its queue."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def of_job(self, queue: str, job_id: str) -> Iterator[list[KeptAttempt]]:
        return self._groups.of(queue).attempts.of_job(queue, job_id)

    def pages(self, queue: str) -> Iterator[list[KeptAttempt]]:
        return self._groups.of(queue).attempts.pages(queue)

    def latest(self, queue: str, most: int, most_bytes: int) -> list[KeptAttempt]:
        group = self._groups.of(queue)
        return group.ask(lambda: group.attempts.latest(queue, most, most_bytes))

    def note(self, queue: str, records: Sequence[AttemptRecord]) -> None:
        group = self._groups.of(queue)
        group.ask(lambda: group.attempts.note(queue, records))

    def trim(self, queue: str, most: int, most_bytes: int) -> int:
        group = self._groups.of(queue)
        return group.ask(lambda: group.attempts.trim(queue, most, most_bytes))


class SpreadSteps:
    """The kept steps, beside the queue of their job; by its id alone they are looked for beside all that were used."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def of_job(self, job_id: str) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for steps in of_each(self._groups.all(), lambda group: group.steps.of_job(job_id)):
            found |= steps
        return found

    def keep(self, lease: Lease, job_id: str, values: Mapping[str, bytes]) -> bool:
        group = self._groups.of(lease.queue)
        return group.ask(lambda: group.steps.keep(lease, job_id, values))

    def forget(self, job_id: str, name: str) -> bool:
        return any(of_each(self._groups.all(), lambda group: group.steps.forget(job_id, name)))
