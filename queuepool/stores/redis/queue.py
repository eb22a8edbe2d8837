"""Jobs in Laravel's Redis queues, as they are pushed, reserved and settled.

The contract is ``stores.contract.QueueStore``; what people ask of it is in ``shelves.py``.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.payload.envelope import MAX_BYTES, uncounted
from queuepool.payload.lease import NOTHING, Ending, Lease, Lock, StateRecord, Tallies, Unlock
from queuepool.payload.members import NewFlow, NewMember
from queuepool.stores.contract import NO_TRY, NewJob, Reservation, Staged, Wake
from queuepool.stores.locks import LocksOf
from queuepool.stores.redis.client import RedisClient, explained
from queuepool.stores.redis.connections import PendingReplies
from queuepool.stores.redis.ending import EndingScripts, PayloadPlaces
from queuepool.stores.redis.flows import RedisFlows, flows_in
from queuepool.stores.redis.limits import RedisLimits
from queuepool.stores.redis.shelves import RedisShelves
from queuepool.stores.redis.wire import BATCH, BATCH_BYTES, Keys, by_queue, following, whole
from queuepool.stores.steps import in_steps

#: as many as fit the bits of a lease's score (lua/include/lease.lua)
TAGS = 131072
#: seconds for which the server's clock is assumed to run at the speed of ours
_CLOCK_LASTS = 10.0
#: where ``reserve.lua`` has the done jobs, and of how many parts its answer is; ``end_members.lua`` adds one
_DONE, _PLAIN = PayloadPlaces(9, between=3), 6


class RedisQueue(RedisShelves):
    """Laravel's queue on one connection.

    ``keep``: record failed jobs; ``outbox``: their records only wait here, for a failed store on another server.
    ``locks_of`` divides unique locks between this store and Laravel's cache. ``clock`` is '' for the server's, or a
    test's Unix seconds as text.
    """

    def __init__(
        self,
        client: RedisClient,
        keys: Keys,
        retry_after: float,
        locks_of: LocksOf,
        *,
        keep: bool = True,
        outbox: bool = False,
    ) -> None:
        super().__init__(client, keys, locks_of)
        self._recording = EndingScripts(client, keys, lambda: self.clock)
        self.flows = RedisFlows(client, keys, lambda: self.clock)
        self.limits = RedisLimits(client, keys, lambda: self.clock)
        self._retry_after = retry_after
        self._keep = keep
        self._outbox = outbox
        self._offset = 0.0
        self._offset_ends = 0.0
        self._reserve_keys: dict[tuple[str, ...], list[str]] = {}
        self._hears_news = True

    @property
    def polls(self) -> bool:
        return False

    def reach(self) -> None:
        self.client.reach()

    @property
    def unanswered(self) -> int:
        return self.client.unanswered

    @property
    def commits_late(self) -> float:
        return 0.0

    def join(self, old: int = 0, queues: Sequence[str] = ()) -> int:
        return self.claim(1 + secrets.randbelow(TAGS - 1), old)

    def claim(self, tag: int, old: int) -> int:
        """As ``join``: this tag, or the next one that is free."""
        self.client.note_server()
        return int(self.client.script("join", [self.keys.tags], [self.clock, self._retry_after, TAGS, tag, old]))

    def retire(self, tag: int) -> None:
        self.client.script("retire", [self.keys.tags], [self.clock, tag])

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        steps = in_steps(jobs, BATCH, BATCH_BYTES, lambda job: len(job.payload))
        return all(self._push(queue, step, delay, lock) for step in steps)

    def _push(self, queue: str, jobs: Sequence[NewJob], delay: float, lock: Lock | None) -> bool:
        keys, payloads, states = self.keys, [job.payload for job in jobs], [job.state for job in jobs if job.state]
        names = [keys.delayed(queue)] if delay > 0 else [keys.ready(queue), keys.notify(queue)]
        if delay <= 0 and not states and lock is None:
            if jobs[0].asked:
                return self.limits.push(queue, jobs)
            self.client.script("push", names, payloads)
            return True
        args: list[Any] = [self.clock, delay, keys.channel(queue), len(jobs), lock.owner if lock else "", *payloads]
        if states:
            names += [keys.state(state.job_id) for state in states]
            args += [whole(states[0].seconds), *[state.text for state in states]]
        if lock:
            names.append(keys.lock(lock.name))
            args.append(lock.seconds)
        return bool(self.client.script("push_with", names, args) == 1)

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        self.flows.write(flow, members)

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        self.locks_of.found(self.locks_of.own.release(self.locks_of.here(unlocks)))

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        done = by_queue(done, queues)
        call = self.flows.around(done, *self._reserve_words(queues, tag, limit, done))
        if done and done[0].record:
            return _reservation(*self._recording.run(done, _DONE, *call), queues, tag, done)
        return _reservation(self.client.script(*call), call[0], queues, tag, done)

    def reserve_ahead(
        self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()
    ) -> Callable[[], Reservation]:
        done = by_queue(done, queues)
        call = self.flows.around(done, *self._reserve_words(queues, tag, limit, done))
        if done and done[0].record:
            read = self._recording.run_ahead(done, _DONE, *call)
            return lambda: _reservation(*read(), queues, tag, done)
        answer = self.client.script_ahead(*call)
        return lambda: _reservation(answer(), call[0], queues, tag, done)

    def reserve_waiting(
        self, queues: Sequence[str], timeout: float, tag: int, limit: int, done: Sequence[Lease] = ()
    ) -> ReserveBehindWait:
        done = by_queue(done, queues)
        keys, args = self._reserve_words(queues, tag, limit, ())
        before = self._reserve_words(queues, tag, 0, done)[1] if done else ()
        kept = self._recording.call(done, _DONE, "reserve", keys, before) if done and done[0].record else None
        replies = self.client.script_behind(self._blpop(queues, timeout), "reserve", keys, args, before, kept)
        leave_out = self._recording.leave_out if kept else None
        return ReserveBehindWait(self.client, replies, queues, tag, done, keys, args, leave_out)

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        self.client.blocking(*self._blpop(queues, timeout))

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> Wake | None:
        channels = tuple(map(self.keys.channel, queues))
        heard = self._heard(channels, timeout)
        if heard is None:
            return None
        return Wake.DUE if heard in channels else Wake.NEWS  # also if it may have missed any

    def _heard(self, channels: tuple[str, ...], timeout: float) -> str | None:
        """The next message's channel; a user whose rules name only the queues' channels hears no news."""
        if self._hears_news:
            try:
                return self.client.wait_for_message((*channels, self.keys.news), timeout)
            except StoreDenied:  # of all of them, although it may be the last one alone
                heard = self.client.wait_for_message(channels, timeout)
                self._hears_news = False
                return heard
        return self.client.wait_for_message(channels, timeout)

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        queues = sorted({lease.queue for lease in leases})
        args = [word for lease in leases for word in (queues.index(lease.queue) + 1, lease.tag, lease.receipt)]
        names = list(map(self.keys.reserved, queues))
        return [answer == 1 for answer in self._recording.end(leases, PayloadPlaces(3, 3), "delete", names, args)]

    def release(
        self, lease: Lease, delay: float, job_id: str, tally: str = "", state: StateRecord | None = None
    ) -> bool:
        queue, keys = lease.queue, self.keys
        names = [keys.ready(queue), keys.delayed(queue), keys.reserved(queue), keys.notify(queue), keys.tallies(job_id)]
        args = [self.clock, delay, lease.receipt, tally, keys.channel(queue), lease.tag]
        if state:
            names, args = [*names, keys.state(job_id)], [*args, state.text, whole(state.seconds)]
        name = "postpone" if tally == NO_TRY else "release"
        return bool(self._recording.end([lease], PayloadPlaces(3), name, names, args) == 1)

    def give_back(self, leases: Sequence[Lease], mark: str = "") -> list[bool]:
        tallies = [self.keys.tallies(mark)] if mark else []
        answers: dict[Lease, bool] = {}
        for queue in {lease.queue for lease in leases}:
            own = [lease for lease in leases if lease.queue == queue]
            names = [self.keys.ready(queue), self.keys.reserved(queue), self.keys.notify(queue), *tallies]
            proofs = [word for lease in own for word in (lease.tag, lease.receipt)]
            replies = self._recording.end(own, PayloadPlaces(2, 2), "give_back", names, proofs)
            answers |= {lease: answer == 1 for lease, answer in zip(own, replies, strict=True)}
        return [answers[lease] for lease in leases]

    def count_crash(self, job_id: str, queue: str = "") -> int:
        return int(self.client.script("count_crash", [self.keys.tallies(job_id)], []))

    def forget_tallies(self, job_id: str, queue: str = "") -> None:
        self.client.command("DEL", self.keys.tallies(job_id))

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        args = [self.clock, self._retry_after, tag, since, *(lease.receipt for lease in known if lease.tag == tag)]
        return [lease for queue in queues for lease in self._reclaim(queue, tag, args)]

    def _reclaim(self, queue: str, tag: int, args: Sequence[Any]) -> list[Lease]:
        names = [self.keys.ready(queue), self.keys.reserved(queue), self.keys.notify(queue)]
        try:
            return [Lease(queue, receipt, tag) for receipt in self.client.script("reclaim", names, args)]
        except StoreDown:
            raise
        except StoreError:
            return []  # a key of the wrong type: reserve reports it, and the other queues continue

    def renew(self, leases: Sequence[Lease]) -> list[bool]:
        queues = sorted({lease.queue for lease in leases})
        proofs = [word for lease in leases for word in (queues.index(lease.queue) + 1, lease.tag, lease.receipt)]
        names, args = [self.keys.tags, *map(self.keys.reserved, queues)], [self.clock, self._retry_after, *proofs]
        call = self.limits.renewing(leases, "renew", names, args)
        return [answer == 1 for answer in self.client.script(*call)]

    def stage(self, queues: Sequence[str]) -> Staged:
        keys = self.keys
        names = [key(queue) for queue in queues for key in (keys.ready, keys.delayed, keys.reserved, keys.notify)]
        moved, due, now = self.client.script("stage", names, [self.clock, BATCH])
        return Staged(int(moved), float(due) if due else None, float(now))

    def finish(self, lease: Lease, ending: Ending) -> bool:
        if ending.member:
            return self._end_member("finish_member", lease, ending, [self.keys.reserved(lease.queue)])
        names, args = following(ending, self.locks_of.here(ending.unlocks), self.keys)
        names, args = [self.keys.reserved(lease.queue), *names], [lease.receipt, lease.tag, *args]
        return self.locks_of.ended(self._recording.end([lease], PayloadPlaces(1), "finish", names, args))

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        keys = self.keys
        kept, identity, text = self._kept(record)
        if ending.member:
            names = [keys.reserved(lease.queue), *kept, keys.tallies(job_id)]
            return self._end_member("fail_member", lease, ending, names, identity, text)
        args = [self.clock, lease.receipt, identity, text, lease.tag]
        more, words = following(ending, self.locks_of.here(ending.unlocks), keys)
        names = [keys.reserved(lease.queue), *kept, keys.tallies(job_id), *more]
        return self.locks_of.ended(self._recording.end([lease], PayloadPlaces(2), "fail", names, [*args, *words]))

    def cancel(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        keys, queue = self.keys, lease.queue
        kept, identity, text = self._kept(record)
        if ending.member:
            names = [keys.ready(queue), *kept, keys.tallies(job_id), keys.delayed(queue), keys.notify(queue)]
            is_out = self._end_member("cancel_member", lease, ending, names, identity, text)
            self.locks_of.release_elsewhere(ending.unlocks if is_out else ())
            return is_out
        more, words = following(ending, self.locks_of.own_among(ending.unlocks), keys)
        names = [keys.ready(queue), keys.delayed(queue), keys.notify(queue), *kept, keys.tallies(job_id), *more]
        args = [self.clock, lease.receipt, identity, text, *words]
        is_out = bool(self.client.script("cancel", names, args))
        self.locks_of.release_elsewhere(ending.unlocks if is_out else ())
        return is_out

    def quarantine(self, lease: Lease, reason: str) -> bool:
        names = [self.keys.reserved(lease.queue), self.keys.quarantine(lease.queue)]
        args = [self.clock, lease.receipt, reason, lease.tag]
        return bool(self._recording.end([lease], PayloadPlaces(2), "quarantine", names, args) == 1)

    def _end_member(self, script: str, lease: Lease, ending: Ending, names: Sequence[str], *record: str) -> bool:
        """End the job of a member of a flow by this script; ``names``: its keys, but for those of the flow."""
        assert ending.member
        locks = self.locks_of.here if lease.tag else self.locks_of.own_among
        follows, more = following(ending, locks(ending.unlocks), self.keys)
        of_flow, words = self.flows.words(lease, ending.member, uncounted(lease.receipt))
        args = [lease.receipt, lease.tag, *words, *record, *more]
        answer = self._recording.end(
            [lease], PayloadPlaces(1), script, [names[0], *of_flow, *names[1:], *follows], args
        )
        return self.locks_of.ended(self.flows.settled(ending.member, answer))

    def _kept(self, record: Mapping[str, Any]) -> tuple[list[str], str, str]:
        """Where the record of a failed job is kept, under which id, and as which text; empty = it is not kept."""
        keys, text = self.keys, json.dumps(record) if self._keep else ""
        if self._outbox:
            return [keys.pending, keys.pending_times], secrets.token_hex(8), text
        return [keys.failed, keys.failed_times], record["id"], text

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        names, args = [], []
        for lease, state in zip(leases, states, strict=True):
            names += [self.keys.reserved(lease.queue), self.keys.state(state.job_id)]
            args += [lease.receipt, lease.tag, state.text, whole(state.seconds)]
        self.client.script("show", names, args)

    def tallies(self, job_id: str, queue: str = "") -> Tallies:
        words = self.client.command("HMGET", self.keys.tallies(job_id), "exceptions", "crashes", "suspects")
        return Tallies(*(int(word) if word and word.isdigit() and len(word) < 10 else 0 for word in words))

    def ask_for_room(self) -> None:
        # A full server (``maxmemory``, ``noeviction``) refuses this write; any other has nothing to do.
        self.client.command("SET", self.keys.room, "", "XX")  # XX: only if the key exists, which it never does

    def now(self) -> float:
        if self.clock:
            return float(self.clock)
        if time.monotonic() >= self._offset_ends:
            seconds, micros = self.client.command("TIME")
            mono = time.monotonic()  # after the reply, so that the clock may lag by its travel time, but is never ahead
            self._offset = int(seconds) + int(micros) / 1e6 - mono
            self._offset_ends = mono + _CLOCK_LASTS
        return time.monotonic() + self._offset

    def _blpop(self, queues: Sequence[str], timeout: float) -> tuple[str, ...]:
        return "BLPOP", *map(self.keys.notify, queues), f"{max(timeout, 0.001):.3f}"

    def _reserve_words(
        self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease]
    ) -> tuple[list[str], list[Any]]:
        args: list[Any] = [self.clock, self._retry_after, tag, limit, MAX_BYTES]
        for (queue, owner), leases in groupby(done, key=itemgetter(0, 2)):
            receipts = [lease.receipt for lease in leases]
            args += queues.index(queue) + 1, owner, len(receipts), *receipts
        return self._keys_of(tuple(queues)), args

    def _keys_of(self, queues: tuple[str, ...]) -> list[str]:
        if queues not in self._reserve_keys:
            keys = self.keys
            makers = (keys.ready, keys.delayed, keys.reserved, keys.notify, keys.quarantine)
            self._reserve_keys[queues] = [keys.tags, *(key(queue) for queue in queues for key in makers)]
        return self._reserve_keys[queues]


class ReserveBehindWait:
    """A reserve that waits at the server: sent behind a BLPOP in one write, and carried out once that is served.

    Where jobs are done, there is another reserve before, which takes none. The contract is
    ``stores.contract.WaitingReserve``. A server that closes a client's connection before serving it does not carry out
    the commands behind.
    """

    def __init__(
        self,
        client: RedisClient,
        replies: PendingReplies,
        queues: Sequence[str],
        tag: int,
        done: Sequence[Lease],
        keys: Sequence[str],
        args: Sequence[Any],
        leave_out: Callable[[StoreDenied], object] | None = None,
    ) -> None:
        """``leave_out``: told if the records of the done jobs, which were sent with them, are denied."""
        self.was_cut_off = False
        self._client = client
        self._replies = replies
        self._queues = queues
        self._tag = tag
        self._done = done
        self._keys = keys
        self._args = args
        self._leave_out = leave_out

    def deleted(self) -> Reservation:
        try:
            answer = self._client.reply(self._replies, "reserve", *self._keys)
        except StoreDenied as denied:
            if self._leave_out:
                self._leave_out(denied)
            raise
        self._replies.look()
        return _reservation(answer, "reserve", self._queues, self._tag, self._done)

    def wait(self) -> None:
        self._client.await_replies(self._replies)

    def read(self) -> Reservation | None:
        if not self._replies.come_within(0.0):
            self.give_up()
            return None
        refusal = self._refusal()
        answer = self._client.script_reply(self._replies, "reserve", self._keys, self._args)
        found = _reservation(answer, "reserve", self._queues, self._tag, ())
        if refusal and not found.leases:
            raise refusal
        return found

    def give_up(self) -> None:
        self._client.give_up(self._replies)

    def _refusal(self) -> StoreError | None:
        """Why the server did not wait; the commands behind were carried out all the same."""
        try:
            self._client.reply(self._replies, "blpop")
        except StoreError as error:
            if self._replies.are_over:
                self.was_cut_off = isinstance(error, StoreDown) and not self._replies.are_left
                raise
            return error
        return None


def _reservation(
    answer: Sequence[Any], script: str, queues: Sequence[str], tag: int, done: Sequence[Lease]
) -> Reservation:
    """The reply of reserve.lua, as this script; ``done`` are the leases that were sent along, in that order."""
    refused, taken, odd, problems, due, is_last = answer[:_PLAIN]
    return Reservation(
        leases=[Lease(queues[number - 1], receipt, tag) for number, receipt in _pairs(taken)],
        refused=[done[int(number) - 1] for number in refused],
        quarantined=[(queues[number - 1], why.decode()) for number, why in _pairs(odd)],
        problems=[(queues[number - 1], explained(text.decode(), script)) for number, text in _pairs(problems)],
        next_due=float(due) if due else None,
        is_last=bool(is_last),
        flows=flows_in(answer[_PLAIN]) if len(answer) > _PLAIN else (),
    )


def _pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)
