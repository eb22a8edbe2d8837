"""Flows in databases in which very many members follow one: a transaction tells some of them, and loses none."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import event

from queuepool.payload.lease import Ending, Lease
from queuepool.stores.factory import Stores
from queuepool.stores.records import Retrying
from queuepool.stores.sql.left_over import MOST_EDGES, SOON
from tests.support.drivers import connection_of, opened
from tests.support.graphs import Drawn, as_done, ended, taken
from tests.support.rows_read import rows_read
from tests.support.samples import record
from tests.support.store_contract import OURS, Clock

_MORE = pytest.mark.thorough("the contract is proved on SQLite")
MANY = 2 * MOST_EDGES + 100


@pytest.fixture(params=["sqlite", *(pytest.param(one, marks=_MORE) for one in ("postgres", "mariadb"))])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with opened(connection_of(request.param, request)) as found:
        yield found


def begun(stores: Stores, *last: str) -> Drawn:
    """Very many follow one; those of ``last`` follow all of these."""
    names = [f"after{number}" for number in range(MANY)]
    drawn = Drawn({"root": (), **dict.fromkeys(names, ("root",)), **dict.fromkeys(last, names)})
    stores.flows.write(drawn.flow, drawn.members)
    return drawn


def end_all(stores: Stores, leases: Iterable[Lease]) -> None:
    """As a worker's reserves do, a hundred at a time: one by one they take ten seconds."""
    done = [as_done(lease) for lease in leases]
    for first in range(0, len(done), 100):
        stores.queue.reserve(["default"], OURS, 0, done[first : first + 100])


def counts(stores: Stores, drawn: Drawn) -> Any:
    return stores.flows.find(drawn.id).counts


@pytest.mark.thorough("what it costs; that all of them start is in the tests below")
def test_the_end_of_a_member_names_few_rows_in_a_statement_however_many_follow(stores):
    named = list[int]()

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
        named.extend(map(len, parameters) if executemany else [len(parameters)])

    drawn = begun(stores)
    done = [as_done(lease) for lease in stores.queue.reserve(["default"], OURS, 1).leases]
    event.listen(stores.client.engine, "before_cursor_execute", note)
    found = stores.queue.reserve(["default"], OURS, 1, done)

    assert MOST_EDGES == counts(stores, drawn).running
    assert ["more"] == [one.state for one in found.flows]
    assert [] == stores.flows.after(found.flows)
    assert MANY == counts(stores, drawn).running
    assert max(named) < 600


def test_what_a_reserve_has_left_over_is_done_by_a_steward_if_its_worker_dies(stores):
    clock, drawn = Clock(stores.queue), begun(stores, "merge")
    done = [as_done(lease) for lease in stores.queue.reserve(["default"], OURS, 1).leases]
    stores.queue.reserve(["default"], OURS, 0, done)
    stores.flows._rows.unfinished.clear()  # as by another process
    end_all(stores, taken(stores.queue, MANY).values())
    first = counts(stores, drawn)
    assert (MOST_EDGES, 0) == (first.done - 1, first.running), "and the flow has not ended"
    stores.flows.look()
    assert first == counts(stores, drawn)
    while counts(stores, drawn).running < MANY - MOST_EDGES:
        clock.advance(SOON + 1)  # a look that took too long leaves the rest to a later one
        stores.flows.look()

    end_all(stores, taken(stores.queue, MANY).values())
    assert ["merge"] == list(taken(stores.queue))


def fail_and_die(stores: Stores, lease: Lease, drawn: Drawn) -> None:
    """As a worker that is killed once it has committed the end of its job."""
    follow = stores.queue._following(Ending(member=drawn.end("root", "f")), (), lease)
    act = stores.queue._failing("root", record(lease, "root"), follow)
    assert stores.queue.leases.if_held([lease], act) == [True]
    stores.flows._rows.unfinished.clear()


@pytest.mark.thorough("a retry between the two steps of an end; test_a_retry_while_others_run")
def test_a_retry_beside_what_is_left_over_of_a_failure_cancels_nothing_more(stores):
    drawn = begun(stores, "end?a")
    [lease] = stores.queue.reserve(["default"], OURS, 1).leases
    fail_and_die(stores, lease, drawn)
    assert MOST_EDGES == counts(stores, drawn).cancelled
    stores.failed.retry_all([Retrying(row) for row in stores.failed.page()])
    assert (MANY + 1, 1) == (counts(stores, drawn).waiting, counts(stores, drawn).running)
    assert not stores.flows._go_on(drawn.id)
    assert (MANY + 1, 1) == (counts(stores, drawn).waiting, counts(stores, drawn).running)

    [again] = taken(stores.queue).values()
    assert ended(stores.queue, again)
    assert MANY == counts(stores, drawn).running


@pytest.mark.thorough("of a few, test_a_failure_may_stop_only_what_follows_it")
def test_a_failure_that_very_many_follow_cancels_them_all_and_tells_those_that_follow_their_end(stores):
    drawn = begun(stores, "end?a")
    [lease] = stores.queue.reserve(["default"], OURS, 1).leases
    assert ended(stores.queue, lease, "f")

    assert (MANY, 1) == (counts(stores, drawn).cancelled, counts(stores, drawn).running)
    assert ["end?a"] == list(taken(stores.queue))


@pytest.mark.thorough("what it costs; that all of them start is in the tests above")
def test_postgresql_reads_few_rows_for_each_that_follows_before_it_knows_how_many_there_are(request):
    with opened(connection_of("postgres", request)) as stores:
        drawn = begun(stores)
        done = [as_done(lease) for lease in stores.queue.reserve(["default"], OURS, 1).leases]
        before = rows_read(stores)
        stores.flows.after(stores.queue.reserve(["default"], OURS, 0, done).flows)

        assert MANY == counts(stores, drawn).running
        assert rows_read(stores) - before < 100 * MANY


def test_each_that_follows_starts_once_whichever_way_postgresql_joins(request):
    """By hash, the rows come in the order in which the members were written."""
    connection = connection_of("postgres", request)
    by_hash = "-c enable_nestloop=off -c enable_mergejoin=off -c enable_memoize=off"
    by_hash = quote(f"{by_hash} -c enable_indexscan=off -c enable_bitmapscan=off -c enable_indexonlyscan=off")
    separator = "&" if "?" in connection.url else "?"
    with opened(replace(connection, url=f"{connection.url}{separator}options={by_hash}")) as stores:
        drawn = begun(stores)
        done = [as_done(lease) for lease in stores.queue.reserve(["default"], OURS, 1).leases]
        stores.flows.after(stores.queue.reserve(["default"], OURS, 0, done).flows)

        assert MANY == counts(stores, drawn).running == len(taken(stores.queue, 2 * MANY))


def test_two_that_go_on_at_once_start_each_member_once(request):
    connection = connection_of("postgres", request)
    with opened(connection, 60.0) as stores, opened(connection, 60.0) as other:  # each waits for the other's locks
        drawn = begun(stores)
        done = [as_done(lease) for lease in stores.queue.reserve(["default"], OURS, 1).leases]
        found = stores.queue.reserve(["default"], OURS, 0, done)
        steward = threading.Thread(target=lambda: other.flows._go_on(drawn.id))
        steward.start()
        stores.flows.after(found.flows)
        steward.join()

        assert MANY == counts(stores, drawn).running == len(taken(stores.queue, 2 * MANY))
