"""Redis alone stages: due jobs are moved before they can be reserved, and stewards are notified."""

from __future__ import annotations

import json
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease, Tallies
from queuepool.stores.contract import Wake
from queuepool.stores.factory import Stores
from queuepool.stores.records import PendingFailure
from queuepool.stores.redis.walk import Scored, following
from queuepool.stores.values import MAX_MARK, Due, Mark
from tests.support.drivers import connection_of
from tests.support.samples import attempted, ids, new_jobs, payload, record
from tests.support.store_contract import OURS, QUEUES, RETRY_AFTER, drained, each_settlement, reserved, state

pytestmark = pytest.mark.usefixtures("at")


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of("redis", request)


def test_a_delay_ends_within_a_second(store, at):
    store.push("default", new_jobs(payload("a")), delay=2.5)

    at.advance(2.25)
    assert [] == drained(store)
    at.advance(0.25)
    assert [attempted(payload("a"))] == drained(store)


@pytest.mark.parametrize("is_down", [False, True])
def test_members_of_one_score_are_read_once_although_the_last_one_that_was_read_is_gone(built, is_down):
    client, key, read = built.client, built.queue.keys.delayed("default"), list[int]()
    every, before = [b"%04d" % number for number in range(2000)], 61 if is_down else 59
    client.command("ZADD", key, *(word for member in every for word in (60, member)))

    def ask(verb: str, *rest: Any) -> Any:
        answer = client.command(verb, key, *rest)
        read.append(len(answer) // 2 if isinstance(answer, list) else 0)
        return answer

    found, last = list[Scored](), None
    while page := following(ask, last, 100, is_down=is_down):
        found, last = [*found, *page], page[-1]
        client.command("ZREM", key, last.member)
        client.command("ZADD", key, *(word for number in range(5) for word in (before, f"{len(read)} {number}")))

    assert (every[::-1] if is_down else every) == [one.member for one in found]
    assert sum(read) < 2 * len(every)


def test_a_second_walk_through_delayed_jobs_ends_where_the_first_one_was_left(store):
    for number in range(5):
        store.push("default", new_jobs(payload(str(number))), delay=60.0 + number)
    walk = store.walk("default", ("delayed",))
    assert 2 == len(walk.page(2))

    for one in (walk, store.walk("default", ("delayed",), walk.cursor())):
        assert ["0", "1"] == [decode(job.payload, 0).id for job in one.again().page(9)]


@pytest.mark.bad_input("B181")
def test_the_place_of_a_cursor_is_looked_for_near_by_and_not_beyond_the_end(built):
    client, key, store = built.client, built.queue.keys.ready("default"), built.queue
    payloads = [payload(str(number)) for number in range(10)]
    store.push("default", new_jobs(*payloads))

    def asked() -> int:
        return int(client.command("INFO", "stats")["total_commands_processed"])

    before = asked()
    assert payloads == [
        job.payload for job in store.walk("default", ("ready",), '["ready",30000000,99,["x"]]').page(99)
    ]
    assert asked() - before < 20
    client.command("RPUSH", key, *[b"1"] * 150_000)
    client.command("RPUSH", key, *[b"2"] * 150_000)
    with pytest.raises(ValueError, match="moved on too far"):
        store.walk("default", ("ready",), '["ready",300000,99,["x"]]')


@pytest.mark.fault("F56")
def test_a_reserve_stages_a_hundred_jobs_at_most_so_that_it_is_quick(store, at):
    store.push("default", new_jobs(*(payload(str(number)) for number in range(150))), delay=1.0)
    at.advance(1.0)

    store.reserve(["default"], OURS, 1)

    assert (99, 50) == (store.sizes("default").ready, store.sizes("default").delayed)


@pytest.mark.fault("F61")
def test_a_reserve_sets_aside_sixteen_payloads_at_most_so_that_it_is_quick(store):
    store.push("default", new_jobs(*[b"not json"] * 20))

    assert 16 == len(store.reserve(["default"], OURS, 1).quarantined)
    assert (4, 16) == (store.sizes("default").ready, store.sizes("default").quarantined)


@pytest.mark.fault("F62")
@each_settlement
def test_a_late_settlement_is_refused_when_the_job_was_staged_again(built, at, settle):
    late = reserved(built.queue, payload("a"))[0]
    at.advance(RETRY_AFTER + 1)
    built.queue.stage(["default"])
    before = state(built)

    assert not settle(built.queue, late)
    assert before == state(built)


def test_jobs_given_back_keep_the_attempts_that_they_came_with(store):
    store.give_back(reserved(store, payload("a", attempts=4)))

    assert payload("a", attempts=4) == store.sizes("default").oldest


def test_a_lease_that_ended_is_staged(store, at):
    reserved(store, payload("a"))

    at.advance(RETRY_AFTER - 0.5)
    assert 0 == store.stage(["default"]).moved
    at.advance(1.0)
    assert 1 == store.stage(["default"]).moved


def test_a_renewed_lease_is_staged_when_it_ends(store, at):
    leases = [*reserved(store, payload("a")), *reserved(store, payload("b"), queue="high")]
    at.advance(60.0)

    assert [True, True] == store.renew(leases)
    at.advance(RETRY_AFTER - 0.5)
    assert 0 == store.stage(QUEUES).moved
    at.advance(1.0)
    assert 2 == store.stage(QUEUES).moved


def test_what_was_reserved_before_the_lost_reply_is_not_reclaimed(store, at):
    earlier = reserved(store, payload("a"))
    at.advance(30.0)
    reserved(store, payload("b"))
    at.advance(3.0)

    assert ["b"] == ids(store.reclaim(["default"], OURS, 3.0, known=()))
    assert [True] == store.delete(earlier)


def test_what_is_due_is_staged_and_the_rest_is_announced(store, at):
    store.push("default", new_jobs(payload("a")), delay=5.0)
    store.push("high", new_jobs(payload("b")), delay=65.0)
    at.advance(5.0)

    staged = store.stage(QUEUES)

    assert (1, pytest.approx(60.0), at.now) == (staged.moved, staged.next_due, staged.now)
    assert (1, 1) == (store.sizes("default").ready, store.sizes("high").delayed)


def test_a_stage_announces_the_earlier_of_two_however_many_digits_they_have(store, at):
    at.advance(-10.0)
    store.push("high", new_jobs(payload("a")), delay=5.0)
    store.push("default", new_jobs(payload("b")), delay=15.0)

    assert pytest.approx(5.0) == store.stage(QUEUES).next_due


@pytest.mark.fault("F64")
def test_identical_payloads_are_staged_each_after_its_own_delay(store, at):
    for delay in (1.0, 60.0, 30.0):
        store.push("default", new_jobs(payload("a")), delay)

    moved = []
    for seconds in (1.0, 29.0, 30.0):
        at.advance(seconds)
        moved.append(store.stage(["default"]).moved)

    assert [1, 1, 1] == moved


@pytest.mark.fault("F64")
def test_of_many_identical_payloads_none_is_merged_and_each_takes_a_few_tries(store, built):
    """Once more than the last one for each would be half a million for a thousand."""
    before = calls_of(built, "zadd")
    store.push("default", new_jobs(*[payload("a")] * 1000), 60.0)

    assert 1000 == store.sizes("default").delayed
    assert calls_of(built, "zadd") - before < 10 * 1000


@pytest.mark.fault("F64")
def test_of_many_failures_with_one_id_that_are_recorded_from_elsewhere_few_records_are_looked_at(built):
    before = calls_of(built, "hget") + calls_of(built, "hmget")
    facts = {"id": "a", "name": "do", "queue": "default", "connection": "", "payload": "{}", "exception": "E"}
    for number in [*range(200), *range(200)]:  # each once more, as after a lost reply
        built.failed.record(PendingFailure(f"{number:04}", facts))

    assert 200 == built.failed.count()
    assert calls_of(built, "hget") + calls_of(built, "hmget") - before < 10 * 400
    assert [True] == built.failed.drop([built.failed.get("a").key])  # as a retry does
    built.failed.record(PendingFailure("0100", facts))
    assert 199 == built.failed.count()


@pytest.mark.fault("F64")
def test_of_many_failed_jobs_with_one_id_each_is_recorded_and_takes_a_few_tries(store, built):
    """As many as there are records would be twenty thousand."""
    leases = reserved(store, *(payload("a", data=number) for number in range(200)))
    before = calls_of(built, "hexists")
    for lease in leases:
        store.fail(lease, "a", record(lease))

    assert 200 == built.failed.count()
    assert calls_of(built, "hexists") - before < 40 * 200


def calls_of(built: Stores, command: str) -> int:
    found = built.client.command("INFO", "commandstats").get(f"cmdstat_{command}")
    return int(found["calls"]) if found else 0


@pytest.mark.fault("F56")
def test_a_stage_moves_a_thousand_jobs_at_most_and_says_that_more_are_due(store, at):
    store.push("default", new_jobs(*(payload(f"job-{number}") for number in range(1_200))), delay=1.0)
    at.advance(1.0)

    first, second = store.stage(["default"]), store.stage(["default"])

    assert [(1_000, 0.0), (200, None)] == [(staged.moved, staged.next_due) for staged in (first, second)]


@pytest.mark.fault("F56")
def test_delayed_jobs_and_ended_leases_are_a_thousand_at_most_together(store, at):
    reserved(store, *(payload(f"lease-{number}") for number in range(600)))
    store.push("default", new_jobs(*(payload(f"job-{number}") for number in range(600))), delay=1.0)
    at.advance(2 * RETRY_AFTER)  # each lease ends a step after the one before

    assert [1_000, 200] == [store.stage(["default"]).moved for _ in range(2)]


def test_a_full_batch_tells_of_what_is_due_in_the_other_queues(store, at):
    store.push("high", new_jobs(*(payload(f"job-{number}") for number in range(1_000))), delay=1.0)
    store.push("default", new_jobs(payload("a")), delay=1.0)
    at.advance(1.0)

    assert 0.0 == store.stage(QUEUES).next_due


@pytest.fixture
def listening(store: Any) -> Any:
    """A store whose steward has been waiting for changes."""
    for _ in range(3):
        store.wait_for_change(QUEUES, timeout=0.01)
    return store


def test_whoever_begins_to_wait_for_changes_misses_none(store):
    store.push("high", new_jobs(payload("a")), delay=60.0)

    assert store.wait_for_change(QUEUES, timeout=5.0)


def test_an_earlier_due_time_ends_the_wait_for_a_change(listening):
    listening.push("high", new_jobs(payload("a")), delay=60.0)
    first = listening.wait_for_change(QUEUES, timeout=5.0)
    listening.push("high", new_jobs(payload("b")), delay=30.0)

    assert [Wake.DUE] * 2 == [first, listening.wait_for_change(QUEUES, timeout=5.0)]


def test_commands_of_operators_end_the_wait_for_a_change_and_lines_of_the_journal_do_not(built, listening):
    built.journal.write("jo@web1", "pause", "queue default")
    built.control.announce()

    assert Wake.NEWS is listening.wait_for_change(QUEUES, timeout=5.0)
    assert None is listening.wait_for_change(QUEUES, timeout=0.1)


def test_a_later_due_time_does_not_end_the_wait_for_a_change(listening):
    listening.push("high", new_jobs(payload("a")), delay=30.0)
    listening.wait_for_change(QUEUES, timeout=5.0)

    listening.push("high", new_jobs(payload("b")), delay=60.0)

    assert not listening.wait_for_change(QUEUES, timeout=0.1)


@pytest.mark.parametrize("delay", [0.5, 30.0])
def test_a_release_ends_the_wait_for_a_change(listening, delay):
    listening.release(reserved(listening, payload("a"))[0], delay, "a")

    assert listening.wait_for_change(QUEUES, timeout=5.0)


def test_a_release_for_later_than_what_is_known_does_not_end_the_wait_for_a_change(listening):
    listening.push("default", new_jobs(payload("b")), delay=20.0)
    lease = reserved(listening, payload("a"))[0]
    listening.wait_for_change(QUEUES, timeout=5.0)

    listening.release(lease, 30.0, "a")

    assert not listening.wait_for_change(QUEUES, timeout=0.1)


def test_of_two_equal_entries_that_a_reserve_set_aside_one_is_put_back(built):
    built.queue.push("default", new_jobs(b"not json", b"not json"))
    built.queue.reserve(["default"], OURS, 2)
    first, second = built.records.quarantined("default")

    assert built.records.requeue("default", first.id)
    assert [second] == list(built.records.quarantined("default"))
    assert 1 == built.queue.sizes("default").ready


def test_what_is_pushed_at_once_is_bounded_by_bytes_too(store, server):
    store.push("default", new_jobs(payload("warm")))
    server.config_resetstat()

    store.push("default", new_jobs(*(payload(str(number), data="x" * 400_000) for number in range(7))))

    assert 4 == server.info("commandstats")["cmdstat_evalsha"]["calls"]


def test_what_is_dropped_and_cleared_at_once_is_bounded_by_bytes_too(store, server):
    store.push("default", new_jobs(*(payload(str(number), data="x" * 300_000) for number in range(20))))
    page = store.walk("default", ("ready",)).page(12)
    server.config_resetstat()
    assert all(store.drop("default", page))
    drops = server.info("commandstats")["cmdstat_evalsha"]["calls"]
    server.config_resetstat()

    assert 8 == store.clear("default")
    assert (4, True) == (drops, server.info("commandstats")["cmdstat_evalsha"]["calls"] >= 2)


def test_of_large_jobs_that_have_moved_few_are_looked_at(built, store, server):
    store.push("default", new_jobs(*(payload(str(number), data="x" * 60_000) for number in range(300))))
    page = store.walk("default", ("ready",)).page(300)
    built.client.command("LTRIM", built.queue.keys.ready("default"), 100, -1)
    server.config_resetstat()
    answers = store.drop("default", [page[40], *page[200:203]])
    calls = {name: facts["calls"] for name, facts in server.info("commandstats").items()}

    assert [False, True, True, True] == answers
    assert (197, 1, True) == (store.sizes("default").ready, calls["cmdstat_lpos"], calls["cmdstat_lrange"] < 100)


@pytest.mark.bad_input("B169")
def test_a_mark_of_a_schedule_with_something_behind_its_end_counts_as_none_for_scripts_too(built):
    built.values.begin({"nightly": "r"}, 100)
    built.client.command("HSET", built.queue.keys.schedules, "nightly", b'{"settled": 100, "rule": "r"}\0x')

    assert built.values.fire(Due("nightly", 160, "reports", payload("a"))) is None
    assert {} == built.values.marks()
    built.values.forget("nightly")


@pytest.mark.bad_input("B169")
def test_a_mark_of_a_schedule_that_is_too_long_counts_as_none(built):
    """In a database the column is no longer than 255 characters."""
    rules = {"nightly": "r"}
    built.values.begin(rules, 100)
    text = json.dumps({"settled": 100, "rule": "r", "more": "x" * MAX_MARK})
    built.client.command("HSET", built.queue.keys.schedules, "nightly", text)

    assert built.values.fire(Due("nightly", 160, "reports", payload("a"))) is None
    assert {} == built.values.marks()
    assert {"nightly": Mark(200, "r")} == built.values.begin(rules, 200)
    built.values.forget("nightly")


@pytest.mark.bad_input("B170")
def test_tallies_that_are_no_numbers_count_as_none(built):
    """Or who asks for them dies of it, in the middle of a job's end."""
    words = "exceptions", "garbage", "crashes", "7" * 5000, "suspects", "-1"
    built.client.command("HSET", built.queue.keys.tallies("a"), *words)

    assert Tallies() == built.queue.tallies("a")


@pytest.mark.bad_input("B170")
def test_a_damaged_record_of_a_failed_job_is_shown_and_retried_as_it_stands(built):
    keys = built.queue.keys
    built.client.command("HSET", keys.failed, "a", b"[garbage")
    built.client.command("ZADD", keys.failed_times, 100, "a")

    [found] = built.failed.page()
    assert ("[garbage", "this record is damaged", None) == (found.payload, found.exception, found.attempts)
    assert built.failed.retry(found, "default")
    assert b"[garbage" == built.queue.sizes("default").oldest


@pytest.mark.bad_input("B170")
def test_a_damaged_entry_of_the_quarantine_is_shown_and_dropped(built):
    built.client.command("RPUSH", built.queue.keys.quarantine("default"), b"garbage")

    [found] = built.records.quarantined("default")
    assert ("damaged", b"garbage") == (found.reason, found.payload)
    assert built.records.drop_quarantined("default", found.id)


@pytest.mark.fault("F61")
def test_of_a_large_payload_only_the_start_is_measured(built, store):
    store.push("default", new_jobs(payload("a", data="x" * 2**20)))

    assert 64 * 1024 == len(built.queue.measure("default").payload)


def test_a_waiting_job_is_not_removed_if_it_cannot_be_recorded(built):
    """A key of another type is in the place of the failed jobs."""
    raw = payload("a")
    built.queue.push("default", new_jobs(raw))
    built.client.command("SET", built.queue.keys.failed, "odd")

    with pytest.raises(StoreError):
        built.queue.cancel(Lease("default", raw), "a", record(Lease("default", raw)))
    assert 1 == built.queue.sizes("default").ready


@pytest.mark.bad_input("B173")
def test_what_is_no_book_is_told_once_and_hides_no_later_text(built):
    """A key may be of any type."""
    values, key = built.values, built.queue.keys.book("journal")
    built.client.command("SET", key, "5")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        values.take_notes("journal", 10)
    assert [] == values.take_notes("journal", 10)
    built.client.command("SET", key, "5")
    values.note("journal", "one", 10, 60.0)

    assert [b"one"] == values.take_notes("journal", 10)
