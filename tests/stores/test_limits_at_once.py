"""Jobs with several limits, named in any order, that start and end at once: none is stuck, and none is too many."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, TypeVar

import pytest
from sqlalchemy import Select, exists, func, select

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.payload.lease import NOTHING
from queuepool.payload.limits import NO_PART, PlaceAsked, holding
from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.sql.tables import Tables
from tests.support.drivers import DATABASES, PATIENCE, connection_of, opened
from tests.support.eventually import eventually
from tests.support.samples import ids, new_jobs, payload

T = TypeVar("T")
A, B = PlaceAsked("a", NO_PART, 1), PlaceAsked("b", NO_PART, 2)
#: its key is forgotten whenever nobody has a place there
C = PlaceAsked("c=1", NO_PART, 1)
#: by the last digit of a job
ASKED = (A, B), (B, C, A), (A,), (B,), (C, B)
JOBS, THREADS = 40, 4

pytestmark = pytest.mark.every_store("connection")


@pytest.fixture(params=["redis", *DATABASES])
def connection(request: pytest.FixtureRequest) -> ConnectionSettings:
    found = connection_of(request.param, request)
    with opened(found) as stores:
        stores.queue.push("default", new_jobs(*(payload(f"j{number}") for number in range(JOBS))))
    return found


def insisted(call: Callable[[], T]) -> T:
    """As workers do: a file that others write to may be locked for long."""
    while True:
        with suppress(StoreDown):
            return call()


class Workers:
    """Threads that share nothing but the store."""

    def __init__(self, connection: ConnectionSettings) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self.running, self.most = Counter[str](), Counter[str]()
        self.done: list[str] = []
        self.at_rest: list[Any] = []
        self.errors: list[BaseException] = []

    def work(self) -> None:
        try:
            with closing(Stores(self._connection, reply_timeout=PATIENCE)) as stores:
                tag = stores.queue.join()
                while len(self.done) < JOBS and not self.errors:
                    self.take_one(stores, tag)
        except BaseException as error:
            self.errors.append(error)

    def take_one(self, stores: Stores, tag: int) -> None:
        store = stores.queue
        leases = insisted(lambda: store.reserve(["default"], tag, 1).leases)
        if not leases:
            insisted(store.limits.sweep)
            return
        [name], lease = ids(leases), holding(leases[0])
        asked = ASKED[int(name[-1]) % len(ASKED)]
        if not insisted(lambda: store.limits.enter(lease, name, asked)).is_in:
            return
        with self._lock:
            self.running.update(one.key for one in asked)
            self.most |= self.running
        store.limits.by_key()  # takes a while, in which others may begin
        with self._lock:
            self.running.subtract(one.key for one in asked)
        assert insisted(lambda: store.finish(lease, NOTHING))
        self.done.append(name)

    def watch(self) -> None:
        """In a database, one statement sees what was at one moment."""
        try:
            with closing(Stores(self._connection, reply_timeout=PATIENCE)) as stores:
                wanted = at_rest(stores.client.tables)
                while len(self.done) < JOBS and not self.errors:
                    self.at_rest += insisted(lambda: stores.client.ask(lambda made: made.execute(wanted).all()))
        except BaseException as error:
            self.errors.append(error)


def at_rest(tables: Tables) -> Select[Any]:
    """Keys at which a job waits although a place is free."""
    limits, parked, places = tables.queuepool_limits.c, tables.queuepool_parked.c, tables.queuepool_places.c
    taken = select(func.count()).where(places.key == limits.key).scalar_subquery()
    return select(limits.key).where(limits.number > taken, exists().where(parked.key == limits.key))


def test_none_waits_for_ever_and_none_is_too_many(connection):
    workers = Workers(connection)
    works = [workers.work] * THREADS if is_redis(connection.url) else [workers.watch, *[workers.work] * THREADS]
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    eventually(lambda: not any(thread.is_alive() for thread in threads), within=90)

    assert [] == workers.errors
    assert sorted(f"j{number}" for number in range(JOBS)) == sorted(workers.done)
    assert workers.most["a"] <= 1
    assert workers.most["c=1"] <= 1
    assert workers.most["b"] <= 2
    assert [] == workers.at_rest


@pytest.mark.thorough("10,000 times; test_a_number_set_by_hand_is_in_force_until_it_is_reset")
def test_an_operators_number_stays_while_workers_say_what_their_code_has(connection):
    errors, is_over = list[BaseException](), threading.Event()

    def declare() -> None:
        try:
            with closing(Stores(connection, reply_timeout=PATIENCE)) as stores:
                for number in range(1, 10_000):
                    insisted(lambda number=number: stores.limits.declare("a", number, 0.0))  # type: ignore[misc]
                    if is_over.is_set():
                        return
        except BaseException as error:
            errors.append(error)

    with closing(Stores(connection, reply_timeout=PATIENCE)) as stores:
        stores.limits.declare("a", 1, 0.0)
        thread = threading.Thread(target=declare, daemon=True)
        thread.start()
        for number in range(100):
            assert insisted(lambda number=number: stores.limits.set("a", number))  # type: ignore[misc]
            [limit] = insisted(stores.limits.all)
            assert number == limit.by_hand
        is_over.set()
        eventually(lambda: not thread.is_alive())

    assert [] == errors
