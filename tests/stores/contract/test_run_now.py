"""Delayed jobs that move within their own queue are due now, by the store's own clock."""

from __future__ import annotations

from queuepool.stores.contract import MovedJob, ShelfJob
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS


def moved(jobs: list[ShelfJob]) -> list[MovedJob]:
    return [MovedJob(job, job.payload) for job in jobs]


def test_they_are_ready_at_once_and_stay_as_many_as_they_are(store):
    store.push("default", new_jobs(payload("a"), payload("a"), payload("b")), delay=600.0)
    store.push("default", new_jobs(payload("c")), delay=600.0)
    jobs = [job for job in store.walk("default", ("delayed",)).page(9) if b'"uuid":"c"' not in job.payload]

    assert [True] * 3 == store.move("default", moved(jobs), "default")
    assert ["a", "a", "b"] == sorted(ids(store.reserve(["default"], OURS, 9).leases))
    assert 1 == store.sizes("default").delayed
    assert [False] * 3 == store.move("default", moved(jobs), "default"), "a worker has them"


def test_one_that_is_due_already_goes_with_the_others(store):
    store.push("default", new_jobs(payload("a")), delay=0.001)
    store.push("default", new_jobs(payload("b")), delay=600.0)
    jobs = store.walk("default", ("delayed", "ready")).page(9)

    assert 2 == len(jobs)
    assert True in store.move("default", moved([job for job in jobs if job.shelf == "delayed"]), "default")
    assert {"a", "b"} == set(ids(store.reserve(["default"], OURS, 9).leases))
