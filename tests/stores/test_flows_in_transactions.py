"""Flows that are written in the application's own transaction, or after it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from queuepool import Flow, chain, group, job
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from tests.stores.test_within import database, own, queue, some_connection, sql  # noqa: F401
from tests.support.graphs import ended, taken


@job("flows_within.step")
def step(number: int) -> None: ...


def run_all(built: Stores) -> int:
    """End all jobs until none is ready; returns how many there were."""
    ran = 0
    while found := taken(built.queue):
        for lease in found.values():
            assert ended(built.queue, lease)
            ran += 1
    return ran


@some_connection
def test_a_flow_begins_with_the_commit(sql: Stores, queue: Queue, own: Any):  # noqa: F811
    flow = Flow("ä album")
    first = flow.add(step.call(1))
    flow.add(step.call(2), after=first)
    flow.add(step.call(3), after=first, on="failure")
    found = flow.dispatch(within=own)
    others = group([step.call(number) for number in range(80)], then=step.call(80)).dispatch(within=own)
    assert 0 == queue.size()
    own.commit()

    assert 81 == queue.size()
    assert 83 == run_all(sql)
    assert ("done", "done") == (sql.flows.find(found).state, sql.flows.find(others).state)


@some_connection
def test_a_flow_is_gone_with_a_transaction_that_is_rolled_back(sql: Stores, queue: Queue, own: Any):  # noqa: F811
    found = chain(step.call(1), step.call(2)).dispatch(within=own)
    own.rollback()

    assert 0 == queue.size()
    assert None is sql.flows.find(found)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_flow_is_written_after_the_commit(sql: Stores, queue: Queue):  # noqa: F811
    with Session(create_engine("sqlite://")) as session:
        found = chain(step.call(1), step.call(2)).dispatch(after_commit=session)
        assert 0 == queue.size()
        session.commit()
        assert 1 == queue.size()
        lost = chain(step.call(3)).dispatch(after_commit=session)
        session.rollback()

    assert 2 == run_all(sql)
    assert ("done", None) == (sql.flows.find(found).state, sql.flows.find(lost))
