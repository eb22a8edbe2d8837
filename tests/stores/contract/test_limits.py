"""Limits: never more jobs than places, what finds none is parked without a try, and each free place is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from queuepool.errors import StoreError
from queuepool.payload.lease import NOTHING, AttemptRecord, Lease
from queuepool.payload.limits import NO_PART, PlaceAsked, holding, job_word
from queuepool.stores.contract import NO_TRY, NewJob
from queuepool.stores.factory import Stores
from queuepool.stores.limits import GRANT_LASTS, Admission, Entering, LimitRecord
from tests.support.graphs import Drawn, ended
from tests.support.samples import ids, new_jobs, payload, record
from tests.support.store_contract import RETRY_AFTER, attempts_of

pytestmark = pytest.mark.usefixtures("at")

RECORD = AttemptRecord("a", '"id":"a"', "", 60.0)
ONE = PlaceAsked("import", NO_PART, 1)
TWO = PlaceAsked("import", NO_PART, 2)


def pushed(store: Any, *names: str, queue: str = "default") -> None:
    store.push(queue, new_jobs(*map(payload, names)))


class Worker:
    """Takes jobs and has them enter their limits, as one with this tag."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.tag = store.join()

    def take(self, queue: str = "default") -> Lease:
        [lease] = self.store.reserve([queue], self.tag, 1).leases
        return holding(lease)

    def enter(self, *asked: PlaceAsked, queue: str = "default") -> tuple[Lease, Admission]:
        lease = self.take(queue)
        return lease, self.store.limits.enter(lease, ids([lease])[0], asked)

    def starts(self, *asked: PlaceAsked, queue: str = "default") -> list[Lease]:
        """Take all that is ready; returns the leases of those that are in."""
        found = list[Lease]()
        while leases := self.store.reserve([queue], self.tag, 1).leases:
            lease = holding(leases[0])
            if self.store.limits.enter(lease, ids(leases)[0], asked).is_in:
                found.append(lease)
        return found


@pytest.fixture
def worker(store: Any) -> Worker:
    return Worker(store)


def waiting(built: Stores, key: str = "import") -> list[tuple[str, str, int]]:
    return [line[:3] for one in built.limits.by_key() if one.key == key for line in one.parked]


def held(built: Stores, key: str = "import") -> int:
    return sum(one.held for one in built.limits.by_key() if one.key == key)


def sizes(store: Any) -> tuple[int, int, int]:
    found = store.sizes("default")
    return found.ready, found.delayed, found.reserved


def test_what_finds_a_place_is_in_and_what_finds_none_is_parked(built, store, worker):
    pushed(store, "a", "b", "c")
    entries = [worker.enter(TWO)[1] for _ in range(3)]

    assert [Admission(True), Admission(True), Admission(False, "import")] == entries
    assert (0, 0, 2) == sizes(store)
    assert [("default", NO_PART, 1)] == waiting(built)
    assert 1 == built.limits.parked("default")


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("end", ["finish", "fail", "release", "postpone", "give_back", "quarantine", "delete"])
def test_each_end_of_a_lease_hands_its_place_on(built, store, worker, end):
    pushed(store, "a", "b")
    lease, _ = worker.enter(ONE)
    worker.enter(ONE)
    ends = {
        "finish": lambda: store.finish(lease, NOTHING),
        "fail": lambda: store.fail(lease, "a", record(lease)),
        "release": lambda: store.release(lease, 60, "a"),
        "postpone": lambda: store.release(lease, 60, "a", NO_TRY),
        "give_back": lambda: store.give_back([lease]),
        "quarantine": lambda: store.quarantine(lease, "odd"),
        "delete": lambda: store.delete([lease]),
    }
    assert ends[end]()

    assert 0 == held(built)
    assert "b" in ids(store.reserve(["default"], worker.tag, 2).leases)
    assert [] == waiting(built)


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["d", "f"])
def test_the_end_of_a_member_hands_its_place_on(built, store, worker, how):
    drawn = Drawn({"a": [], "after?a": ["a"]})
    built.flows.write(drawn.flow, drawn.members)
    pushed(store, "b")
    lease, _ = worker.enter(ONE)
    worker.enter(ONE)
    kept = RECORD if how == "f" else None  # which is kept around all that ends with a lease
    assert ended(store, lease._replace(record=kept), how)

    assert 0 == held(built)
    assert {"b", "after?a"} == {*ids(store.reserve(["default"], worker.tag, 2).leases)}


