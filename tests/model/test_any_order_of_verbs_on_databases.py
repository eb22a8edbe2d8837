"""Any order of verbs and of Laravel's moves, on real databases, compared after each step with a list of rows.

The model is ``model/rows.py``. After each step the three tables must hold what it says: every row of ``jobs`` in its
order with its count, its times and the mark of who has it, failed jobs and what was set aside, the tallies. Laravel's
moves are its driver's statements; and there are rows that nobody should have made. The clock is the test's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, precondition, rule, run_state_machine_as_test

from queuepool.payload.lease import NOTHING, Ending, Lease, Outcome
from tests.model.rows import Holder, Row
from tests.model.tables import QUEUES, Tables
from tests.support.drivers import connection_of, opened
from tests.support.effort import effort, patient
from tests.support.idle_transactions import let_transactions_be_idle
from tests.support.odd_tables import NULLABLE
from tests.support.samples import TALLIES, new_jobs, payload

#: rows: else there would seldom be any
CROWD = 12
#: the attempts that a mark tells apart
MARKED = 4
OUTCOME = payload("outcome")

jobs = st.sampled_from([*map(payload, "abc"), b"not json", b"", "💥 é %s :x \\".encode()])
queues = st.sampled_from(QUEUES)
orders = st.sampled_from([QUEUES, QUEUES[::-1], QUEUES[:1], QUEUES[1:]])
tags = st.sampled_from([1, 2, 2**28 - 1])
delays = st.sampled_from([0.0, 0.25, 5.0])
moments = st.sampled_from([0.0, 0.0, 0.5, 5.0, 90.0])
tallies = st.sampled_from(["", *TALLIES])
names = st.sampled_from(["job", "other"])
#: which leases: see ``_leases``
one = st.integers(0, 31)
some = st.lists(one, min_size=1, max_size=3)
few = st.lists(one, max_size=2)

LARAVELS_NEXT = """SELECT id FROM jobs WHERE queue = :queue AND ((reserved_at IS NULL AND available_at <= :now)
OR reserved_at <= :now - 90) ORDER BY id LIMIT 1"""


class Verbs(Tables):
    theirs = Bundle("theirs")

    @initialize(batch=st.lists(jobs, min_size=3, max_size=3), tag=tags)
    def work_is_under_way(self, batch: list[bytes], tag: int) -> None:
        for queue in QUEUES:
            self.push(queue, batch, 0.0)
        self.the_table_holds_what_the_model_says()
        self.reserve(0.0, QUEUES, tag, 4, [])

    # Ours

    @rule(queue=queues, batch=st.lists(jobs, min_size=1, max_size=3), delay=delays)
    def push(self, queue: str, batch: list[bytes], delay: float) -> None:
        self.store.push(queue, new_jobs(*batch), delay)
        self.model.push(queue, batch, delay)

    @rule(seconds=moments, order=orders, tag=tags, limit=st.integers(0, 3), ended=few)
    def reserve(self, seconds: float, order: tuple[str, ...], tag: int, limit: int, ended: list[int]) -> None:
        self.time_passes(seconds)
        self.heard += self._reserve(order, tag, limit, self._leases(ended))

    @rule(order=orders, tag=tags, limit=st.integers(1, 2))
    def reserve_without_hearing_of_it(self, order: tuple[str, ...], tag: int, limit: int) -> None:
        self._reserve(order, tag, limit, [])

    @rule(which=some)
    def delete(self, which: list[int]) -> None:
        ended = self._leases(which)
        expected = [self._ends(lease, self.model.jobs.remove) for lease in ended]

        assert expected == self.store.delete(ended)
        assert not any(self.store.delete(ended))

    @rule(which=one, queue=queues)
    def finish(self, which: int, queue: str) -> None:
        def end(row: Row) -> None:
            self.model.jobs.remove(row)
            self.model.push(queue, [OUTCOME], 0.0)

        [lease] = self._leases([which])
        self._is_settled_once(lease, lambda: self.store.finish(lease, Ending(Outcome(queue, OUTCOME))), end)

    @rule(which=one, delay=delays, job_id=names, tally=tallies)
    def release(self, which: int, delay: float, job_id: str, tally: str) -> None:
        [lease] = self._leases([which])
        self._is_settled_once(
            lease,
            lambda: self.store.release(lease, delay, job_id, tally),
            lambda row: self.model.release(row, delay, job_id, tally),
        )

    @rule(which=one, job_id=names, follows=st.booleans())
    def fail(self, which: int, job_id: str, follows: bool) -> None:
        def end(row: Row) -> None:
            self.model.fail(row, job_id)
            self.model.push(row.queue, [OUTCOME] if follows else [], 0.0)

        [lease] = self._leases([which])
        facts = {"id": job_id, "name": "x", "queue": lease.queue, "connection": "default", "attempts": 1}
        record = {**facts, "exception": "x", "payload": lease.receipt.decode()}
        ending = Ending(Outcome(lease.queue, OUTCOME)) if follows else NOTHING
        self._is_settled_once(lease, lambda: self.store.fail(lease, job_id, record, ending), end)

    @rule(which=one)
    def quarantine(self, which: int) -> None:
        [lease] = self._leases([which])
        self._is_settled_once(
            lease, lambda: self.store.quarantine(lease, "odd"), lambda row: self.model.quarantine(row, "odd")
        )

    @rule(which=some)
    def give_back(self, which: list[int]) -> None:
        given = self._leases(which)
        free = [self._ends(lease, self._free) for lease in given]

        assert free == self.store.give_back(given)
        assert not any(self.store.give_back(given))

    @rule(order=orders, tag=tags, which=few)
    def reclaim(self, order: tuple[str, ...], tag: int, which: list[int]) -> None:
        known = self._leases(which)
        expected = self.model.reclaim(order, tag, [(_number(lease), _holder(lease)) for lease in known])

        assert expected == len(self.store.reclaim(order, tag, 0.0, known))
        assert [] == self.store.reclaim(order, tag, 0.0, known)

    @rule(which=some)
    def renew(self, which: list[int]) -> None:
        def begin_anew(row: Row) -> None:
            row.reserved_at = -int(-self.model.now // 1)

        held = self._leases(which)
        expected = [self._ends(lease, begin_anew) for lease in held]

        assert expected == self.store.renew(held)

    @precondition(lambda self: len(self.model.jobs) > CROWD)
    @rule(queue=queues)
    def clear(self, queue: str) -> None:
        assert self.model.clear(queue) == self.store.clear(queue)

    # Their records

    @rule(name=names, queue=queues | st.none())
    def retry(self, name: str, queue: str | None) -> None:
        found = self.stores.failed.get(name)
        kept = next((one for one in self.model.kept if one.identity == name), None)

        assert (found is not None) == (kept is not None)
        if found and kept:
            assert self.stores.failed.retry(found, queue)
            assert not self.stores.failed.retry(found, queue)
            self.model.requeue(kept, queue or kept.queue)

    @rule(queue=queues)
    def put_back_the_first_that_was_set_aside(self, queue: str) -> None:
        entries = list(self.stores.records.quarantined(queue))
        aside = [one for one in self.model.kept if one.reason and one.queue == queue]

        found = [(one.reason, one.payload, int(one.at)) for one in entries]
        assert [(one.reason, one.payload, one.at) for one in aside] == found
        if entries:
            assert self.stores.records.requeue(queue, entries[0].id)
            assert not self.stores.records.requeue(queue, entries[0].id)
            self.model.requeue(aside[0], queue)

    # Laravel's: what its driver says to the database

    @rule(queue=queues, job=jobs)
    def laravel_pushes(self, queue: str, job: bytes) -> None:
        self.insert(Row(queue, job, self.model.second, self.model.second))

    @rule(target=theirs, queue=queues)
    def laravel_pops(self, queue: str) -> Any:
        [expected] = [row for row in self.model.of(queue) if self.model.is_takable(row)][:1] or [None]
        # At the column's end its own statement fails; and a mark tells no more than four attempts apart.
        if expected and (expected.attempts >= self.most or self._would_come_round(expected)):
            return multiple()
        number = self.say(LARAVELS_NEXT, queue=queue, now=self.model.second).scalar()

        assert (expected.id if expected else None) == number
        if not expected:
            return multiple()
        change = "UPDATE jobs SET reserved_at = :now, attempts = attempts + 1 WHERE id = :id"
        self.say(change, now=self.model.second, id=number)
        expected.reserved_at, expected.attempts = self.model.second, expected.attempts + 1
        return number, expected.queue, expected.payload, expected.attempts

    @rule(job=theirs)
    def laravel_deletes(self, job: tuple[int, str, bytes, int]) -> None:
        self.drop(job[0])

    @rule(job=theirs, delay=st.sampled_from([0, 5]))
    def laravel_releases(self, job: tuple[int, str, bytes, int], delay: int) -> None:
        number, queue, raw, attempts = job
        self.drop(number)
        self.insert(Row(queue, raw, self.model.second + delay, self.model.second, attempts))

    # Nobody's

    @rule(queue=queues)
    def somebody_frees_all_by_hand(self, queue: str) -> None:
        self.say("UPDATE jobs SET reserved_at = NULL WHERE queue = :queue", queue=queue)
        for row in self.model.of(queue):
            row.reserved_at = None

    @rule(queue=queues, job=jobs | st.none(), before=st.integers(0, 2))
    def a_row_is_at_the_columns_end(self, queue: str, job: bytes | None, before: int) -> None:
        self._appears(queue, job, self.most - before)

    @rule(queue=queues, job=jobs | st.none())
    def a_row_has_been_begun_less_than_never(self, queue: str, job: bytes | None) -> None:
        self._appears(queue, job, self.least)

    @rule(queue=queues, job=jobs | st.none(), later=st.sampled_from([0, 1, 4, 5, 6, 1000]), attempts=st.integers(0, 2))
    def a_row_was_reserved_in_the_future(self, queue: str, job: bytes | None, later: int, attempts: int) -> None:
        self._appears(queue, job, attempts, later)

    def _appears(self, queue: str, job: bytes | None, attempts: int, later: int | None = None) -> None:
        moment = self.model.second + (later or 0)
        self.insert(Row(queue, job, moment, moment, attempts, None if later is None else moment))

    def _leases(self, numbers: list[int]) -> list[Lease]:
        """Of those that were heard of: three times in four one that lasts, if any does."""
        lasting = [lease for lease in self.heard if self._ends(lease, bool)]
        chosen = [(lasting if lasting and number % 4 else self.heard, number // 4) for number in numbers]
        return list(dict.fromkeys(among[number % len(among)] for among, number in chosen))

    def _reserve(self, order: tuple[str, ...], tag: int, limit: int, done: list[Lease]) -> list[Lease]:
        refused = [lease for lease in done if not self._ends(lease, self.model.jobs.remove)]
        expected = self.model.reserve(order, tag, limit)

        found = self.store.reserve(order, tag, limit, done)

        assert expected.leases == [(lease.queue, lease.receipt, lease.row.id, _holder(lease)) for lease in found.leases]
        assert (expected.odd, refused, []) == (found.quarantined, found.refused, found.problems)
        # It may be up to a second early where a reservation in the future was ended in time.
        assert (None if expected.next_due is None else pytest.approx(expected.next_due, abs=1.0)) == found.next_due
        return found.leases

    def _ends(self, lease: Lease, end: Callable[[Row], object]) -> bool:
        row = self.model.held(_number(lease), _holder(lease))
        if row:
            end(row)
        return row is not None

    def _free(self, row: Row) -> None:
        row.free(self.model.second)

    def _is_settled_once(self, lease: Lease, verb: Callable[[], bool], end: Callable[[Row], object]) -> None:
        """The second time is what a repetition after a lost answer is."""
        assert self._ends(lease, end) == verb()
        assert not verb()

    def _would_come_round(self, row: Row) -> bool:
        return row.holder is not None and row.attempts + 1 - row.holder.attempts >= MARKED


def _number(lease: Lease) -> int:
    assert lease.row
    return lease.row.id


def _holder(lease: Lease) -> Holder:
    assert lease.row
    return Holder(lease.tag, lease.row.attempts)


@patient
@pytest.mark.parametrize(
    ("brand", "examples"),
    [
        ("sqlite", 20),
        *(
            pytest.param(*more, marks=pytest.mark.thorough("more orders; every run proves the contract on each store"))
            for more in [("sqlite", 150), ("postgres", 15), ("mariadb", 15)]
        ),
    ],
)
def test_after_any_verbs_the_tables_hold_what_the_model_says(brand, examples, request):
    with opened(connection_of(brand, request)) as stores:
        for line in NULLABLE[stores.client.engine.dialect.name]:
            stores.client.ask(lambda connection, line=line: connection.exec_driver_sql(line))
        # Or a machine that stands still for two seconds ends one, and the same example does not fail again.
        let_transactions_be_idle(stores)
        machine = type("Verbs", (Verbs,), {"stores": stores, "brand": brand})

        run_state_machine_as_test(machine, settings=effort(examples, steps=30))
