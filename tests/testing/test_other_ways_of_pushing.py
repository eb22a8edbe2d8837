"""Pushes from coroutines, and in or after transactions of the application's."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from queuepool import connect
from queuepool.testing import fake, run_now
from tests.testing.jobs import asynchronous, untold, welcome


@pytest.fixture
def session():
    engine = create_engine("sqlite://")
    with Session(engine) as opened:
        yield opened
    engine.dispose()


@pytest.fixture
def in_database(tmp_path):
    return connect(f"sqlite:///{tmp_path}/no-such.db")


def test_pushes_of_coroutines_are_recorded(queue):
    async def push() -> list[str]:
        return [
            await welcome.adispatch("ada"),
            *await welcome.abulk([{"to": "bob"}]),
            await queue.apush("shop.other", {"a": 1}),
        ]

    with fake() as pushed:
        ids = asyncio.run(push())
    queue.close()

    assert ids == [job.id for job in pushed]
    assert [job.kwargs for job in pushed] == [{"to": "ada"}, {"to": "bob"}, {"a": 1}]


def test_jobs_dispatched_by_a_coroutine_have_run_when_it_goes_on(queue, done):
    async def push() -> None:
        await welcome.adispatch("ada")
        await asynchronous.adispatch(3)
        assert done == [("ada", "plain"), (3, 1)]
        with pytest.raises(LookupError):
            await untold.adispatch()

    with run_now():
        asyncio.run(push())
    queue.close()


def test_what_is_pushed_after_a_commit_is_recorded_then(queue, session):
    with fake() as pushed:
        later = queue.after_commit(session)
        later.push("shop.other", {"number": 1})
        pushed.assert_nothing_pushed()
        session.commit()
        pushed.assert_pushed("shop.other", number=1)

        later.push("shop.other", {"number": 2})
        session.rollback()
        pushed.assert_count(1)


def test_what_is_dispatched_after_a_commit_runs_then(queue, session, done):
    with run_now() as ran:
        queue.after_commit(session).push("testing.welcome", {"to": "ada"})
        assert done == []
        session.commit()

        assert done == [("ada", "plain")]
        assert len(ran.done) == 1


def test_a_push_in_a_transaction_of_a_session_is_recorded_at_its_commit(in_database, session):
    with fake() as pushed:
        in_database.within(session).push("shop.other", {"number": 1})
        pushed.assert_nothing_pushed()
        assert [job.kwargs for job in pushed.waiting] == [{"number": 1}]
        with pytest.raises(AssertionError, match=r"(?s)nothing was pushed.waiting for a commit, .* \(1\):"):
            pushed.assert_pushed("shop.other")
        session.commit()
        in_database.within(session).push("shop.other", {"number": 2})
        session.rollback()

    pushed.assert_pushed("shop.other", number=1)
    pushed.assert_count(1)
    assert pushed.waiting == []


def test_a_job_pushed_in_a_transaction_of_a_session_runs_after_its_commit(in_database, session, done):
    with run_now() as ran:
        in_database.within(session).push("testing.welcome", {"to": "ada"})
        assert done == []
        session.commit()
        assert done == [("ada", "plain")]

    assert len(ran.done) == 1


def test_a_push_in_a_transaction_of_a_coroutine_is_recorded_and_runs_at_its_commit(postgres_url, done):
    in_database = connect(postgres_url)

    async def push() -> None:
        engine = create_async_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))
        async with AsyncSession(engine) as opened:
            await in_database.within(opened).apush("testing.welcome", {"to": "ada"})
            assert done == []
            await opened.commit()
            assert done == [("ada", "plain")]
            await in_database.within(opened).apush("testing.welcome", {"to": "bob"})
            await opened.rollback()
        await engine.dispose()

    with run_now() as ran:
        asyncio.run(push())

    assert len(ran.done) == 1
    ran.pushed.assert_count(1)
    in_database.close()


def test_a_push_in_a_transaction_whose_end_cannot_be_seen_is_recorded_at_once(in_database, session):
    with fake() as pushed:
        in_database.within(session.connection()).push("shop.other")

    pushed.assert_pushed("shop.other")


def test_a_job_that_ran_before_the_commit_and_failed_names_the_transaction(in_database, session):
    with run_now(raises=False) as ran:
        in_database.within(session.connection()).push("testing.untold")
        session.commit()

    [note] = [line for line in ran.failed[0].error.__notes__ if "commit" in line]
    assert note.startswith("the job ran before the commit of the transaction that it was pushed within")


def test_a_transaction_in_another_database_is_refused_as_it_always_is(in_database, tmp_path):
    (tmp_path / "no-such.db").touch()
    engine = create_engine(f"sqlite:///{tmp_path}/other.db")
    with Session(engine) as elsewhere, fake() as pushed:
        with pytest.raises(ValueError, match="within: the connection leads to a different database than the queue's"):
            in_database.within(elsewhere).push("shop.other")
        with pytest.raises(TypeError, match="within takes an SQLAlchemy Session"):
            in_database.within(object()).push("shop.other")
    engine.dispose()

    pushed.assert_nothing_pushed()
    assert pushed.waiting == []


def test_a_queue_in_redis_refuses_a_transaction_as_it_always_does(queue, session):
    with fake(), pytest.raises(ValueError, match="Redis"):
        queue.within(session)