def test_a_postponement_uses_up_no_try(store, worker):
    pushed(store, "a", "b")
    first, _ = worker.enter(ONE)
    worker.enter(ONE)
    store.finish(first, NOTHING)

    again, entry = worker.enter(ONE)
    assert entry.is_in
    assert 1 == attempts_of(again)


def test_a_place_is_kept_for_the_job_that_it_was_handed_to(store, worker):
    pushed(store, "a", "b")
    first, _ = worker.enter(ONE)
    worker.enter(ONE)
    pushed(store, "newcomer")
    store.finish(first, NOTHING)

    granted = worker.take()
    assert ["b"] == ids([granted])
    assert not worker.enter(ONE)[1].is_in
    assert store.limits.enter(granted, "b", [ONE]).is_in


def test_a_place_that_nobody_takes_goes_to_whoever_starts(built, store, worker, at):
    pushed(store, "a", "b")
    first, _ = worker.enter(ONE)
    worker.enter(ONE)
    store.finish(first, NOTHING)
    granted = worker.take()
    pushed(store, "newcomer")
    at.advance(2 * GRANT_LASTS)

    assert worker.enter(ONE)[1].is_in
    assert not store.limits.enter(granted, "b", [ONE]).is_in
    assert 1 == held(built)


def test_a_place_that_nobody_takes_goes_to_another_queue(store, worker, at):
    pushed(store, "a", "b")
    pushed(store, "elsewhere", queue="other")
    first, _ = worker.enter(ONE)
    worker.enter(ONE)
    worker.enter(ONE, queue="other")
    store.finish(first, NOTHING)
    at.advance(2 * GRANT_LASTS)
    store.limits.sweep()

    assert worker.enter(ONE, queue="other")[1].is_in


def test_a_place_that_nobody_takes_holds_up_no_other(built, store, worker, at):
    rate = PlaceAsked("stripe", NO_PART, 2, 1.0)
    pushed(store, *"abcd")
    worker.enter(rate)
    at.advance(0.6)
    worker.enter(rate)
    worker.enter(rate)
    worker.enter(rate)
    at.advance(0.45)
    store.limits.sweep()
    at.advance(1.2 * GRANT_LASTS)
    until_the_second_ends = 1.6 - 1.05 - 1.2 * GRANT_LASTS
    assert store.limits.sweep() == pytest.approx(until_the_second_ends, abs=0.02)

    at.advance(until_the_second_ends + 0.02)
    store.limits.sweep()
    assert [] == waiting(built, "stripe")


def test_a_granted_job_that_is_gone_keeps_no_place(built, store, worker, at):
    pushed(store, "a", "b", "c")
    first, _ = worker.enter(ONE)
    worker.enter(ONE)
    worker.enter(ONE)
    store.finish(first, NOTHING)
    store.delete([worker.take()])  # it was run by code that knows no limit
    at.advance(2 * GRANT_LASTS)
    store.limits.sweep()

    assert ["c"] == ids([worker.take()])
    assert [] == waiting(built)


def test_partitions_take_turns(store, worker):
    for name in ("a1", "a2", "a3", "b1"):
        pushed(store, name)
        worker.enter(PlaceAsked("gpu", name[0], 1))
    order, lease = list[str](), None
    running = None
    pushed(store, "x")
    assert not worker.enter(PlaceAsked("gpu", "x", 1))[1].is_in
    running = next(iter(_leases_of(store, worker)), None)
    for _ in range(4):
        assert running
        store.finish(running, NOTHING)
        lease, entry = worker.enter(PlaceAsked("gpu", "any", 1))
        assert entry.is_in
        order += ids([lease])
        running = lease

    assert ["a2", "b1", "x", "a3"] == order


