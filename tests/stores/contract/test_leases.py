"""A lease lasts as long as its reservation or renewal says."""

from __future__ import annotations

import pytest

from tests.support.samples import attempted, payload
from tests.support.store_contract import OURS, QUEUES, RETRY_AFTER, THEIRS, drained, reserved

pytestmark = pytest.mark.usefixtures("at")


def test_a_lease_that_ended_makes_the_job_ready_and_counts_the_attempt(store, at):
    reserved(store, payload("a"))

    at.advance(RETRY_AFTER - 0.5)
    assert [] == drained(store)
    at.advance(1.0)
    assert [attempted(payload("a"), 2)] == drained(store)


def test_a_renewed_lease_lasts_from_then_on(store, at):
    leases = [*reserved(store, payload("a")), *reserved(store, payload("b"), queue="high")]
    at.advance(60.0)

    assert [True, True] == store.renew(leases)
    at.advance(RETRY_AFTER - 0.5)
    assert [] == drained(store, *QUEUES)
    at.advance(1.0)
    assert 2 == len(drained(store, *QUEUES))


def test_a_renewed_job_is_still_settled_by_its_receipt(store, at):
    leases = reserved(store, payload("a"))
    at.advance(60.0)
    store.renew([leases[0]])

    assert [True] == store.delete(leases)


def test_a_renewed_lease_is_still_its_workers(store):
    leases = reserved(store, payload("a"))
    store.renew([leases[0]])

    assert [[], leases] == [store.reclaim(["default"], tag, 10.0, known=()) for tag in (THEIRS, OURS)]


def test_a_lease_that_ended_is_not_renewed(store, at):
    ended, living = reserved(store, payload("a"))[0], reserved(store, payload("b"))[0]
    store.delete([ended])

    assert [False, True] == store.renew([ended, living])
    assert 1 == store.sizes("default").total


def test_a_renewal_of_nothing_is_no_error(store):
    assert [] == store.renew([])
