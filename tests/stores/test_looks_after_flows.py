"""When a steward looks after flows: as it begins, and as long as members of some begin or end in its pool."""

from __future__ import annotations

import time

import pytest

from queuepool.alerts.stalled import StalledFlows
from queuepool.board.board import Board
from queuepool.board.counts import counts_of
from queuepool.board.marks import flow_marker
from queuepool.board.meters import MeterMemory, SlotMeters
from queuepool.board.open_alerts import OpenAlert
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.events import Event
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import decode
from queuepool.payload.members import FLOW
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settlement, Settler
from queuepool.settlement.verdict import Delete, Fail, Release
from queuepool.steward.flows import LookAtFlows, MeasureFlows
from queuepool.steward.limits import MeasureLimits
from queuepool.steward.measure import PoolMeters
from queuepool.stores.factory import Stores
from queuepool.stores.flows import FlowEnd
from queuepool.stores.redis.flows import RedisFlows
from queuepool.stores.sql.migrate import migrate
from queuepool.unix.signals import WorkerSignals
from tests.support.drivers import connection_of, opened
from tests.support.eventually import eventually
from tests.support.graphs import Drawn, as_done, ended, taken
from tests.support.samples import new_jobs, payload


@pytest.fixture
def settler(stores) -> Settler:
    return settler_of(stores)


def settler_of(stores: Stores) -> Settler:
    listeners = Listeners()
    listeners.add(Event, lambda event: None)
    outage = Outage(WorkerSignals(), listeners, announces=False)
    return Settler(stores.queue, outage, listeners, ConnectionSettings(name="main"))


class Looks(RedisFlows):
    """Counts the looks."""

    looks = 0

    def look(self) -> list[FlowEnd]:
        self.looks += 1
        return super().look()


def test_a_steward_looks_when_it_begins_and_often_once_members_have_run(stores, settler):
    header, begun = Board.private().header, time.monotonic()
    flows = Looks(stores.client, stores.flows._keys, lambda: "")
    chore = LookAtFlows(flows, header, settler)

    def looks(*moments: float) -> int:
        before = flows.looks
        for moment in moments:
            chore.run(begun + moment)
        return flows.looks - before

    assert 1 == looks(0, 1, 60, 599)
    assert 1 == looks(600, 601)
    header.flows_at = begun + 610
    assert 3 == looks(611, 612, 613, 613.5)
    assert 1 == looks(700, 710)


def test_what_a_lost_host_has_left_over_is_gone_on_with_by_the_next_steward(stores, settler):
    drawn = Drawn({"a": [], "b": ["a"]}, deadline=0.1)
    stores.flows.write(drawn.flow, drawn.members)
    over = time.monotonic() + 0.2
    eventually(lambda: time.monotonic() > over)
    LookAtFlows(stores.flows, Board.private().header, settler).run(time.monotonic())

    assert "expired" == stores.flows.find(drawn.id).state


def test_a_steward_that_finds_flows_under_way_has_them_followed(stores, settler):
    header, now = Board.private().header, time.monotonic()
    drawn = Drawn({"a": []})
    stores.flows.add(drawn.flow, drawn.members)
    chore = LookAtFlows(stores.flows, header, settler)
    chore.run(now)
    assert not header.flows_at, "it has not begun"
    stores.flows.start(drawn.id)
    LookAtFlows(stores.flows, header, settler).run(now)

    assert pytest.approx(now) == header.flows_at


def test_a_flow_that_is_broken_stops_the_look_for_no_other(stores, settler):
    whole, broken = Drawn({"a": []}, deadline=0.1), Drawn({"a": []}, deadline=0.05)
    for one in (whole, broken):
        stores.flows.write(one.flow, one.members)
    stores.client.command("DEL", stores.flows._keys.flow(broken.id))
    stores.client.command("SET", stores.flows._keys.flow(broken.id), "odd")
    now = time.monotonic()
    eventually(lambda: time.monotonic() > now + 0.3)
    flows = Looks(stores.client, stores.flows._keys, lambda: "")
    chore = LookAtFlows(flows, Board.private().header, settler)
    with pytest.raises(StoreError, match="WRONGTYPE"):
        chore.run(now)
    chore.run(now + 1.0)

    assert ("expired", 1) == (stores.flows.find(whole.id).state, flows.looks)


def test_a_pool_that_runs_no_members_needs_no_right_to_flows(stores, settler):
    client = stores.client
    client.command("ACL", "SETUSER", "default", "resetkeys", "~queues:*")
    try:
        header = Board.private().header
        chore = LookAtFlows(stores.flows, header, settler)
        chore.run(time.monotonic())
        header.flows_at = time.monotonic()
        with pytest.raises(StoreDenied):
            chore.run(time.monotonic() + 5)
    finally:
        client.command("ACL", "SETUSER", "default", "allkeys")


def without_tables(stores: Stores) -> None:
    """As of a database from before there were flows."""
    for name in ("members", "flows", "edges", "joins"):
        stores.client.transaction(lambda made, name=name: made.exec_driver_sql(f"drop table queuepool_{name}"))