def _leases_of(store: Any, worker: Worker) -> Sequence[Lease]:
    raws = store.first("default", 10, "reserved")
    if hasattr(store, "leases"):
        return [holding(one) for one in store.leases.of_tag(["default"], worker.tag)]
    return [holding(Lease("default", raw, worker.tag)) for raw in raws]


def test_values_of_an_argument_have_places_of_their_own(store, worker):
    pushed(store, "a", "b")

    assert worker.enter(PlaceAsked("import=t1", NO_PART, 1))[1].is_in
    assert worker.enter(PlaceAsked("import=t2", NO_PART, 1))[1].is_in


def test_a_job_with_several_limits_takes_all_or_none(built, store, worker):
    other = PlaceAsked("gpu", NO_PART, 1)
    pushed(store, "a", "b", "c")
    gpu, _ = worker.enter(other)
    _, refused = worker.enter(ONE, other)

    assert Admission(False, "gpu") == refused
    assert worker.enter(ONE)[1].is_in  # nothing was taken of the first
    store.finish(gpu, NOTHING)  # b is next there, but the other limit refuses it now
    assert [("default", NO_PART, 1)] == waiting(built)
    assert [] == waiting(built, "gpu")


def test_a_place_is_handed_on_to_jobs_with_a_limit_whose_value_nobody_used_meanwhile(built, store, worker):
    """What is kept of such a value goes with its last place, whoever else may ask for it."""
    tenant = PlaceAsked("tenant=x", NO_PART, 1)
    pushed(store, *"abcde")
    running = [worker.enter(TWO)[0] for _ in range(2)]
    assert [False, False] == [worker.enter(TWO, tenant)[1].is_in for _ in range(2)]
    last, _ = worker.enter(tenant)
    store.finish(last, NOTHING)

    assert [True, True] == [store.finish(lease, NOTHING) for lease in running]
    [started] = worker.starts(TWO, tenant)
    assert [("default", NO_PART, 1)] == waiting(built, "tenant=x")
    store.finish(started, NOTHING)
    assert 1 == len(worker.starts(TWO, tenant))


def test_a_rate_counts_starts_in_its_period(store, worker, at):
    rate = PlaceAsked("stripe", NO_PART, 2, 10.0)
    pushed(store, *"abcde")
    for lease in worker.starts(rate):
        store.finish(lease, NOTHING)
    assert store.limits.sweep() == pytest.approx(10.0, abs=0.1)
    at.advance(9.9)
    store.limits.sweep()
    assert [] == worker.starts(rate)
    at.advance(0.2)
    store.limits.sweep()

    assert ["c", "d"] == ids(worker.starts(rate))


def test_a_shortened_period_holds_for_the_starts_that_were_counted(store, worker, at):
    store.limits.declare("stripe", 1, 3600.0)
    old = PlaceAsked("stripe=a", NO_PART, 1, 3600.0)
    pushed(store, "a", "b")
    assert worker.enter(old)[1].is_in
    assert not worker.enter(old)[1].is_in
    at.advance(5.0)
    store.limits.declare("stripe", 1, 10.0)
    store.limits.sweep("stripe")
    at.advance(4.9)
    store.limits.sweep()
    assert [] == worker.starts(old)
    at.advance(0.2)
    store.limits.sweep()

    assert ["b"] == ids(worker.starts(old))  # by code that has not been replaced yet
    pushed(store, "c")
    assert [] == worker.starts(old)
    at.advance(10.1)
    store.limits.sweep()
    assert ["c"] == ids(worker.starts(old))


