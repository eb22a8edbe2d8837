"""A reserve in PostgreSQL: BEGIN and all that one statement can do in one round trip, then COMMIT."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.stores.factory import Stores
from queuepool.stores.sql.client import SqlClient
from tests.support.databases import DatabaseServer
from tests.support.drivers import opened
from tests.support.eventually import eventually
from tests.support.samples import ids, new_jobs, payload

OURS = 7
_WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {}"
_END = "SELECT pg_terminate_backend({})"


@pytest.fixture
def stores(postgres_url: str) -> Iterator[Stores]:
    with opened(ConnectionSettings(url=postgres_url), patience=60.0) as stores:
        yield stores


@pytest.fixture
def others(postgres_url: str) -> Iterator[Stores]:
    with opened(ConnectionSettings(url=postgres_url)) as stores:
        yield stores


def driver_of(client: SqlClient) -> Any:
    return client.ask(lambda connection: connection.connection.driver_connection)


def turns_of(client: SqlClient, work: Callable[[], object]) -> int:
    """How often the client has waited for the server in this, by libpq's own trace of the messages."""
    connection = driver_of(client).pgconn
    with tempfile.TemporaryFile("w+") as messages:
        connection.trace(messages.fileno())
        work()
        connection.untrace()
        messages.seek(0)
        return "".join(re.findall(r"(?m)^[\d-]+ [\d:.]+\t([FB])\t", messages.read())).count("FB")


@pytest.mark.by_turns("has_done")
@pytest.mark.parametrize(
    ("queues", "limit", "turns"), [(["default"], 2, 2), (["high", "default"], 2, 3), (["default", "high"], 2, 2)]
)
@pytest.mark.parametrize("has_done", [True, False])
def test_a_reserve_takes_a_round_trip_and_the_commit_and_one_for_each_queue_more(
    stores, queues, limit, turns, has_done
):
    stores.queue.push("default", new_jobs(*(payload(str(number)) for number in range(40))))
    held = [stores.queue.reserve(["default"], OURS, 2).leases]

    def reserve() -> None:
        held.append(stores.queue.reserve(queues, OURS, limit, held[-1] if has_done else []).leases)

    for _ in range(10):  # until the driver has prepared its statements, for each of which it takes one more, once
        reserve()
    assert [turns] * 3 == [turns_of(stores.client, reserve) for _ in range(3)]
    assert [limit] * 14 == list(map(len, held))


def test_what_others_change_while_a_reserve_waits_for_their_locks_is_taken_as_it_is_then(stores, others):
    """The statement began before their commit: of each row it must see the last version."""
    stores.queue.push("default", new_jobs(*(payload(name) for name in "abcd")))
    done = stores.queue.reserve(["default"], OURS, 2).leases
    first = done[0].row.id
    session = driver_of(stores.client).info.backend_pid
    found = []
    reserve = threading.Thread(target=lambda: found.append(stores.queue.reserve(["default"], OURS, 5, done)))

    def change(connection: Any) -> None:
        connection.exec_driver_sql(f"UPDATE jobs SET reserved_at = reserved_at + 1 WHERE id = {first}")  # a renewal
        connection.exec_driver_sql(f"UPDATE jobs SET attempts = 4 WHERE id = {first + 2}")
        connection.exec_driver_sql(f"UPDATE jobs SET queue = 'high' WHERE id = {first + 3}")
        reserve.start()
        eventually(lambda: connection.exec_driver_sql(_WAITS.format(session)).scalar_one())

    others.client.transaction(change)
    reserve.join()

    assert [([], ["c"], [5])] == [
        (one.refused, ids(one.leases), [lease.row.attempts for lease in one.leases]) for one in found
    ]
    assert (0, 1) == (stores.queue.sizes("default").ready, stores.queue.sizes("default").reserved)
    assert 1 == stores.queue.sizes("high").ready


def test_a_lease_that_others_end_while_a_reserve_waits_for_it_is_refused(stores, others):
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    done = stores.queue.reserve(["default"], OURS, 2).leases
    session = driver_of(stores.client).info.backend_pid
    found = []
    reserve = threading.Thread(target=lambda: found.append(stores.queue.reserve(["default"], OURS, 5, done)))

    def give_back(connection: Any) -> None:
        others.queue._table.give_back(connection, [done[0].row.id])
        reserve.start()
        eventually(lambda: connection.exec_driver_sql(_WAITS.format(session)).scalar_one())

    others.client.transaction(give_back)
    reserve.join()

    assert [done[:1]] == [one.refused for one in found]
    assert 1 == stores.queue.sizes("default").total


def test_a_deadlock_with_others_is_tried_again_and_nothing_of_the_first_time_stays(stores, others):
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    done = stores.queue.reserve(["default"], OURS, 2).leases
    rows = [lease.row.id for lease in done]
    driver = driver_of(stores.client)
    touch = "UPDATE jobs SET created_at = created_at + 1 WHERE id = {}"
    found = []
    reserve = threading.Thread(target=lambda: found.append(stores.queue.reserve(["default"], OURS, 5, done)))

    def cross(connection: Any) -> None:
        connection.exec_driver_sql("SET LOCAL deadlock_timeout = '30s'")  # so it is the reserve that gives way
        connection.exec_driver_sql(touch.format(rows[1]))
        reserve.start()
        eventually(lambda: connection.exec_driver_sql(_WAITS.format(driver.info.backend_pid)).scalar_one())
        connection.exec_driver_sql(touch.format(rows[0]))

    others.client.transaction(cross)
    reserve.join()

    assert [([], [])] == [(one.refused, one.leases) for one in found]
    assert 0 == stores.queue.sizes("default").total


def test_a_session_that_ends_before_the_commit_leaves_everything_as_it_was(
    stores, others, postgres_url, postgres: DatabaseServer
):
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    done = stores.queue.reserve(["default"], OURS, 1).leases
    found = []

    def cut_off(connection: Any) -> None:
        leases = stores.queue.leases
        found.append(leases._reserve(connection, ["default"], OURS, 5, done, leases._table.delete))
        postgres.execute(postgres_url, _END.format(driver_of(stores.client).info.backend_pid))

    with pytest.raises(StoreDown):
        stores.client.transaction(cut_off, begins=True)

    assert [["b"]] == [ids(one.leases) for one in found]
    assert 1 == stores.queue.unanswered
    assert (1, 1) == (others.queue.sizes("default").ready, others.queue.sizes("default").reserved)
    assert ["b"] == ids(stores.queue.reserve(["default"], OURS, 5, done).leases)


def test_a_reserve_that_is_refused_is_rolled_back_and_its_connection_is_used_on(stores, others):
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    [done] = stores.queue.reserve(["default"], OURS, 1).leases
    session = driver_of(stores.client).info.backend_pid
    others.client.ask(lambda connection: connection.exec_driver_sql(_REFUSES))

    with pytest.raises(StoreDown, match="not now"):
        stores.queue.reserve(["default"], OURS, 5, [done])

    others.client.ask(lambda connection: connection.exec_driver_sql("DROP TRIGGER refuses ON jobs"))
    assert (1, 1) == (others.queue.sizes("default").ready, others.queue.sizes("default").reserved)
    assert ["b"] == ids(stores.queue.reserve(["default"], OURS, 5, [done]).leases)
    assert session != driver_of(stores.client).info.backend_pid  # an outage for all that the client can know


#: as a disk that is full, by a code of its kind
_REFUSES = """
    CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '53000'; END $$;
    CREATE TRIGGER refuses BEFORE UPDATE ON jobs EXECUTE FUNCTION refuses()
"""
