"""Both programs share one table: each takes the jobs that the other pushed."""

from __future__ import annotations

import pytest

from queuepool.payload.command import command_of
from queuepool.settlement.failing import record
from tests.support.samples import new_jobs
from tests.support.shared_tables import MAIL, REPORT, TAG, made

pytestmark = made("sqlite-8", "postgres-13", "mariadb-8")
RAW = '{"uuid":"u","displayName":"J","job":"J","data":[]}'
T = 1_800_000_000


# Pushed there, run here


def test_an_object_job_of_laravel_comes_with_its_properties_and_wishes(shared):
    shared.peer.run("push-object", "a@b.c", "vip é", tries=5, timeout=30, backoff="1,5,30")

    _, found = shared.reserved()

    assert (MAIL, {"to": "a@b.c", "template": "vip é"}) == (found.name, command_of(found.data).arguments)
    terms = found.options
    assert (5, 30.0, (1.0, 5.0, 30.0), ()) == (terms.max_tries, terms.timeout, terms.backoff, found.warnings)


def test_a_job_that_laravel_delayed_is_due_when_laravel_said(shared, talk):
    talk.ask("later", now=T, queue="default", raw=RAW, delay=5)

    assert [] == shared.reserve(at=T + 4.9)
    assert 1 == len(shared.reserve(at=T + 5))


def test_jobs_of_laravel_are_taken_in_the_order_of_their_rows(shared, talk):
    for number in range(5):
        talk.ask("push", now=T, queue="default", raw=RAW.replace("[]", str(number)))

    shared.store.clock = f"{T}.0"
    leases = shared.store.reserve(["default"], TAG, 5).leases

    assert [RAW.replace("[]", str(number)).encode() for number in range(5)] == [lease.receipt for lease in leases]


# Pushed here, run there


def test_our_wish_for_one_try_is_laravels_law(shared):
    identity = shared.queue.push(REPORT, {"fail_times": 9}, options={"maxTries": 1})

    shared.peer.run("work", once=True, tries=5)

    assert [identity] == [row["uuid"] for row in shared.rows("failed_jobs")]
    assert [] == shared.rows("jobs")


def test_a_job_that_we_delayed_is_never_early_there(shared, talk):
    shared.store.clock = f"{T}.25"
    shared.store.push("default", new_jobs(RAW.encode()), 5.0)

    early, due = (talk.ask("pop", now=T + later, queue="default") for later in (5, 6))

    assert (None, 1) == (early["id"], due["attempts"])


# From hand to hand


def test_an_attempt_that_failed_there_is_finished_here_as_the_second(shared):
    shared.queue.push(REPORT, {"fail_times": 1, "id": 7}, options={"maxTries": 3})
    shared.peer.run("work", once=True)

    lease, found = shared.reserved()

    assert (2, {"fail_times": 1, "id": 7}) == (found.attempts, found.data)
    assert [True] == shared.store.delete([lease])
    assert {"size": 0} == shared.peer.run("size")


def test_an_attempt_that_failed_here_is_finished_there_as_the_second(shared):
    shared.queue.push(REPORT, {"id": 7, "empty": []}, options={"maxTries": 3})
    lease, found = shared.reserved()

    shared.store.release(lease, 0.0, found.id, "exceptions")
    shared.peer.run("work", once=True)

    assert [({"id": 7, "empty": []}, 2)] == [(run["data"], run["attempts"]) for run in shared.runs()]
    assert [] == shared.rows("jobs")


def test_an_exception_there_counts_towards_the_limit_here(shared):
    shared.queue.push(REPORT, {"fail_times": 1}, options={"maxTries": 9, "maxExceptions": 2})
    shared.peer.run("work", once=True, cache_prefix="")

    lease, found = shared.reserved()

    assert 1 == shared.store.tallies(found.id).exceptions
    assert shared.store.fail(lease, found.id, record(found, lease, "default", ValueError()))
    assert [] == shared.rows("cache")


def test_an_exception_here_counts_towards_the_limit_there(shared):
    shared.queue.push(REPORT, {"fail_times": 9}, options={"maxTries": 9, "maxExceptions": 2})
    lease, found = shared.reserved()
    shared.store.release(lease, 0.0, found.id, "exceptions")

    shared.peer.run("work", once=True, cache_prefix="")

    assert ([], [found.uuid]) == (shared.rows("jobs"), [row["uuid"] for row in shared.rows("failed_jobs")])


@pytest.mark.fault("F65")
def test_a_job_that_goes_to_and_fro_counts_every_attempt(shared, talk):
    shared.store.push("default", new_jobs(RAW.encode()))
    counted = []
    for second in range(T, T + 6, 2):
        job = talk.ask("pop", now=second, queue="default")
        talk.ask("release", now=second, queue="default", delay=0, **job)
        lease, found = shared.reserved(at=second)
        shared.store.release(lease, 1.0, found.id)
        counted += [job["attempts"], found.attempts]

    assert [1, 2, 3, 4, 5, 6] == counted


def test_a_job_that_laravel_released_for_later_is_due_here_then(shared, talk):
    talk.ask("push", now=T, queue="default", raw=RAW)
    talk.ask("release", now=T, queue="default", delay=60, **talk.ask("pop", now=T, queue="default"))

    assert [] == shared.reserve(at=T + 59.9)
    assert 2 == shared.reserved(at=T + 60)[1].attempts


def test_a_job_that_we_released_for_later_is_due_there_then_behind_those_that_wait(shared, talk):
    shared.store.clock = f"{T}.0"
    shared.store.push("default", new_jobs(RAW.encode(), RAW.replace("[]", "2").encode()))
    lease, found = shared.reserved(at=T)
    shared.store.release(lease, 60.0, found.id)

    orders = [talk.ask("pop", now=T + later, queue="default") for later in (0, 59, 60)]

    assert [RAW.replace("[]", "2"), None, RAW] == [order["raw"] for order in orders]
    assert [1, None, 2] == [order["attempts"] for order in orders]


def test_a_job_given_back_is_popped_by_laravel_first_and_as_a_first_attempt(shared, talk):
    shared.store.clock = f"{T}.0"
    shared.store.push("default", new_jobs(RAW.encode(), RAW.replace("[]", "2").encode()))
    lease, _ = shared.reserved(at=T)

    shared.store.give_back([lease])

    popped = talk.ask("pop", now=T, queue="default")
    assert (lease.row.id, 1, RAW) == (popped["id"], popped["attempts"], popped["raw"])


def test_the_sizes_agree(shared, talk):
    shared.store.clock = f"{T}.0"
    shared.store.push("default", new_jobs(*[RAW.encode()] * 3))
    shared.store.push("default", new_jobs(RAW.encode()), 60.0)
    shared.store.push("other", new_jobs(RAW.encode()))
    shared.reserved(at=T)
    talk.ask("pop", now=T, queue="default")

    sizes = shared.store.sizes("default")
    assert (1, 1, 2) == (sizes.ready, sizes.delayed, sizes.reserved)
    assert sizes.total == talk.ask("size", now=T, queue="default")
    assert 4 == shared.queue.clear()
    assert [0, 1] == [talk.ask("size", now=T, queue=name) for name in ("default", "other")]