def test_a_rate_that_becomes_a_concurrency_counts_those_that_run(built, store, worker, connection):
    rate, lasting = PlaceAsked("stripe", NO_PART, 1, 60.0), PlaceAsked("stripe", NO_PART, 1)
    pushed(store, *"abcd")
    store.finish(worker.enter(rate)[0], NOTHING)
    store.limits.declare("stripe", 1, 0.0)
    assert worker.enter(lasting)[1].is_in  # a start is not a job that runs
    assert not worker.enter(lasting)[1].is_in
    lasts = [time_to_live(built, connection)]
    store.limits.set("stripe", 3)
    store.limits.sweep("stripe")
    assert worker.enter(rate)[1].is_in  # of code that has not been replaced yet

    assert [-1, -1] == [*lasts, time_to_live(built, connection)]


def time_to_live(built: Stores, connection: Any) -> int:
    """For how long the server keeps the places at ``stripe``; -1 = until they are removed."""
    if not connection.url.startswith(("redis", "unix")):
        return -1
    return int(built.queue.client.command("TTL", f"{connection.prefix}queuepool:limit:held:stripe"))


def test_places_of_a_lost_host_end_with_their_leases(built, store, worker, at):
    pushed(store, "a", "b")
    worker.enter(ONE)
    worker.enter(ONE)
    at.advance(RETRY_AFTER - 1)
    store.limits.sweep()
    assert 1 == held(built)
    at.advance(2.5)
    store.stage(["default"])
    store.limits.sweep()

    assert 0 == held(built)
    assert ["a", "b"] == sorted(ids(store.reserve(["default"], worker.tag, 2).leases))


def test_what_is_left_of_a_lost_host_is_forgotten_though_no_job_waits(built, store, worker, at):
    pushed(store, "a", "b")
    worker.enter(PlaceAsked("import=lost", NO_PART, 1))
    at.advance(RETRY_AFTER + 2)
    built.limits._tidy_at = 0.0  # whose time is not the store's
    store.limits.sweep()

    assert [] == built.limits.by_key()
    assert store.limits.sweep() is None


@pytest.mark.by_turns("renewed")
@pytest.mark.parametrize("renewed", [False, True])
def test_a_place_lasts_as_long_as_its_lease(built, store, worker, at, renewed):
    store.limits.in_use = True
    at.advance(0.3)
    pushed(store, "a", "b")
    lease, _ = worker.enter(ONE)
    worker.enter(ONE)
    if renewed:
        at.advance(1.2)
        store.renew([lease._replace(holder="")])
    at.advance(RETRY_AFTER + 0.1)
    store.limits.sweep()

    is_held = held(built) == 1
    assert is_held == ("a" not in ids(store.reserve(["default"], store.join(), 2).leases))
    at.advance(2.0)
    store.limits.sweep()
    assert 0 == held(built)


def test_a_place_ends_with_its_lease_however_late_its_job_has_entered(built, store, worker, at):
    pushed(store, "a", "b")
    late = worker.take()
    at.advance(RETRY_AFTER - 1.5)
    assert store.limits.enter(late, "a", [ONE]).is_in
    worker.enter(ONE)
    at.advance(2.5)
    store.limits.sweep()

    assert [] == waiting(built)


def test_places_are_renewed_with_their_leases(built, store, worker, at):
    store.limits.in_use = True
    pushed(store, "a", "b")
    lease, _ = worker.enter(ONE)
    worker.enter(ONE)
    at.advance(RETRY_AFTER - 1)
    assert [True] == store.renew([lease._replace(holder="")])
    at.advance(RETRY_AFTER - 1)
    store.limits.sweep()

    assert 1 == held(built)
    assert [("default", NO_PART, 1)] == waiting(built)


def test_entering_may_be_repeated(built, store, worker):
    pushed(store, "a")
    lease, _ = worker.enter(ONE)

    assert Admission(True) == store.limits.enter(lease, "a", [ONE])
    assert 1 == held(built)


def test_a_lost_lease_takes_no_place(built, store, worker):
    pushed(store, "a")
    lease = worker.take()
    store.give_back([lease])

    assert Admission(False) == store.limits.enter(lease, "a", [ONE])
    assert 0 == held(built)


