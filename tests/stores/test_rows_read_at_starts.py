"""The end of a job and the next start read few rows of a database, however many are parked, whatever it has counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, insert, update

from queuepool.config.values import PARKED
from queuepool.payload.lease import NOTHING
from queuepool.payload.limits import NO_PART, PlaceAsked, holding, job_word
from queuepool.stores.factory import Stores
from queuepool.stores.limits import Entering
from tests.support.drivers import connection_of, opened
from tests.support.rows_read import rows_read
from tests.support.samples import new_jobs, payload

#: parked jobs at each of two limits: with the higher numbers, those at which one ends and another begins
MANY = 1000
ONE = PlaceAsked("one", NO_PART, 1)
_MORE = pytest.mark.thorough("PostgreSQL's planner has the most to choose from")
_COUNT = {"postgresql": "ANALYZE {}", "mariadb": "ANALYZE TABLE {}"}


@pytest.fixture(params=["postgres", pytest.param("mariadb", marks=_MORE)])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with opened(connection_of(request.param, request)) as found:
        yield found


@contextmanager
def few_rows(stores: Stores) -> Iterator[None]:
    before = rows_read(stores)
    yield
    assert rows_read(stores) - before < MANY / 10


def park_many(stores: Stores, *, in_lines_of: int) -> None:
    """At the first limit one in each line, at the second so many.

    The table of jobs is counted while all are in their queue, the others when all are parked.
    """
    tables, numbers = stores.client.tables, range(2 * MANY)
    parts = ["-" if n < MANY else f"p{(n - MANY) // in_lines_of}" for n in numbers]
    keys = [f"other={n}" if n < MANY else "one" for n in numbers]
    own = [(n, key, part) for n, key, part in zip(numbers, keys, parts, strict=True)]
    jobs = [{"id": 1000 + n, "queue": "default", "payload": payload(f"{n}").decode()} for n in numbers]
    parked = [
        {
            "id": 1000 + n,
            "key": key,
            "part": part,
            "queue": "default",
            "asked": f"{key} {part}",
            "job": job_word(f"{n}"),
        }
        for n, key, part in own
    ]
    lines = dict.fromkeys((key, part) for _, key, part in own)
    rings = [{"key": key, "part": part, "queue": "default", "turn": n} for n, (key, part) in enumerate(lines)]

    def write(connection: Connection) -> None:
        count = _COUNT[connection.dialect.name]
        rest = {"attempts": 0, "reserved_at": None, "available_at": 0, "created_at": 0}
        connection.execute(insert(tables.jobs), [{**row, **rest} for row in jobs])
        connection.exec_driver_sql(count.format("jobs"))
        connection.execute(update(tables.jobs).where(tables.jobs.c.id >= 1000).values(queue=PARKED))
        connection.execute(insert(tables.queuepool_parked), parked)
        connection.execute(insert(tables.queuepool_rings), rings)
        limits = [{"key": key, "turn": 2 * MANY} for key in dict.fromkeys(keys) if key != "one"]
        connection.execute(insert(tables.queuepool_limits), limits)
        connection.execute(update(tables.queuepool_limits).values(turn=2 * MANY))
        for table in ("queuepool_parked", "queuepool_rings", "queuepool_limits"):
            connection.exec_driver_sql(count.format(table))

    stores.client.ask(write)


@pytest.mark.by_turns("in_lines_of")
@pytest.mark.parametrize("in_lines_of", [1, MANY])
def test_an_end_and_the_next_start_read_few_rows(stores, in_lines_of):
    store, limits, tag = stores.queue, stores.limits, stores.queue.join()
    store.push("default", new_jobs(payload("first")))
    [first] = map(holding, store.reserve(["default"], tag, 1).leases)
    assert limits.enter(first, "first", [ONE]).is_in
    park_many(stores, in_lines_of=in_lines_of)

    with few_rows(stores):
        store.finish(first, NOTHING)
    [handed_on] = map(holding, store.reserve(["default"], tag, 1).leases)
    with few_rows(stores):
        assert limits.enter(handed_on, f"{MANY}", [PlaceAsked("one", "p0", 1)]).is_in
    store.push("default", new_jobs(payload("next"), payload("behind")))
    refused, behind = map(holding, store.reserve(["default"], tag, 2).leases)
    with few_rows(stores):
        assert "one" == limits.enter(refused, "next", [ONE]).parked_at
    with few_rows(stores):
        assert limits.park_behind
        assert [True] == limits.park_behind("one", [Entering(behind, "behind", [ONE])])
