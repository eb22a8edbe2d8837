"""Any order of verbs on a real server with the real scripts, compared after each step with plain lists.

The model is ``model/shelves.py``. After each step all that the server holds must be what the model says: ready,
delayed and reserved jobs byte for byte in their order with their scores, the quarantine, the failed store, tallies and
wake-up tokens. The clock is the test's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import redis
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from queuepool.payload.lease import NOTHING, Ending, Lease, Outcome, Tallies
from queuepool.stores.factory import Stores
from tests.model.jobs import Job
from tests.model.shelves import Shelves
from tests.support.effort import effort, patient
from tests.support.payload_strategies import anywhere, laravels, parts
from tests.support.redis_server import PREFIX
from tests.support.samples import TALLIES, new_jobs, payload

QUEUES = ("high", "default")
NOW = 1_000_000.0


def _receipt_of(lease: Lease) -> tuple[str, bytes]:
    return lease.queue, lease.receipt


ODD = [
    Job(raw, odd=why)
    for raw, why in {
        b"": "json",
        b"not json": "json",
        b"\xff\xfe": "json",
        b'{"id":"a","attempts":0': "json",
        rb'{"attempts":0,"data":"\ud800"}': "json",
        b"[1,2]": "not-an-object",
        b'"a job"': "not-an-object",
        b" [null] ": "not-an-object",
        b'{"id":"a","job":"x","attempts":1.5}': "attempts",
        b'{"attempts":0,"attempts":0,"id":"a"}': "attempts",
        b'{"id":"a","attempts":1E+0,"job":"x"}': "attempts",
        b'{"id":"a","attempts":65536,"job":"x"}': "attempts",
    }.items()
]
UNUSUAL = [
    Job(b"{}"),
    Job(b' { "id":"a"}'),
    Job(b'{"id":"a","data":{"attempts":7}}'),
    Job(b'{"id":"a","attempts":', b"null", b"}"),
    Job(b'{"attempts":', b'"3"', b',"id":"a"}'),
    Job(b'{"id":"a","attempts":', b"-5", b' ,"data":[]}'),
    Job(rb'{"id":"a","data":"\ud83d\ude00 \ud800","attempts":', b"0", b"}"),
    Job(b'{"id":"a","data":"\xff\xc0\x80","attempts":', b"0", b',"delay":60}'),
]


def job(sample: tuple[str, int]) -> Job:
    head, tail = parts(sample[0])
    return Job(head.encode(), b"%d" % (sample[1] % 1_000), tail.encode())


jobs = (
    st.sampled_from([Job(payload(name)[:-2], b"0", b"}") for name in "abc"])
    | (anywhere() | laravels()).map(job)
    | st.sampled_from(UNUSUAL)
    | st.sampled_from(ODD)
)
outcomes = st.sampled_from([Job(payload(name)[:-2], b"0", b"}") for name in "xy"])
queues = st.sampled_from(QUEUES)
orders = st.sampled_from([QUEUES, QUEUES[::-1], QUEUES[:1], QUEUES[1:]])
tags = st.sampled_from([1, 2, 131_071])
delays = st.sampled_from([0.0, 0.25, 5.0])
tallies = st.sampled_from(["", *TALLIES])


class Verbs(RuleBasedStateMachine):
    stores: Stores
    server: redis.Redis
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.server.flushall()
        self.store = self.stores.queue
        self.model = Shelves(QUEUES, NOW)
        self.store.clock = repr(NOW)

    @rule(seconds=st.sampled_from([0.01, 0.3, 5.0, 89.0, 90.0, 91.0]))
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds
        self.store.clock = repr(self.model.now)

    @rule(queue=queues, first=jobs, others=st.lists(jobs, max_size=2), twice=st.booleans(), delay=delays)
    def push(self, queue: str, first: Job, others: list[Job], twice: bool, delay: float) -> None:
        batch = [first, *others, *([first] if twice else [])]
        self.store.push(queue, new_jobs(*(one.raw for one in batch)), delay)
        self.model.push(queue, batch, delay)

    @rule(target=leases, order=orders, tag=tags, limit=st.integers(1, 3))
    def reserve(self, order: tuple[str, ...], tag: int, limit: int) -> Any:
        found, expected = self.store.reserve(order, tag, limit), self.model.reserve(order, tag, limit)

        assert expected.leases == [(lease.queue, lease.receipt) for lease in found.leases]
        assert (expected.odd, [], []) == (found.quarantined, found.problems, found.refused)
        assert self._is_due(expected.next_due, found.next_due)
        return multiple(*found.leases)

    @rule(order=orders, tag=tags)
    def reserve_without_hearing_of_it(self, order: tuple[str, ...], tag: int) -> None:
        self.reserve(order, tag, 1)

    @rule(order=orders)
    def stage(self, order: tuple[str, ...]) -> None:
        found, (moved, first) = self.store.stage(order), self.model.stage(order)

        assert (moved, self.model.now) == (found.moved, pytest.approx(found.now))
        assert self._is_due(first, found.next_due)

    @rule(lease=leases)
    def delete(self, lease: Lease) -> None:
        self._is_settled_once(lambda: self.store.delete([lease])[0], lambda: self.model.end(*_of(lease)) is not None)

    @rule(some=st.lists(leases, max_size=3, unique_by=_receipt_of), tag=tags, limit=st.integers(0, 2))
    def reserve_with_what_is_done(self, some: list[Lease], tag: int, limit: int) -> None:
        """What was given back is no more settled under the very tag that reserved it: that is retired then."""
        done = [lease for lease in some if lease.tag != tag or not self._is_anothers(lease)]
        ours = [self.model.end(*_of(lease)) is not None for lease in done]
        expected = self.model.reserve(QUEUES, tag, limit)

        found = self.store.reserve(QUEUES, tag, limit, done)

        assert [lease for lease, is_ours in zip(done, ours, strict=True) if not is_ours] == found.refused
        assert expected.leases == [(lease.queue, lease.receipt) for lease in found.leases]

    @rule(lease=leases, queue=queues, outcome=outcomes)
    def finish(self, lease: Lease, queue: str, outcome: Job) -> None:
        self._is_settled_once(
            lambda: self.store.finish(lease, Ending(Outcome(queue, outcome.raw))),
            lambda: self.model.finish(*_of(lease), (queue, outcome)),
        )

    @rule(lease=leases, delay=delays, tally=tallies)
    def release(self, lease: Lease, delay: float, tally: str) -> None:
        self._is_settled_once(
            lambda: self.store.release(lease, delay, "job", tally),
            lambda: self.model.release(*_of(lease), delay, "job", tally),
        )

    @rule(lease=leases, number=st.integers(0, 1), outcome=outcomes | st.none())
    def fail(self, lease: Lease, number: int, outcome: Job | None) -> None:
        name = f"job-{number}"
        facts = {"id": name, "name": "x", "queue": lease.queue, "connection": "default", "attempts": 1}
        record = {**facts, "exception": "", "payload": lease.receipt.decode("utf-8", "surrogateescape")}
        ending = Ending(Outcome(lease.queue, outcome.raw)) if outcome else NOTHING

        def fails() -> bool:
            failed = self.model.fail(*_of(lease), name)
            self.model.push(lease.queue, [outcome] if outcome and failed else [], 0.0)
            return failed

        self._is_settled_once(lambda: self.store.fail(lease, name, record, ending), fails)

    @rule(lease=leases)
    def quarantine(self, lease: Lease) -> None:
        self._is_settled_once(
            lambda: self.store.quarantine(lease, "odd"), lambda: self.model.quarantine(*_of(lease), "odd")
        )

    @rule(held=st.lists(leases, min_size=1, max_size=3, unique_by=_receipt_of), queue=queues)
    def give_back(self, held: list[Lease], queue: str) -> None:
        ours = [lease for lease in held if lease.queue == queue]
        expected = self.model.give_back(queue, [(lease.receipt, lease.tag) for lease in ours])

        assert expected == self.store.give_back(ours)

    @rule(order=orders, tag=tags, since=st.sampled_from([0.0, 6.0, 100.0]), known=st.lists(leases, max_size=2))
    def reclaim(self, order: tuple[str, ...], tag: int, since: float, known: list[Lease]) -> None:
        receipts = [lease.receipt for lease in known]
        expected = sum(self.model.reclaim(queue, tag, since, receipts) for queue in order)

        assert expected == len(self.store.reclaim(order, tag, since, known))

    @rule(held=st.lists(leases, min_size=1, max_size=3, unique_by=_receipt_of))
    def renew(self, held: list[Lease]) -> None:
        expected = [self.model.renew(*_of(lease)) for lease in held]

        assert expected == self.store.renew(held)

    @rule(name=st.integers(0, 1).map("job-{}".format), queue=queues)
    def retry(self, name: str, queue: str) -> None:
        found = self.stores.failed.get(name)
        at, job = self.model.failed.pop(name, (0.0, Job(b"")))

        assert (found is not None) == bool(job.raw)
        if found and self._can_be_written(job):
            assert self.stores.failed.retry(found, queue)
            self.model.push(queue, [job.counting(0)], 0.0)
        elif found:
            self.model.failed[name] = at, job

    @rule(queue=queues, target_queue=queues)
    def put_back_the_first_that_was_set_aside(self, queue: str, target_queue: str) -> None:
        entry, shelf = next(self.stores.records.quarantined(queue), None), self.model.of[queue]
        if entry:
            assert self.stores.records.requeue(queue, entry.id)
            shelf.ready.append(shelf.aside.pop(0)[2])

    @rule(queue=queues, taken=st.integers(1, 2), left=st.integers(0, 3))
    def laravel_miscounts_the_tokens_until_the_next_stage(self, queue: str, taken: int, left: int) -> None:
        self.server.ltrim(_key(queue, "notify"), taken, -1)
        self.server.rpush(_key(queue, "notify"), *[1] * left) if left else None
        self.stage((queue,))

    @invariant()
    def the_server_holds_what_the_model_says(self) -> None:
        for queue, shelf in self.model.of.items():
            ready, tokens, delayed, reserved, aside = self._held(queue)
            assert [one.raw for one in shelf.ready] == ready
            assert len(ready) == tokens
            assert shelf.delayed.ordered() == delayed
            assert shelf.reserved.ordered() == reserved
            assert [f"{at} {why} ".encode() + one.raw for at, why, one in shelf.aside] == aside

    @invariant()
    def the_records_are_those_of_the_model(self) -> None:
        failed = {row.id: (row.failed_at, row.payload) for row in self.stores.failed.page()}
        counts = self.store.tallies("job")

        assert {name: (at, _text(one)) for name, (at, one) in self.model.failed.items()} == failed
        assert Tallies(*(self.model.tallies["job", tally] for tally in TALLIES)) == counts

    def _is_anothers(self, lease: Lease) -> bool:
        row = self.model.of[lease.queue].reserved.get(lease.receipt)
        return row is not None and row.tag != lease.tag

    def _held(self, queue: str) -> list[Any]:
        pipe = self.server.pipeline(transaction=False)
        pipe.lrange(_key(queue), 0, -1).llen(_key(queue, "notify"))
        pipe.zrange(_key(queue, "delayed"), 0, -1, withscores=True)
        pipe.zrange(_key(queue, "reserved"), 0, -1, withscores=True)
        return pipe.lrange(f"{PREFIX}queuepool:quarantine:{queue}", 0, -1).execute()

    def _is_settled_once(self, verb: Callable[[], bool], expected: Callable[[], bool]) -> None:
        """The second time is what a repetition after a lost answer is."""
        assert expected() == verb()
        assert not verb()

    def _is_due(self, expected: float, found: float | None) -> bool:
        if found is None or math.inf == expected:
            return found is None and math.inf == expected
        return pytest.approx(max(expected - self.model.now, 0.0), abs=2e-6) == found

    def _can_be_written(self, job: Job) -> bool:
        """A record holds text: what was no UTF-8 is not what it was, and no worker fails it, but sets it aside."""
        return "\ufffd" not in job.raw.decode("utf-8", "replace")


def _of(lease: Lease) -> tuple[str, bytes, int]:
    return lease.queue, lease.receipt, lease.tag


def _key(queue: str, part: str = "") -> str:
    return f"{PREFIX}queues:{queue}" + (f":{part}" if part else "")


def _text(job: Job) -> str:
    return json.loads(json.dumps(job.raw.decode("utf-8", "surrogateescape")))


@patient
@pytest.mark.parametrize("examples", [30, pytest.param(80, marks=pytest.mark.thorough("more orders"))])
def test_after_any_verbs_the_server_holds_what_the_model_says(examples, server, stores):
    machine = type("Verbs", (Verbs,), {"server": server, "stores": stores})

    run_state_machine_as_test(machine, settings=effort(examples, steps=30))