def test_a_number_set_by_hand_is_in_force_until_it_is_reset(store, worker):
    pushed(store, *"abcd")
    worker.enter(ONE)
    worker.enter(ONE)
    worker.enter(ONE)
    assert store.limits.set("import", 2)
    store.limits.sweep("import")
    assert ["b"] == ids(worker.starts(ONE))
    assert [LimitRecord("import", 1, 0.0, 2)] == store.limits.all()

    assert store.limits.set("import", None)
    assert [LimitRecord("import", 1, 0.0, None)] == store.limits.all()
    assert not store.limits.set("unknown", 2)


def test_code_with_other_numbers_is_told_of_those_before(store, worker):
    assert store.limits.declare("import", 1, 0.0) is None
    assert store.limits.declare("import", 1, 0.0) is None

    assert LimitRecord("import", 1, 0.0, None) == store.limits.declare("import", 3, 0.0)
    assert [LimitRecord("import", 3, 0.0, None)] == store.limits.all()


def test_parked_jobs_are_found_and_put_back(built, store, worker):
    pushed(store, *"abc")
    first, _ = worker.enter(ONE)
    worker.enter(ONE)
    worker.enter(ONE)

    found = store.limits.find("default", "c")
    assert (payload("c"), "import", 1) == (found.payload, found.key, found.before)
    assert {payload("b"), payload("c")} == {one.payload for page in store.limits.pages("default") for one in page}
    assert store.limits.find("default", "a") is None
    assert 1 == store.limits.unpark("default", "b")
    assert ["b"] == ids([worker.take()])
    assert 1 == store.limits.unpark("default")
    assert 0 == built.limits.parked("default")
    store.finish(first, NOTHING)  # nobody is left in the line


def test_a_look_at_parked_jobs_ends_although_others_are_parked_meanwhile(store, worker):
    pushed(store, "a", "b")
    worker.enter(ONE)
    worker.enter(ONE)
    pages = store.limits.pages("default")
    for number in range(3):
        assert bool(next(pages, None)) == (number == 0)
        pushed(store, f"c{number}")
        worker.enter(ONE)


def test_a_line_whose_jobs_were_taken_out_keeps_nobody_waiting(store, worker):
    """Redis parks what a dispatch that knows the limit pushes; its numbers stay in the line until their turn."""
    jobs = [NewJob(payload(f"j{number}"), None, job_word(f"j{number}"), [ONE]) for number in range(3000)]
    store.push("default", jobs)
    first, _ = worker.enter(ONE)
    store.limits.unpark("default")
    while leases := store.reserve(["default"], worker.tag, 1000).leases:
        store.delete(leases)
    store.finish(first, NOTHING)
    store.push("default", [NewJob(payload("late"), None, job_word("late"), [ONE])])

    assert worker.enter(ONE)[1].is_in


@pytest.mark.thorough("150 jobs; the order of a few is in test_those_behind_a_parked_job_wait_behind_it")
def test_a_long_line_ends_in_its_order(built, store, worker):
    names = [f"j{number:03}" for number in range(150)]
    pushed(store, *names)
    running = worker.starts(ONE)
    order = list[str]()
    while running:
        order += ids(running)
        store.finish(running[0], NOTHING)
        running = worker.starts(ONE)

    assert names == order
    assert [] == built.limits.by_key()


def test_a_flushed_store_begins_anew(built, store, worker, connection):
    if not connection.url.startswith(("redis", "unix")):
        pytest.skip("nobody empties a database")
    pushed(store, "a", "b")
    lost, _ = worker.enter(ONE)
    worker.enter(ONE)
    keys = [key for page in built.queue.client.scan(f"{connection.prefix}*") for key in page]
    built.queue.client.command("DEL", *keys)
    assert not store.finish(lost, NOTHING)
    worker.tag = store.join()
    pushed(store, "c", "d")

    assert worker.enter(ONE)[1].is_in
    assert not worker.enter(ONE)[1].is_in