def test_a_steward_settles_done_members_though_the_tables_came_after_its_look(request):
    with opened(connection_of("sqlite", request)) as stores:
        without_tables(stores)
        settler = settler_of(stores)
        LookAtFlows(stores.flows, Board.private().header, settler).run(time.monotonic())
        migrate(stores.client)
        drawn = Drawn({"a": [], "b": ["a"]})
        stores.flows.write(drawn.flow, drawn.members)

        assert settler.delete([as_done(lease) for lease in taken(stores.queue).values()])
        assert ["b"] == list(taken(stores.queue))


@pytest.mark.parametrize("verdict", [Delete(), Fail(ValueError("no")), None], ids=["done", "failed", "given up"])
def test_a_member_ends_as_a_plain_job_where_there_are_no_tables_for_flows(request, verdict):
    with opened(connection_of("sqlite", request)) as stores:
        without_tables(stores)
        settler, [member] = settler_of(stores), Drawn({"a": []}).members
        stores.queue.push("default", new_jobs(member.payload))
        [lease] = taken(stores.queue).values()

        if verdict is None:
            assert settler.delete([as_done(lease)])
        else:
            assert settler.settle(Settlement(lease, decode(lease.receipt, lease.attempts), verdict))
        assert 0 == stores.queue.sizes("default").total
        assert len(list(stores.failed.page())) == isinstance(verdict, Fail)


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


def test_flows_are_measured_once_members_of_some_have_run(stores):
    drawn = Drawn({"a": [], "b": ["a"], "c": ["a"]})
    stores.flows.write(drawn.flow, drawn.members)
    header, memory = Board.private().header, MeterMemory.new(1, 0)
    measure, board = MeasureFlows(stores.flows, header, PoolMeters(memory, [])), Board.private()
    board.meters = memory
    measure.run(time.monotonic())
    assert 0.0 == counts_of(board).flows.measured_at

    flow_marker(header)()
    measure.run(time.monotonic())
    found = counts_of(board).flows
    assert (1, 2) == (found.under_way, found.waiting)
    assert 0.0 < found.since <= found.measured_at


def test_a_store_that_counts_for_too_long_is_not_asked_again_at_once():
    """Neither for flows nor for limits."""
    header = Board.private().header
    flow_marker(header)()
    header.limits_at = time.monotonic()
    with opened(ConnectionSettings(url="redis://127.0.0.1:1/0")) as away:
        away.limits.in_use = True
        meters = PoolMeters(MeterMemory.new(1, 1), [])
        for measure in (
            MeasureFlows(away.flows, header, meters),
            MeasureLimits(away.limits, header, meters, time.time),
        ):
            with pytest.raises(StoreDown):
                measure.run(0.0)
            measure.run(10.0)
            with pytest.raises(StoreDown):
                measure.run(20.0)


def test_the_end_of_a_flow_counts_in_the_meters_of_who_has_ended_it():
    memory, board = MeterMemory.new(1, 0), Board.private()
    board.meters = memory
    meters = SlotMeters(memory, board.slots[0])
    meters.enter()
    for state in ("done", "done", "failed"):
        meters.count_flow(state)
    PoolMeters(memory, []).count_flow("expired")

    assert {"done": 2, "failed": 1, "cancelled": 0, "expired": 1} == counts_of(board).flows.ended


def test_a_flow_is_stalled_for_as_long_as_nothing_of_it_begins_or_ends(stores):
    header = Board.private().header
    stalled, drawn = StalledFlows(stores.flows, header), Drawn({"a": [], "b": ["a"]})
    stores.flows.write(drawn.flow, drawn.members)
    assert {} == stalled.look(1000.0)

    flow_marker(header)()
    looks = [stalled.look(at) for at in (1000.0, 1010.0, 1500.0)]
    assert [{drawn.id: (0.0, "drawn")}, {drawn.id: (0.0, "drawn")}, {drawn.id: (500.0, "drawn")}] == looks
    [lease] = taken(stores.queue).values()
    ended(stores.queue, lease)
    assert {drawn.id: (0.0, "drawn")} == stalled.look(2000.0)
    [lease] = taken(stores.queue).values()
    ended(stores.queue, lease)
    assert {} == stalled.look(3000.0)


def test_the_next_steward_goes_on_with_what_is_stalled_and_knows_nothing_before_it_could_look(stores):
    header, drawn = Board.private().header, Drawn({"a": [], "b": ["a"]})
    stores.flows.write(drawn.flow, drawn.members)
    raised = OpenAlert("stalled", drawn.id, 70.0, 60.0, since=time.time() - 10.0)
    stalled = StalledFlows(stores.flows, header, [raised])
    stores.client.command("ACL", "SETUSER", "default", "-zrange")
    try:
        with pytest.raises(StoreDenied):
            stalled.look(1000.0)
        assert None is stalled.look(1010.0)
    finally:
        stores.client.command("ACL", "SETUSER", "default", "+zrange")

    assert (70.0, "drawn") == pytest.approx(stalled.look(1060.0)[drawn.id], abs=5.0)
    [lease] = taken(stores.queue).values()
    ended(stores.queue, lease)
    assert {drawn.id: (0.0, "drawn")} == stalled.look(2000.0)
