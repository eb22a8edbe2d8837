"""Delayed jobs become ready when they are due, as often as they were pushed."""

from __future__ import annotations

import pytest

from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, QUEUES, drained, reserved

pytestmark = pytest.mark.usefixtures("at")


def test_what_is_due_is_ready_after_a_stage_and_the_rest_is_not(store, at):
    store.push("default", new_jobs(payload("a")), delay=5.0)
    store.push("high", new_jobs(payload("b")), delay=65.0)
    at.advance(5.0)

    assert at.now == store.stage(QUEUES).now
    assert (1, 1) == (store.sizes("default").ready, store.sizes("high").delayed)


def test_the_earlier_of_two_is_announced_however_many_digits_they_have(store, at):
    at.advance(-10.0)
    store.push("high", new_jobs(payload("a")), delay=5.0)
    store.push("default", new_jobs(payload("b")), delay=15.0)

    assert pytest.approx(5.0) == store.reserve(QUEUES, OURS, 1).next_due


def test_where_nothing_waits_nothing_is_announced(store):
    staged = store.stage(QUEUES)

    assert (0, None) == (staged.moved, staged.next_due)


def test_of_hundreds_that_are_staged_at_once_each_is_ready_once_and_in_its_order(store, at):
    names = [f"{number:03}" for number in range(250)]
    store.push("default", new_jobs(*(payload(name) for name in names)), delay=10.0)
    at.advance(10.0)

    store.stage(["default"])

    assert 250 == store.sizes("default").ready
    assert names == ids(store.reserve(["default"], OURS, 1_000).leases)


@pytest.mark.fault("F64")
def test_identical_payloads_stay_as_many_as_they_are(store, at):
    store.push("default", new_jobs(payload("a"), payload("a")), delay=1.0)
    store.push("default", new_jobs(payload("a")), delay=1.0)
    at.advance(1.0)
    leases = store.reserve(["default"], OURS, 9).leases

    assert 3 == len(set(leases))
    assert [True, True, True] == store.delete(leases)


def test_two_payloads_of_no_bytes_can_be_delayed(store):
    store.push("default", new_jobs(b"", b""), delay=5.0)

    assert 2 == store.sizes("default").delayed


@pytest.mark.fault("F64")
def test_identical_payloads_keep_the_delays_that_each_was_given(store, at):
    for delay in (1.0, 60.0, 30.0):
        store.push("default", new_jobs(payload("a")), delay)

    taken = []
    for seconds in (1.0, 29.0, 30.0):
        at.advance(seconds)
        taken.append(len(drained(store)))

    assert [1, 1, 1] == taken


@pytest.mark.fault("F64")
def test_identical_payloads_released_for_one_moment_stay_as_many_as_they_are(store, at):
    for lease in reserved(store, payload("a"), payload("a")):
        store.release(lease, 5.0, "a")
    at.advance(5.0)

    assert 2 == len(drained(store))
