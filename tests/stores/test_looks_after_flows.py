"""When a steward looks after flows: as long as members of some begin or end in its pool, else never."""

from __future__ import annotations

import time

import pytest

from queuepool.board.board import Board
from queuepool.board.marks import flow_marker
from queuepool.config.settings import ConnectionSettings
from queuepool.events import Event
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import decode
from queuepool.payload.members import FLOW
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settlement, Settler
from queuepool.settlement.verdict import Delete, Release
from queuepool.steward.flows import LookAtFlows
from queuepool.unix.signals import WorkerSignals
from tests.support.eventually import eventually
from tests.support.graphs import Drawn, taken
from tests.support.samples import new_jobs, payload


@pytest.fixture
def settler(stores) -> Settler:
    listeners = Listeners()
    listeners.add(Event, lambda event: None)
    outage = Outage(WorkerSignals(), listeners, announces=False)
    return Settler(stores.queue, outage, listeners, ConnectionSettings(name="main"))


def test_a_steward_looks_only_once_members_have_run(stores, settler):
    drawn = Drawn({"a": [], "b": ["a"]}, deadline=0.1)
    stores.flows.write(drawn.flow, drawn.members)
    over = time.monotonic() + 0.2
    eventually(lambda: time.monotonic() > over)
    header = Board.private().header
    looks = LookAtFlows(stores.flows, header, settler)
    for seconds in (0, 1, 1000):
        looks.run(time.monotonic() + seconds)
    assert "running" == stores.flows.find(drawn.id).state

    flow_marker(header)()
    looks.run(time.monotonic() + 2000)
    assert "expired" == stores.flows.find(drawn.id).state


@pytest.mark.parametrize(("verdict", "marks"), [(Delete(), 2), (Release(0.0), 0)])
def test_the_end_of_a_member_marks_that_there_are_flows_whoever_has_its_lease(stores, settler, verdict, marks):
    found = list[int]()
    settler.mark_flows = lambda: found.append(1)
    drawn = Drawn({"a": []})
    stores.flows.write(drawn.flow, drawn.members)
    [lease] = taken(stores.queue).values()
    for _ in range(2):
        settler.settle(Settlement(lease, decode(lease.receipt), verdict))

    assert marks == len(found)


def test_the_end_of_another_job_marks_nothing(stores, settler):
    found = list[int]()
    settler.mark_flows = lambda: found.append(1)
    stores.queue.push("default", new_jobs(payload("plain")))
    [lease] = taken(stores.queue).values()
    assert FLOW.encode() not in lease.receipt
    settler.settle(Settlement(lease, decode(lease.receipt), Delete()))

    assert [] == found