def test_a_job_that_cannot_be_parked_stays_where_it_is(built, store, worker, connection):
    if not connection.url.startswith(("redis", "unix")):
        pytest.skip("a table has one type")
    pushed(store, "a", "b")
    worker.enter(ONE)
    built.queue.client.command("SET", f"{connection.prefix}queuepool:parked:default", "text")
    lease = worker.take()
    with pytest.raises(StoreError, match="WRONGTYPE"):
        store.limits.enter(lease, "b", [ONE])

    assert (0, 0, 2) == sizes(store)
    assert [True] == store.give_back([lease])


def test_a_job_whose_queue_cannot_take_it_back_waits_on(built, store, worker, at, connection):
    if not connection.url.startswith(("redis", "unix")):
        pytest.skip("a table has one type")
    pushed(store, "a")
    pushed(store, "b", "c", queue="other")
    first, _ = worker.enter(ONE)
    worker.enter(ONE, queue="other")
    worker.enter(ONE, queue="other")
    key = f"{connection.prefix}queues:other"
    built.queue.client.command("SET", key, "text")
    store.finish(first, NOTHING)
    assert 2 == store.limits.parked("other")
    at.advance(2.0)
    store.limits.sweep()
    assert 2 == store.limits.parked("other")
    assert 0 == held(built)

    built.queue.client.command("DEL", key)
    at.advance(2.0)
    store.limits.sweep()
    assert 1 == len(worker.starts(ONE, queue="other"))


def test_a_push_that_knows_the_limits_parks_at_once(store, worker, connection):
    if not connection.url.startswith(("redis", "unix")):
        pytest.skip("in a database workers park")
    jobs = [NewJob(payload(name), None, job_word(name), [TWO]) for name in "abcde"]
    store.push("default", jobs)

    assert (2, 0, 0) == sizes(store)
    assert 3 == store.limits.parked("default")
    assert ["a", "b"] == ids(worker.starts(TWO))


def test_who_holds_a_place_and_who_waits_the_longest_is_shown(built, store, worker):
    pushed(store, *"abcd")
    lease, _ = worker.enter(ONE)
    for tenant in "xyx":
        worker.enter(ONE._replace(part=tenant))

    [one] = built.limits.by_key("import")
    assert [("default", "x", 2), ("default", "y", 1)] == [line[:3] for line in one.parked]
    assert [payload("b"), payload("c")] == [built.limits.parked_job("default", line.first) for line in one.parked]
    assert built.limits.parked_job("default", one.parked[0].first + 100) is None
    [place] = built.limits.holders(["import", "other"], ["default", "empty"], 10)
    assert ("import", "default", lease.receipt) == (place.key, place.queue, place.payload)
    assert 0 < place.until - store.now() <= RETRY_AFTER + 1
    assert [] == built.limits.by_key("imp")
    assert [] == built.limits.by_key("import", 0)


def test_a_place_of_a_lost_host_is_not_counted(built, store, worker, at):
    pushed(store, *"ab")
    worker.enter(ONE)
    worker.enter(ONE)
    at.advance(RETRY_AFTER + 2)

    assert (0, [("default", NO_PART, 1)]) == (held(built), waiting(built))
    assert [] == built.limits.holders(["import"], ["default"], 10)


def test_starts_are_counted_without_a_holder(built, store, worker):
    pushed(store, *"a")
    worker.enter(PlaceAsked("stripe", NO_PART, 1, 60.0))
    pushed(store, "b")
    worker.enter(PlaceAsked("stripe", NO_PART, 1, 60.0))

    assert 1 == held(built, "stripe")
    [start] = built.limits.holders(["stripe"], ["default"], 10)
    assert ("stripe", "", b"") == (start.key, start.queue, start.payload)


@pytest.mark.thorough("what it costs; the lines are read in test_who_holds_a_place_and_who_waits_the_longest_is_shown")
def test_no_more_lines_are_read_than_asked_for(built, store, worker):
    pushed(store, *(f"j{number:02}" for number in range(31)))
    worker.enter(ONE)
    for number in range(30):
        worker.enter(PlaceAsked("import", str(number), 1))

    [few], [all_of_them] = built.limits.by_key("import", lines=7), built.limits.by_key("import")
    assert ([str(number) for number in range(7)], True) == ([line.part for line in few.parked], few.is_cut)
    assert (30, False) == (len(all_of_them.parked), all_of_them.is_cut)


