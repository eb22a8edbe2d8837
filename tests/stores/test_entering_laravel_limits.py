"""Laravel's limits around attempts, at a real cache: who gets the lock, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Generator, Iterator

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadArguments, StoreDenied
from queuepool.jobs.current_job import Current
from queuepool.jobs.laravel_cache import set_cache
from queuepool.jobs.laravel_limits import NoOverlap, Throttle
from queuepool.payload.envelope import decode
from queuepool.stores.factory import Stores
from tests.support.drivers import opened

ALONE = NoOverlap(by="{order}", expires_after="1h")


@pytest.fixture
def stores(sqlite_url: str) -> Iterator[Stores]:
    with opened(ConnectionSettings(url=sqlite_url, embedded=True)) as found:
        former = set_cache(lambda: found.laravel_cache)
        yield found
        while _open:
            _open.pop().close()
        set_cache(former)


_open: list[Generator[None, None, None]] = []


def attempt(uuid: str, number: int = 1, order: object = 7, timeout: float | None = None) -> Current:
    fields = {"uuid": uuid, "id": uuid, "displayName": "bill", "job": "bill", "data": {}, "timeout": timeout}
    job = Current(decode(json.dumps(fields).encode(), number), "default")
    job.takes({"order": order})
    return job


def entered(limit: NoOverlap | Throttle, job: Current) -> Generator[None, None, None] | None:
    """The middleware of a job that may begin, at its ``yield``; ``None`` if it may not."""
    steps = limit(job)
    assert isinstance(steps, Generator)
    _open.append(steps)
    return steps if next(steps, steps) is None else None


def test_an_earlier_attempt_of_a_job_releases_nothing_of_the_one_that_took_its_lock_over(stores):
    first = entered(ALONE, attempt("a", 1))
    second = entered(ALONE, attempt("a", 2))
    assert first
    assert second
    assert not list(first)

    assert not entered(ALONE, attempt("b", 1))
    assert not entered(ALONE, attempt("a", 1))
    assert not list(second)
    assert entered(ALONE, attempt("b", 1))


def test_no_attempt_takes_the_lock_of_another_job_over(stores):
    assert entered(ALONE, attempt("b", 1))

    assert not entered(ALONE, attempt("a", 2))


def test_a_handler_that_changes_its_arguments_leaves_its_lock_released(stores):
    job = attempt("a")
    steps = entered(ALONE, job)
    job.takes({"order": 8})
    assert steps
    assert not list(steps)

    assert entered(ALONE, attempt("b"))


@pytest.mark.parametrize(("timeout", "seconds"), [(30.0, 330), (None, 86_400), (0.0, 86_400)])
def test_a_lock_lasts_five_minutes_longer_than_its_job_may_run(stores, timeout, seconds):
    assert entered(NoOverlap(by="{order}"), attempt("a", timeout=timeout))

    left = "SELECT expiration - strftime('%s', 'now') FROM cache_locks"
    assert seconds - 5 <= stores.client.ask(lambda c: c.exec_driver_sql(left).scalar()) <= seconds + 1


def test_a_table_that_is_missing_is_the_jobs_error(stores):
    stores.client.ask(lambda c: c.exec_driver_sql("DROP TABLE cache_locks"))
    job = attempt("a")

    with pytest.raises(StoreDenied, match="cache_locks"):
        next(ALONE(job))
    assert job.verdict is None


def test_a_key_that_no_column_holds_fails_its_job(stores):
    with pytest.raises(BadArguments, match=r"its key has .* characters, a cache has room for 255"):
        next(NoOverlap(by="{order}", prefix="p" * 200)(attempt("a", order="x" * 60)))


def test_a_coroutine_that_is_cancelled_while_it_enters_leaves_no_lock(stores):
    async def enters(steps: AsyncIterator[None]) -> None:
        async for _ in steps:
            await asyncio.sleep(60)

    async def cancels() -> None:
        for turns in range(4):
            entering = asyncio.ensure_future(enters(ALONE.in_async(attempt(f"a{turns}"))))
            for _ in range(turns):
                await asyncio.sleep(0)
            entering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entering

    asyncio.run(cancels())
    assert entered(ALONE, attempt("b"))


def test_an_exception_that_is_throttled_goes_on_and_waits_for_the_throttles_backoff(stores):
    job, error = attempt("a"), KeyError("lost")
    steps = entered(Throttle(2, by="{order}", backoff="1m"), job)
    assert steps

    with pytest.raises(KeyError) as caught:
        steps.throw(error)
    assert (error, 60.0) == (caught.value, job.retry_after)
