"""A reserve in PostgreSQL that ends members of flows takes the round trips of one that ends plain jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.lease import Lease
from queuepool.stores.contract import Reservation
from queuepool.stores.factory import Stores
from tests.stores.test_reserving_in_postgresql import turns_of
from tests.support.drivers import opened
from tests.support.eventually import eventually
from tests.support.graphs import Drawn, as_done, taken
from tests.support.samples import new_jobs
from tests.support.store_contract import OURS

_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
#: few that count in the row of the member that follows, many that count in its stripes
FEW, MANY = 2, 120


@pytest.fixture
def stores(postgres_url: str) -> Iterator[Stores]:
    with opened(ConnectionSettings(url=postgres_url), patience=60.0) as stores:
        yield stores


@pytest.fixture
def others(postgres_url: str) -> Iterator[Stores]:
    with opened(ConnectionSettings(url=postgres_url)) as stores:
        yield stores


def begun(stores: Stores, graph: dict[str, Any], **about: Any) -> Drawn:
    drawn = Drawn(graph, **about)
    stores.flows.write(drawn.flow, drawn.members)
    return drawn


def fan_in(count: int) -> dict[str, Any]:
    names = [f"m{number}" for number in range(count)]
    return dict.fromkeys(names, ()) | {"merge": names}


def letters(stores: Stores, drawn: Drawn) -> dict[str, str]:
    found = {one.number: one.letter for one in stores.flows.members(drawn.id)}
    return {name: found[number] for name, number in drawn.numbers.items()}


def reserve(stores: Stores, done: list[Lease], most: int = 10) -> Reservation:
    return stores.queue.reserve(["default"], OURS, most, [as_done(lease) for lease in done])


@pytest.mark.by_turns("graph")
@pytest.mark.parametrize(
    "graph", [fan_in(MANY), fan_in(40), {f"m{number}": [f"m{number - 1}"] if number else () for number in range(40)}],
    ids=["stripes", "fan-in", "chain"],
)  # fmt: skip
def test_a_reserve_that_ends_members_takes_a_round_trip_and_the_commit(stores, graph):
    begun(stores, graph)
    held = [reserve(stores, [], 1).leases]

    def go_on() -> None:
        found = reserve(stores, held[-1], 1)
        assert not found.flows, "a flow whose next member was taken is not looked at"
        held.append(found.leases)

    for _ in range(10):  # until the driver has prepared its statements
        go_on()
    assert [2] * 3 == [turns_of(stores.client, go_on) for _ in range(3)]
    assert [1] * 14 == list(map(len, held))


def beside(stores: Stores, others: Stores, change: Callable[[Any], object], done: list[Lease]) -> Reservation:
    """A reserve that waits for what another transaction has changed, and goes on once that is committed."""
    found = list[Reservation]()
    waiting = threading.Thread(target=lambda: found.append(reserve(stores, done)))

    def work(connection: Any) -> None:
        change(connection)
        waiting.start()
        eventually(lambda: connection.exec_driver_sql(_WAITS).scalar_one())

    others.client.transaction(work)
    waiting.join()
    return found[0]


@pytest.mark.by_turns("count")
@pytest.mark.parametrize("count", [FEW, MANY])
def test_of_two_that_end_the_last_members_at_once_the_second_pushes_what_follows(stores, others, count):
    drawn = begun(stores, fan_in(count))
    leases = taken(stores.queue)
    last = [leases.pop("m0"), leases.pop("m1")]  # of one stripe
    reserve(stores, list(leases.values()))

    def end_first(connection: Any) -> None:
        held = others.queue.leases._if_held_within
        member = as_done(last[0])
        held(connection, [member], lambda c, ids: others.flows.settle_done(c, [member.member]))

    found = beside(stores, others, end_first, last[1:])
    assert ["merge"] == [name for name, letter in letters(stores, drawn).items() if letter == "r"]
    assert 1 == len(found.leases)


@pytest.mark.by_turns("count")
@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_flow_that_is_cancelled_while_a_reserve_waits_for_its_row_starts_nothing(stores, others, count):
    drawn = begun(stores, fan_in(count))
    leases = list(taken(stores.queue).values())
    found = beside(stores, others, lambda c: others.flows._stop(c, drawn.id, "cancelled"), leases)

    assert [] == found.leases
    assert "c" == letters(stores, drawn)["merge"]
    assert ["cancelled"] == [end.state for end in stores.flows.after(found.flows)]


def test_a_member_that_is_cancelled_while_a_reserve_waits_for_it_is_not_counted(stores, others):
    drawn = begun(stores, fan_in(FEW))
    leases = list(taken(stores.queue).values())
    cancelled = f"UPDATE queuepool_members SET state = 'c' WHERE n = '{drawn.numbers['m0']}'"
    beside(stores, others, lambda connection: connection.exec_driver_sql(cancelled), leases)

    assert {"m0": "c", "m1": "d", "merge": "w"} == letters(stores, drawn)


def test_a_copy_of_a_member_counts_once_beside_it(stores):
    drawn = begun(stores, fan_in(FEW))
    stores.queue.push("default", new_jobs(drawn.members[0].payload))
    found = stores.queue.reserve(["default"], OURS, 10).leases
    first, _, copy = found
    reserve(stores, [first, copy])

    assert {"m0": "d", "m1": "r", "merge": "w"} == letters(stores, drawn)


def test_what_skips_a_member_goes_on_in_the_same_reserve(stores):
    graph = {"a": (), "alarm?f": ["a"], "after": ["alarm?f"], "end?a": ["alarm?f"]}
    drawn = begun(stores, graph)
    found = reserve(stores, reserve(stores, []).leases)

    assert {"a": "d", "alarm?f": "k", "after": "k", "end?a": "r"} == letters(stores, drawn)
    assert 1 == len(found.leases)


def test_what_skips_a_member_locks_the_row_of_its_flow_after_those_that_follow(stores, others):
    graph = {"a": (), "b": (), "merge": ["a"], "alarm?f": ["a"], "end?a": ["alarm?f", "b"]}
    drawn = begun(stores, graph)
    leases = taken(stores.queue)

    def fail(connection: Any) -> None:
        """As the end of b, which has counted down what follows it, and then stops the flow."""
        end = f"SELECT FROM queuepool_members WHERE n = '{drawn.numbers['end?a']}' FOR UPDATE"
        connection.exec_driver_sql(end)
        waiting.start()
        eventually(lambda: connection.exec_driver_sql(_WAITS).scalar_one())
        connection.exec_driver_sql("SET LOCAL lock_timeout = '300ms'")
        connection.exec_driver_sql("UPDATE queuepool_flows SET state = 'failing'")

    for one in (stores, others):  # no deadlock is broken
        one.client.ask(lambda connection: connection.exec_driver_sql("SET deadlock_timeout = '30s'"))
    waiting = threading.Thread(target=reserve, args=(stores, [leases["a"]]))
    others.client.transaction(fail)
    waiting.join()
    assert {"a": "d", "b": "r", "merge": "c", "alarm?f": "k", "end?a": "w"} == letters(stores, drawn)


def test_a_lease_that_a_steward_renews_while_a_reserve_waits_for_it_ends_all_the_same(stores, others):
    drawn = begun(stores, fan_in(FEW))
    renewed = "UPDATE jobs SET reserved_at = reserved_at + 1"
    leases = list(taken(stores.queue).values())
    found = beside(stores, others, lambda connection: connection.exec_driver_sql(renewed), leases)

    assert ([], 1) == (found.refused, len(found.leases))
    assert {"m0": "d", "m1": "d", "merge": "r"} == letters(stores, drawn)
    assert 1 == stores.queue.sizes("default").total


def test_a_flow_that_was_begun_by_an_earlier_version_goes_on(stores):
    drawn = begun(stores, fan_in(MANY))
    number = drawn.numbers["merge"]
    stores.client.transaction(lambda connection: as_before_blocks(connection, number))
    leases = list(taken(stores.queue).values())
    reserve(stores, leases[: MANY // 2], 0)
    found = reserve(stores, leases[MANY // 2 :])

    assert 1 == len(found.leases)
    assert "r" == letters(stores, drawn)["merge"]


def as_before_blocks(connection: Any, number: str) -> None:
    """Each hundredth member in one stripe."""
    connection.exec_driver_sql(f"DELETE FROM queuepool_joins WHERE n = '{number}'")
    connection.exec_driver_sql(
        f"INSERT INTO queuepool_joins (flow, n, stripe, open, bad) SELECT flow, '{number}', CAST(n AS integer) %% 100, "
        f"count(*), 0 FROM queuepool_members WHERE n <> '{number}' GROUP BY flow, CAST(n AS integer) %% 100"
    )
    before = f"UPDATE queuepool_members SET striped = 1, open = 100 WHERE n = '{number}'"
    connection.exec_driver_sql(before)


def test_a_delay_may_be_as_long_as_the_columns_of_the_table_hold(stores):
    wider = "ALTER TABLE jobs ALTER available_at TYPE bigint, ALTER created_at TYPE bigint"
    stores.client.ask(lambda connection: connection.exec_driver_sql(wider))
    drawn = Drawn({"a": (), "b": ["a"]})
    a, b = drawn.members
    stores.flows.write(drawn.flow, [a, b._replace(delay=3e9)])
    found = reserve(stores, reserve(stores, []).leases)

    assert [] == found.refused
    assert 1 == stores.queue.sizes("default").delayed


def test_plain_jobs_beside_members_end_with_them(stores):
    drawn = begun(stores, {"a": (), "b": ["a"]})
    stores.queue.push("default", new_jobs(b'{"id": "plain"}'))
    done = stores.queue.reserve(["default"], OURS, 10).leases
    found = stores.queue.reserve(["default"], OURS, 10, [as_done(done[0]), done[1]])

    assert ([], 1) == (found.refused, len(found.leases))
    assert {"a": "d", "b": "r"} == letters(stores, drawn)
    assert 1 == stores.queue.sizes("default").total
