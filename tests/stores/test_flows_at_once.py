"""Members of a flow that several workers end at the same moment: what follows is pushed once, and the flow ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from queuepool.stores.records import Retrying
from tests.support.drivers import connection_of, opened
from tests.support.graphs import Drawn, as_done, ended, taken
from tests.support.store_contract import OURS

WORKERS = 8
#: seconds: who waits for another's rows is not to take the server for down, and eight threads share two processors here
PATIENCE = 60.0


_MORE = pytest.mark.thorough("the stores' own locks; the contract is proved on each one by one")


@pytest.fixture(params=["postgres", *(pytest.param(one, marks=_MORE) for one in ("redis", "sqlite", "mariadb"))])
def connection(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of(request.param, request)


def at_once(connection: ConnectionSettings, leases: list[Lease], how_of: Callable[[int], str]) -> list[bool]:
    """End these by several workers, each of which has its part."""
    answers, start = list[bool](), threading.Barrier(WORKERS)

    def work(stores: Stores, first: int) -> None:
        start.wait()
        for number in range(first, len(leases), WORKERS):
            answers.append(ended(stores.queue, leases[number], how_of(number)))  # type: ignore[arg-type]

    with ExitStack() as stack:
        workers = [stack.enter_context(opened(connection, PATIENCE)) for _ in range(WORKERS)]
        threads = [threading.Thread(target=work, args=(one, first)) for first, one in enumerate(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return answers


_WIDER = pytest.mark.thorough("as one of fewer, which are at it at once too")


@pytest.mark.parametrize("count", [8, *(pytest.param(count, marks=_WIDER) for count in (40, 120))])
def test_what_follows_many_is_pushed_once(connection, count):
    names = [f"m{number}" for number in range(count)]
    with opened(connection, PATIENCE) as stores:
        drawn = Drawn(dict.fromkeys(names, ()) | {"merge": names, "end?a": names})
        stores.flows.write(drawn.flow, drawn.members)
        answers = at_once(connection, list(taken(stores.queue).values()), lambda _: "d")

        assert [True] * count == answers
        last = taken(stores.queue)
        assert ["end?a", "merge"] == sorted(last)
        assert [True] * 2 == at_once(connection, list(last.values()), lambda _: "d")
        assert "done" == stores.flows.find(drawn.id).state


def with_reserves(connection: ConnectionSettings, leases: list[Lease]) -> list[Lease]:
    """End these by several workers with their reserves, ten at a time; returns what these have taken."""
    taken, start = list[Lease](), threading.Barrier(WORKERS)

    def work(stores: Stores, worker: int) -> None:
        start.wait()
        own = [as_done(one) for one in leases[worker::WORKERS]]
        for first in range(0, len(own), 10):
            found = stores.queue.reserve(["default"], OURS + worker, 10, own[first : first + 10])
            stores.flows.after(found.flows)
            assert not found.refused
            taken.extend(found.leases)

    with ExitStack() as stack:
        workers = [stack.enter_context(opened(connection, PATIENCE)) for _ in range(WORKERS)]
        threads = [threading.Thread(target=work, args=(one, number)) for number, one in enumerate(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return taken


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=_WIDER)])
def test_what_follows_many_that_end_with_reserves_is_pushed_once(connection, count):
    names = [f"m{number}" for number in range(count)]
    with opened(connection, PATIENCE) as stores:
        drawn = Drawn(dict.fromkeys(names, ()) | {"merge": names, "end?a": names})
        stores.flows.write(drawn.flow, drawn.members)
        last = with_reserves(connection, list(taken(stores.queue).values()))
        last += stores.queue.reserve(["default"], OURS, 10).leases

        assert 2 == len(last)
        found = stores.queue.reserve(["default"], OURS, 10, [as_done(one) for one in last])
        assert ("done", []) == (stores.flows.after(found.flows)[0].state, found.leases)
        assert "done" == stores.flows.find(drawn.id).state


@pytest.mark.parametrize("count", [16, pytest.param(40, marks=_WIDER)])
@pytest.mark.by_turns("stops")
@pytest.mark.parametrize("stops", [True, False], ids=["stops", "goes on"])
def test_failures_and_successes_at_once_end_the_flow(connection, stops, count):
    names = [f"m{number}" for number in range(count)]
    with opened(connection, PATIENCE) as stores:
        graph = dict.fromkeys(names, ()) | {f"after {name}": [name] for name in names} | {"end?a": names}
        drawn = Drawn(graph, stops=stops)
        stores.flows.write(drawn.flow, drawn.members)
        answers = at_once(connection, list(taken(stores.queue).values()), lambda number: "df"[number % 2])
        assert [True] * count == answers
        while left := taken(stores.queue):
            assert all(at_once(connection, list(left.values()), lambda _: "d"))

        found = stores.flows.find(drawn.id)
        assert "failed" == found.state
        assert (count // 2, 0) == (found.counts.failed, found.counts.running)


def test_retries_beside_settlements_lose_no_member(connection):
    names = [f"m{number}" for number in range(40)]
    with opened(connection, PATIENCE) as stores, opened(connection, PATIENCE) as operator:
        drawn = Drawn(dict.fromkeys(names, ()) | {f"after {name}": [name] for name in names} | {"merge": names})
        stores.flows.write(drawn.flow, drawn.members)
        leases = list(taken(stores.queue).values())
        first = [lease for number, lease in enumerate(leases) if number % 2]
        rest = [lease for number, lease in enumerate(leases) if not number % 2]
        assert all(ended(stores.queue, lease, "f") for lease in first)
        failed = [Retrying(row) for row in stores.failed.page()]
        retrying = threading.Thread(target=lambda: [operator.failed.retry_all([one]) for one in failed])
        retrying.start()
        assert [True] * len(rest) == at_once(connection, rest, lambda _: "d")
        retrying.join()
        while left := taken(stores.queue):
            assert all(at_once(connection, list(left.values()), lambda _: "d"))

        found = stores.flows.find(drawn.id)
        assert ("done", 81) == (found.state, found.counts.done)
