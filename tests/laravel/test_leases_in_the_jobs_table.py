"""Leases in a table that Laravel works on too: at most one of our workers holds a job within its lease."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.samples import new_jobs
from tests.support.shared_tables import TAG, Shared, made

pytestmark = made("sqlite-8", "postgres-13", "mariadb-8")
RAW = '{"uuid":"u","displayName":"J","job":"J","data":[]}'
T = 1_800_000_000
#: seconds: the usual retry_after of both sides
LEASE = 90

#: every way to settle a lease, with an answer that is true when it was ours
VERBS = {
    "delete": lambda store, lease: store.delete([lease])[0],
    "delete with the next reserve": lambda store, lease: not store.reserve(["none"], TAG, 1, [lease]).refused,
    "release": lambda store, lease: store.release(lease, 5.0, "u", "exceptions"),
    "give_back": lambda store, lease: store.give_back([lease])[0],
    "renew": lambda store, lease: store.renew([lease])[0],
    "fail": lambda store, lease: store.fail(lease, "u", record()),
    "quarantine": lambda store, lease: store.quarantine(lease, "json"),
    "reclaim": lambda store, lease: bool(store.reclaim(["default"], TAG, 600.0, known=())),
}


def record() -> dict[str, Any]:
    about = {"id": "u", "name": "J", "queue": "default", "connection": "default", "attempts": 1}
    return {**about, "payload": RAW, "exception": "x"}


def pushed(shared: Shared) -> None:
    shared.store.clock = f"{T}.0"
    shared.store.push("default", new_jobs(RAW.encode()))


@pytest.fixture(params=VERBS)
def verb(request):
    return VERBS[request.param]


#: one of them: that each is refused once Laravel has the job, the first test of them says of all
some_verb = pytest.mark.by_turns("verb")


# Ours


def test_what_we_hold_laravel_does_not_take_until_the_lease_has_ended(shared, talk):
    pushed(shared)
    shared.reserved(at=T + 0.5)

    # Ours is rounded up: 90 seconds at least.
    early, late = (talk.ask("pop", now=T + LEASE + later, queue="default") for later in (0, 1))

    assert (None, 2) == (early["id"], late["attempts"])


def test_what_we_renew_laravel_does_not_take(shared, talk):
    pushed(shared)
    lease, _ = shared.reserved(at=T)
    shared.store.clock = f"{T + 80}.0"

    assert [True] == shared.store.renew([lease])
    early, late = (talk.ask("pop", now=T + 80 + LEASE + later, queue="default") for later in (-1, 0))
    assert (None, 2) == (early["id"], late["attempts"])


def test_what_laravel_took_over_we_settle_no_more(shared, talk, verb):
    pushed(shared)
    lease, _ = shared.reserved(at=T)
    talk.ask("pop", now=T + LEASE, queue="default")
    theirs = shared.rows("jobs")

    assert not verb(shared.store, lease)
    assert (theirs, []) == (shared.rows("jobs"), shared.rows("failed_jobs"))
    assert (0, 0) == (shared.store.tallies("u").exceptions, shared.store.tallies("u").crashes)


@some_verb
def test_what_laravel_took_over_and_released_we_settle_no_more(shared, talk, verb):
    pushed(shared)
    lease, _ = shared.reserved(at=T)
    talk.ask("release", now=T + LEASE, queue="default", delay=0, **talk.ask("pop", now=T + LEASE, queue="default"))
    theirs = shared.rows("jobs")

    assert not verb(shared.store, lease)
    assert theirs == shared.rows("jobs")


@some_verb
def test_what_laravel_took_over_and_ended_we_settle_no_more(shared, talk, verb):
    pushed(shared)
    lease, _ = shared.reserved(at=T)
    talk.ask("delete", now=T + LEASE, queue="default", **talk.ask("pop", now=T + LEASE, queue="default"))

    assert not verb(shared.store, lease)
    assert [] == shared.rows("jobs") == shared.rows("failed_jobs")


def test_what_laravel_took_over_and_left_we_take_over_again(shared, talk):
    pushed(shared)
    old, _ = shared.reserved(at=T)
    talk.ask("pop", now=T + LEASE, queue="default")

    assert [] == shared.reserve(at=T + 2 * LEASE - 1)
    lease, found = shared.reserved(at=T + 2 * LEASE)
    assert (3, [False], [True]) == (found.attempts, shared.store.delete([old]), shared.store.delete([lease]))


# Theirs


def test_what_laravel_holds_we_do_not_take_until_its_lease_has_ended(shared, talk):
    talk.ask("push", now=T, queue="default", raw=RAW)
    talk.ask("pop", now=T, queue="default")

    assert [] == shared.reserve(at=T + LEASE - 0.1)
    assert 2 == shared.reserved(at=T + LEASE)[1].attempts


def test_what_laravel_holds_is_not_reclaimed_as_ours(shared, talk):
    talk.ask("push", now=T, queue="default", raw=RAW)
    talk.ask("pop", now=T, queue="default")

    assert not any(shared.store.reclaim(["default"], tag, 600.0, known=()) for tag in range(20))
    assert 1 == shared.store.sizes("default").reserved


@some_verb
def test_a_late_delete_of_laravels_ends_our_attempt_too(shared, talk, verb):
    """It asks for nothing but the row's number."""
    talk.ask("push", now=T, queue="default", raw=RAW)
    theirs = talk.ask("pop", now=T, queue="default")
    lease, _ = shared.reserved(at=T + LEASE)

    talk.ask("delete", now=T + LEASE, queue="default", **theirs)

    assert [] == shared.rows("jobs")
    assert not verb(shared.store, lease)
    assert [] == shared.rows("jobs") == shared.rows("failed_jobs")


@some_verb
def test_a_late_release_of_laravels_takes_our_attempt_away(shared, talk, verb):
    """The job is tried again, with the attempts that Laravel counted; ours is not settled, so not lost either."""
    talk.ask("push", now=T, queue="default", raw=RAW)
    theirs = talk.ask("pop", now=T, queue="default")
    lease, _ = shared.reserved(at=T + LEASE)

    talk.ask("release", now=T + LEASE, queue="default", delay=0, **theirs)

    assert not verb(shared.store, lease)
    assert [1] == [row["attempts"] for row in shared.rows("jobs")]
    assert 2 == shared.reserved(at=T + LEASE)[1].attempts


def test_what_laravel_reserved_by_a_clock_that_is_ahead_lasts_as_long_as_any_lease(shared, talk):
    talk.ask("push", now=T, queue="default", raw=RAW)
    talk.ask("pop", now=T + 3600, queue="default")

    assert [] == shared.reserve(at=T)
    assert [] == shared.reserve(at=T + LEASE - 1)
    assert 2 == shared.reserved(at=T + LEASE)[1].attempts
