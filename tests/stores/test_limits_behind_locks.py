"""A place is handed on although others have locked what the next job needs at its other limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import select, text

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.lease import NOTHING, Lease
from queuepool.payload.limits import NO_PART, PlaceAsked, holding
from queuepool.stores.factory import Stores
from queuepool.stores.limits import GRANT_LASTS, Admission
from tests.support.drivers import connection_of, opened
from tests.support.idle_transactions import LIMITS
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import Clock

A, B = PlaceAsked("a", NO_PART, 1), PlaceAsked("b=1", NO_PART, 1)
IN, AT_B = Admission(is_in=True), Admission(is_in=False, parked_at=B.key)
NAMES = ("first", "second", "third", "fourth")

pytestmark = pytest.mark.every_store("connection")


@pytest.fixture(params=["postgres", "mariadb"])
def connection(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of(request.param, request)


@pytest.fixture
def stores(connection: ConnectionSettings) -> Iterator[Stores]:
    with opened(connection) as found:
        yield found


@pytest.fixture
def clock(stores: Stores) -> Clock:
    """A place is kept for a fifth of a second, which a busy machine may need between two calls."""
    return Clock(stores.queue)


@pytest.fixture
def leases(stores: Stores, clock: Clock) -> list[Lease]:
    """The first holds the only place at one limit; the second is parked, as it needs that and one at another limit."""
    store = stores.queue
    store.push("default", new_jobs(*map(payload, NAMES)))
    leases = list(map(holding, store.reserve(["default"], store.join(), len(NAMES)).leases))
    assert IN == stores.limits.enter(leases[0], "first", [A])
    assert not stores.limits.enter(leases[1], "second", [A, B]).is_in
    return leases


@contextmanager
def locked(stores: Stores) -> Iterator[None]:
    """The row of the second limit's key, by another client."""
    limits = stores.client.tables.queuepool_limits.c
    with stores.client.engine.connect() as other:
        other.execute(text(f"SET SESSION {LIMITS[other.dialect.name]} = 0"))
        other.execute(text("BEGIN"))
        assert other.execute(select(limits.key).where(limits.key == B.key).with_for_update()).all()
        yield
        other.execute(text("ROLLBACK"))


def taken(stores: Stores) -> Lease:
    """The only job that is ready."""
    [lease] = stores.queue.reserve(["default"], stores.queue.join(), len(NAMES)).leases
    return holding(lease)


def test_a_job_whose_other_place_is_locked_gets_the_one_at_hand_and_asks_for_the_other_as_it_enters(stores, leases):
    with locked(stores):
        assert stores.queue.finish(leases[0], NOTHING)
        second = taken(stores)
        assert not stores.limits.enter(leases[2], "third", [A]).is_in, "the place is kept"

    assert IN == stores.limits.enter(second, "second", [B, A])
    assert stores.queue.finish(second, NOTHING)
    assert IN == stores.limits.enter(taken(stores), "third", [A])


def test_a_job_that_is_refused_the_other_place_hands_on_the_one_it_was_kept(stores, leases):
    _, _, third, fourth = leases
    assert IN == stores.limits.enter(third, "third", [B])
    assert not stores.limits.enter(fourth, "fourth", [A]).is_in
    with locked(stores):
        assert stores.queue.finish(leases[0], NOTHING)
        second = taken(stores)

    assert AT_B == stores.limits.enter(second, "second", [A, B])
    assert IN == stores.limits.enter(taken(stores), "fourth", [A])
    assert 1 == stores.queue.limits.parked("default")


def test_a_key_that_was_forgotten_meanwhile_keeps_nobody_waiting(stores, leases):
    first, _, third, _ = leases
    stores.limits.enter(third, "third", [B])
    assert stores.queue.finish(third, NOTHING)
    assert stores.queue.finish(first, NOTHING)

    assert IN == stores.limits.enter(taken(stores), "second", [A, B])


@pytest.mark.usefixtures("clock")
def test_a_key_that_a_job_waits_at_since_this_moment_is_not_forgotten(stores):
    store = stores.queue
    store.push("default", new_jobs(*map(payload, NAMES[:2])))
    first, second = map(holding, store.reserve(["default"], store.join(), 2).leases)
    assert IN == stores.limits.enter(first, "first", [A, B])
    assert not stores.limits.enter(second, "second", [A, B]).is_in
    assert store.limits.set("b", 0)
    assert store.finish(first, NOTHING)
    assert store.limits.set("b", 1)
    stores.limits.sweep()

    assert IN == stores.limits.enter(taken(stores), "second", [A, B])


def test_a_place_that_was_kept_too_long_is_taken_over_while_another_of_its_job_is_locked(stores, clock, leases):
    first, _, third, fourth = leases
    assert stores.queue.finish(first, NOTHING)
    assert AT_B == stores.limits.enter(fourth, "fourth", [B])
    clock.advance(2 * GRANT_LASTS)
    with locked(stores):
        assert IN == stores.limits.enter(third, "third", [A])

    assert not stores.limits.enter(taken(stores), "second", [A, B]).is_in
    assert IN == stores.limits.enter(taken(stores), "fourth", [B])
