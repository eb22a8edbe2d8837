"""Jobs are stored in their order, at once or for later."""

from __future__ import annotations

import pytest

from tests.support.samples import attempted, ids, new_jobs, payload
from tests.support.store_contract import EMPTY, OURS, drained

pytestmark = pytest.mark.usefixtures("at")


def test_jobs_are_reserved_in_the_order_they_were_pushed(store):
    store.push("default", new_jobs(payload("a"), payload("b")))
    store.push("default", new_jobs(payload("c")))

    assert ["a", "b", "c"] == ids(store.reserve(["default"], OURS, 5).leases)


@pytest.mark.thorough("2,500 jobs; test_more_jobs_than_one_call_takes_keep_their_order_and_states")
def test_a_push_of_thousands_keeps_every_job_in_its_order(store):
    names = [f"job-{number}" for number in range(2_500)]

    store.push("default", new_jobs(*(payload(name) for name in names)))

    assert names == ids(store.reserve(["default"], OURS, 5_000).leases)


@pytest.mark.thorough("test_a_delayed_job_is_reserved_when_its_delay_is_over_and_not_before")
def test_thousands_of_delayed_jobs_are_all_kept(store):
    store.push("default", new_jobs(*(payload(f"job-{number}") for number in range(2_500))), delay=10.0)

    assert 2_500 == store.sizes("default").delayed


def test_a_delayed_job_is_reserved_when_its_delay_is_over_and_not_before(store, at):
    store.push("default", new_jobs(payload("a")), delay=3.0)

    at.advance(2.75)
    assert [] == drained(store)
    at.advance(0.25)
    assert [attempted(payload("a"))] == drained(store)


def test_a_push_of_nothing_changes_nothing(store):
    store.push("default", new_jobs())

    assert EMPTY == store.sizes("default")
