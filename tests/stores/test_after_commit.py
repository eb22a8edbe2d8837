"""Pushes that wait for the commit of another store: for a queue in Redis beside an application's database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from queuepool import Job, configure, context, job
from queuepool.errors import NotSendable, StoreDown
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from tests.support.own_connections import django_connection, engine_of, scoped, session


@pytest.fixture
def own(sqlite_url: str, tmp_path: Path) -> Iterator[Session]:
    with session(sqlite_url) as opened:
        yield opened


@job("after.send")
def send(order: int) -> None: ...


class After(Job, name="after.class"):
    order: int

    def handle(self) -> None: ...


def names(queue: Queue) -> list[str]:
    return [decode(raw).name for raw in queue.stores.queue.first("default", 100)]


def test_a_job_is_pushed_once_the_session_has_committed(queue, own):
    identity = send.using(after_commit=own).dispatch(order=1)
    After(2).using(after_commit=own).dispatch()
    After.bulk([After(3)], after_commit=own)
    queue.after_commit(own).later(60, "late")

    assert (36, 0) == (len(identity), queue.size())
    own.commit()
    assert (["after.send", "after.class", "after.class"], 4) == (names(queue), queue.size())
    own.commit()
    assert 4 == queue.size()


@pytest.mark.parametrize("end", ["rollback", "close"])
def test_a_job_of_a_transaction_without_a_commit_is_never_pushed(queue, own, end):
    send.using(after_commit=own).dispatch(order=1)
    getattr(own, end)()
    own.execute(text("SELECT 1"))
    own.commit()

    assert 0 == queue.size()


def test_only_the_jobs_of_a_savepoint_are_dropped_with_it(queue, own):
    bound = queue.after_commit(own)
    bound.push("before")
    with own.begin_nested() as outer:
        bound.push("outer")
        with own.begin_nested():
            bound.push("released, and gone with the outer one")
        outer.rollback()
    with own.begin_nested():
        bound.push("inside")

    assert 0 == queue.size()
    own.commit()
    assert ["before", "inside"] == names(queue)


def test_a_scoped_session_is_that_of_the_thread(queue, sqlite_url):
    with scoped(sqlite_url) as own:
        queue.after_commit(own).push("first")
        own.commit()

    assert ["first"] == names(queue)


def test_context_and_arguments_are_those_of_the_dispatch(queue, own):
    data = {"to": ["a"]}
    with context.scope(request="7"):
        queue.after_commit(own).push("first", data)
    data["to"].append("b")
    own.commit()
    [raw] = queue.stores.queue.first("default", 1)

    assert ({"to": ["a"]}, {"request": 's:1:"7";'}) == (decode(raw).data, decode(raw).context["data"])


def test_data_that_is_no_json_is_refused_at_once(queue, own):
    with pytest.raises(NotSendable):
        queue.after_commit(own).push("first", object())
    own.commit()

    assert 0 == queue.size()


def test_a_unique_job_is_pushed_unless_another_holds_its_lock_at_the_commit(queue, own):
    for _ in range(2):
        assert queue.after_commit(own).push("once", unique_id="1")
    own.commit()

    assert 1 == queue.size()


@pytest.mark.fault("F77")
def test_a_store_that_is_down_at_the_commit_is_reported_and_the_session_goes_on(queue, own, own_server):
    own.execute(text("CREATE TABLE orders (id integer)"))
    own.commit()
    elsewhere = Queue(type(queue.settings)(url=f"unix://{own_server.path}"))
    own_server.kill()
    own.execute(text("INSERT INTO orders VALUES (1)"))
    elsewhere.after_commit(own).push("first")
    elsewhere.after_commit(own).push("second")

    with pytest.raises(StoreDown) as failed:
        own.commit()
    own.rollback()
    own.execute(text("INSERT INTO orders VALUES (2)"))
    own.commit()
    elsewhere.close()

    assert ["the transaction is committed, but 2 of its jobs were not pushed"] == failed.value.__notes__
    assert [1, 2] == list(own.execute(text("SELECT id FROM orders ORDER BY id")).scalars())


def test_an_asynchronous_session_pushes_after_its_commit_without_blocking_its_loop(queue, postgres_url):
    async def push() -> None:
        engine = create_async_engine(postgres_url.replace("://", "+psycopg://", 1))
        async with AsyncSession(engine) as own:
            await send.using(after_commit=own).adispatch(1)
            queue.after_commit(own).push("second")
            async with own.begin_nested() as savepoint:
                await queue.after_commit(own).apush("lost")
                await savepoint.rollback()
            assert 0 == await queue.asize()
            await own.commit()
        await engine.dispose()

    asyncio.run(push())

    assert ["after.send", "second"] == names(queue)


def test_djangos_connection_pushes_after_its_own_commit(queue, sqlite_url):
    own = django_connection(sqlite_url)
    with _atomic(own):
        queue.after_commit(own).push("first")
        with suppress(KeyError), _atomic(own):
            queue.after_commit(own).push("lost")
            raise KeyError
        assert 0 == queue.size()
    queue.after_commit(own).push("at once, outside of any transaction")
    own.close()

    assert ["first", "at once, outside of any transaction"] == names(queue)


def _atomic(own: Any) -> Any:
    from django.db import connections
    from django.db.transaction import Atomic

    connections["default"] = own
    return Atomic("default", True, False)


@pytest.mark.bad_input("B124")
def test_what_does_not_say_when_it_commits_is_refused(queue, own, sqlite_url):
    with pytest.raises(
        TypeError, match=r"^after_commit takes an SQLAlchemy .* not a sqlalchemy\.engine\.base\.Connection"
    ):
        send.using(after_commit=own.connection()).dispatch(order=1)
    with pytest.raises(TypeError, match=r"not a sqlalchemy\.engine\.base\.Engine: other connections do not report"):
        queue.after_commit(engine_of(sqlite_url))
    configure(queue)