@pytest.mark.by_turns("reserved")
@pytest.mark.parametrize("reserved", [0, 1])
def test_a_reserve_hands_on_the_places_of_those_that_it_ends(built, store, worker, reserved):
    if not built.limits.end_with_reserve:
        pytest.skip("each is settled by itself")
    pushed(store, "plain", "running", "next", "free")
    [plain] = store.reserve(["default"], worker.tag, 1).leases
    running, _ = worker.enter(ONE)
    worker.enter(ONE)

    found = store.reserve(["default"], worker.tag, reserved, [plain, running])
    assert (reserved, []) == (len(found.leases), found.refused)
    assert (0, 0) == (built.limits.parked("default"), held(built))
    assert store.reserve(["default"], worker.tag, 0, [running]).refused
    rest = store.reserve(["default"], worker.tag, 2).leases
    assert ["free", "next"] == sorted(ids([*found.leases, *rest]))


def behind(store: Any, leases: Sequence[Lease], *asked: PlaceAsked, key: str = "import") -> list[bool | None]:
    """What becomes of jobs that are parked in one step with one before them."""
    if store.limits.park_behind is None:
        pytest.skip("they enter one by one")
    jobs = [Entering(holding(lease), ids([lease])[0], asked) for lease in leases]
    answers: list[bool | None] = store.limits.park_behind(key, jobs)
    return answers


def test_those_behind_a_parked_job_wait_behind_it(built, store, worker):
    pushed(store, "a", "b", "c", "d")
    running, _ = worker.enter(ONE)
    leases = store.reserve(["default"], worker.tag, 3).leases

    assert [True, True, True] == behind(store, leases, ONE)
    assert [("default", NO_PART, 3)] == waiting(built)
    assert (0, 0, 1) == sizes(store)
    assert store.finish(running, NOTHING)
    [lease] = store.reserve(["default"], worker.tag, 3).leases
    assert (["b"], 1) == (ids([lease]), attempts_of(lease))


def test_those_behind_wait_in_their_own_partitions(built, store, worker):
    pushed(store, "a", "b", "c")
    worker.enter(PlaceAsked("import", "x", 1))
    first, second = store.reserve(["default"], worker.tag, 2).leases

    assert [True] == behind(store, [second], PlaceAsked("import", "y", 1))
    assert [True] == behind(store, [first], PlaceAsked("import", "x", 1))
    assert [("default", "y", 1), ("default", "x", 1)] == waiting(built)


def test_none_behind_waits_while_a_place_is_free(built, store, worker):
    pushed(store, "a", "b")
    worker.enter(TWO)
    leases = store.reserve(["default"], worker.tag, 1).leases

    assert [False] == behind(store, leases, TWO)
    assert [] == waiting(built)
    assert store.limits.enter(holding(leases[0]), "b", [TWO]).is_in


def test_one_behind_for_which_a_place_is_kept_has_yet_to_enter(store, worker):
    pushed(store, "a", "b", "c")
    running, _ = worker.enter(ONE)
    worker.enter(ONE)
    assert store.finish(running, NOTHING)
    handed_on, other = store.reserve(["default"], worker.tag, 2).leases

    assert [False, True] == behind(store, [handed_on, other], ONE)
    assert store.limits.enter(holding(handed_on), "b", [ONE]).is_in


def test_a_lost_lease_behind_is_not_parked(built, store, worker):
    pushed(store, "a", "b", "c")
    worker.enter(ONE)
    lost, held_on = store.reserve(["default"], worker.tag, 2).leases
    assert store.delete([lost])

    assert [None, True] == behind(store, [lost, held_on], ONE)
    assert [("default", NO_PART, 1)] == waiting(built)
