"""Queues of several hash tags as one store: each verb goes to the queue's own group, and what spans several is divided.

A node that is away stops only its own queues, and the workers that hold a job of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from queuepool.config.connections import tag_of
from queuepool.errors import NeedsOneSlot, PartDown, StoreError
from queuepool.payload.lease import NOTHING, Ending, Lease, Lock, Outcome, StateRecord, Tallies, Unlock
from queuepool.payload.members import NewFlow, NewMember
from queuepool.stores.contract import (
    Measured,
    MovedJob,
    NewJob,
    QueueWalk,
    Reservation,
    Shelf,
    ShelfJob,
    Sizes,
    Staged,
    Wake,
)
from queuepool.stores.elsewhere import LocksElsewhere
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf
from queuepool.stores.redis.cluster import ClusterClient
from queuepool.stores.redis.spread.beside import FlowsRefused, LimitsRefused, SpreadRecords, SpreadValues
from queuepool.stores.redis.spread.groups import Groups, TagGroup, of_each, of_those_there
from queuepool.stores.redis.spread.relay import carry, deliver, parcel, relay_of
from queuepool.stores.redis.spread.reserving import Reserving
from queuepool.stores.redis.spread.tags import GroupTags
from queuepool.stores.redis.spread.waiting import wait_for_any
from queuepool.stores.redis.wire import TaggedKeys, braced

T = TypeVar("T")


class SpreadQueue:
    """The contract is ``stores.contract.QueueStore``. ``home``, ``keys``: of what belongs to no queue.

    ``at_slot`` makes a client that speaks to the owner of this slot.
    """

    reserve_ahead = None
    reserve_waiting = None
    polls = False
    commits_late = 0.0

    def __init__(
        self,
        home: ClusterClient,
        keys: TaggedKeys,
        groups: Groups,
        locks_of: LocksOf,
        values: SpreadValues,
        records: SpreadRecords,
        at_slot: Callable[[int], ClusterClient],
    ) -> None:
        self.client = home
        self.locks_of = locks_of
        self.flows = FlowsRefused(home, keys, lambda: self.clock)
        self.limits = LimitsRefused(home, keys, lambda: self.clock)
        self.keys = keys
        self._groups = groups
        self._values = values
        self._records = records
        self._at_slot = at_slot
        self._tags = GroupTags(groups, self._tend)
        self._reserving = Reserving(groups, self._tags)

    @property
    def clock(self) -> str:
        """'' for the server's, or a test's Unix seconds as text."""
        return self._groups.clock

    @clock.setter
    def clock(self, clock: str) -> None:
        self._groups.clock = clock
        for group in self._groups.all():
            group.queue.clock = clock

    def reach(self) -> None:
        groups = self._groups.all()
        try:
            of_each(groups, lambda group: group.queue.reach())
        except PartDown:
            if all(group.is_away for group in groups):
                raise

    @property
    def unanswered(self) -> int:
        return self._tags.refused + sum(group.queue.unanswered for group in self._groups.all())

    def join(self, old: int = 0, queues: Sequence[str] = ()) -> int:
        return self._tags.draw(old, list(self._groups.parts(queues)))

    def retire(self, tag: int) -> None:
        self._tags.retire(tag)

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        return self._tags.reclaim(queues, tag, since, known)

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        group = self._groups.of(queue)
        if jobs and jobs[0].asked:
            raise NeedsOneSlot("a job with limits")
        if any(job.state for job in jobs):
            self._values.note_in_use([group])
        pushes = LocksElsewhere(group.queue, self._values)
        apart = lock and lock._replace(is_elsewhere=True)
        return group.ask(lambda: pushes.push(queue, jobs, delay, apart))

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        self.flows.write(flow, members)

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        self.locks_of.here(unlocks)
        self.locks_of.found(0)

    # Work

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        return self._reserving.reserve(queues, tag, limit, done)

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        wait_for_any(self._groups.parts(queues), timeout)

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> Wake | None:
        channels = tuple(self._groups.of(queue).keys.channel(queue) for queue in queues)  # any node hears of all
        heard = self.client.wait_for_message((*channels, self.keys.news), timeout)
        if heard is None:
            return None
        return Wake.DUE if heard in channels else Wake.NEWS

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        return self._of_all(leases, lambda group, own: group.queue.delete(own))

    def give_back(self, leases: Sequence[Lease], mark: str = "") -> list[bool]:
        return self._of_all(leases, lambda group, own: group.queue.give_back(own, mark))

    def renew(self, leases: Sequence[Lease]) -> list[bool | None]:
        return self._groups.of_leases(leases, lambda group, own: group.queue.renew(own))

    def release(
        self, lease: Lease, delay: float, job_id: str, tally: str = "", state: StateRecord | None = None
    ) -> bool:
        return self._of(lease.queue, lambda one: one.queue.release(lease, delay, job_id, tally, state))

    def finish(self, lease: Lease, ending: Ending) -> bool:
        return self._ended(lease, ending, lambda group, own: group.queue.finish(lease, own), is_failed=False)

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        return self._ended(lease, ending, lambda group, own: group.queue.fail(lease, job_id, record, own))

    def cancel(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        return self._ended(lease, ending, lambda group, own: group.queue.cancel(lease, job_id, record, own))

    def quarantine(self, lease: Lease, reason: str) -> bool:
        return self._of(lease.queue, lambda one: one.queue.quarantine(lease, reason))

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        for lease, state in zip(leases, states, strict=True):
            self._of(lease.queue, partial(_show, lease=lease, state=state))

    # A job's tallies are beside its queue: if that is not said, of all groups that were used, one at most has any

    def count_crash(self, job_id: str, queue: str = "") -> int:
        return self._of(queue or braced(self.keys.tag), lambda one: one.queue.count_crash(job_id))

    def forget_tallies(self, job_id: str, queue: str = "") -> None:
        of_each(self._groups.beside(queue), lambda group: group.queue.forget_tallies(job_id))

    def tallies(self, job_id: str, queue: str = "") -> Tallies:
        found = of_each(self._groups.beside(queue), lambda group: group.queue.tallies(job_id))
        return next((one for one in found if one != Tallies()), Tallies())

    # The steward

    def stage(self, queues: Sequence[str]) -> Staged:
        def stage(group: TagGroup) -> Staged:
            self._tags.tell(group)
            self._tend(group)
            return group.queue.stage(parts[group])

        parts = self._groups.parts(queues)
        found = of_those_there(parts, stage)
        with suppress(StoreError):  # the next time does
            self._values.note_in_use(list(parts))
        with suppress(StoreError):  # likewise
            carry(self._groups.tagged(self.keys.tag), self._groups)
        due = [one.next_due for one in found if one.next_due is not None]
        return Staged(sum(one.moved for one in found), min(due, default=None), found[0].now)

    def ask_for_room(self) -> None:
        of_each(self._groups.all(), lambda group: group.queue.ask_for_room())

    def now(self) -> float:
        groups = [group for group in self._groups.all() if not group.is_away]
        return groups[0].ask(groups[0].queue.now) if groups else self._groups.tagged(self.keys.tag).queue.now()

    def _tend(self, group: TagGroup) -> None:
        """Take along what a process that has died has left in this group, for other slots."""
        if group.client.command("EXISTS", group.keys.ready(relay_of(group.tag)), group.keys.pending_times):
            with suppress(StoreError):  # the next time does
                self._records.forward(group)
                carry(group, self._groups)

    # People

    def sizes(self, queue: str) -> Sizes:
        return self._of(queue, lambda one: one.queue.sizes(queue))

    def measure(self, queue: str) -> Measured:
        return self._of(queue, lambda one: one.queue.measure(queue))

    def first(self, queue: str, most: int, state: Shelf = "ready") -> list[bytes]:
        return self._of(queue, lambda one: one.queue.first(queue, most, state))

    def walk(self, queue: str, shelves: Collection[Shelf], cursor: str = "") -> QueueWalk:
        return self._of(queue, lambda one: one.queue.walk(queue, shelves, cursor))

    def steps(self, jobs: Sequence[ShelfJob]) -> Iterator[Sequence[ShelfJob]]:
        return self._groups.tagged(self.keys.tag).queue.steps(jobs)

    def drop(self, queue: str, jobs: Sequence[ShelfJob], finder: Finder = NO_LOCKS) -> list[bool]:
        return self._of(queue, lambda one: one.queue.drop(queue, jobs, finder))

    def move(self, queue: str, jobs: Sequence[MovedJob], target: str) -> list[bool]:
        if self._groups.of(queue) is not self._groups.of(target):
            raise NeedsOneSlot(f"moving jobs from {queue} to {target}")
        return self._of(queue, lambda one: one.queue.move(queue, jobs, target))

    def clear(self, queue: str, finder: Finder = NO_LOCKS) -> int:
        return self._of(queue, lambda one: one.queue.clear(queue, finder))

    def queues(self) -> list[str]:
        found = set[str]()
        for slot in self.client.masters():
            node = self._at_slot(slot)
            for page in chain.from_iterable(map(node.scan_node, self.keys.patterns)):
                found |= {name for key in page if (name := self.keys.queue_in(key.decode("utf-8", "replace")))}
        return sorted({_plain(name) for name in found if name != relay_of(tag_of(name))})

    def slots_of(self, queues: Sequence[str]) -> list[tuple[ClusterClient, str]]:
        """For ``check``: of each hash tag among the queues, the client, and a key in its slot."""
        return [(group.client, group.keys.room) for group in self._groups.parts(queues)]

    def _of(self, queue: str, verb: Callable[[TagGroup], T]) -> T:
        group = self._groups.of(queue)
        return group.ask(lambda: verb(group))

    def _of_all(self, leases: Sequence[Lease], verb: Callable[[TagGroup, Sequence[Lease]], list[bool]]) -> list[bool]:
        """The answers in the order of the leases. All groups are asked before it raises for one that is away."""
        own = self._groups.own(leases)
        answers = of_each(own, lambda group: dict(zip(own[group], verb(group, own[group]), strict=True)))
        return [next(found[lease] for found in answers if lease in found) for lease in leases]

    def _ended(
        self, lease: Lease, ending: Ending, verb: Callable[[TagGroup, Ending], bool], *, is_failed: bool = True
    ) -> bool:
        """End a job; what is for another slot leaves its own at once, or by a steward."""
        group = self._groups.of(lease.queue)
        leaves = ending.outcome and self._groups.of(ending.outcome.queue) is not group
        if ending.outcome and leaves:
            ending = ending._replace(outcome=Outcome(relay_of(group.tag), parcel(*ending.outcome)))
        is_ended, at = group.ask(lambda: verb(group, ending)), time.monotonic()
        if ending.state:
            with suppress(StoreError):  # a steward does
                self._values.note_in_use([group])
        if is_ended and leaves and ending.outcome:
            with suppress(StoreError):  # a steward does, where the node with that queue is away
                deliver(ending.outcome.payload, at, group, self._groups)
        if is_failed:
            with suppress(StoreError):  # a steward does
                self._records.forward(group)
        return is_ended


def _show(group: TagGroup, lease: Lease, state: StateRecord) -> None:
    group.queue.show([lease], [state])


def _plain(queue: str) -> str:
    """The name without braces, if these are only those of its keys."""
    return queue[1:-1] if braced(queue[1:-1]) == queue else queue
