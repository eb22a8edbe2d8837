"""Middleware of jobs: what is refused where a job is defined, and what it does to errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps

import pytest

from queuepool import Job, job
from queuepool.errors import ConfigError
from queuepool.jobs.current_job import Current, set_current
from queuepool.jobs.registry import REGISTRY
from queuepool.payload.envelope import decode
from tests.support.each import each
from tests.support.samples import payload


def plain(job: Current) -> Iterator[None]:
    yield


async def asynchronous(job: Current) -> AsyncIterator[None]:
    yield


async def asks(order: int) -> bool:
    return False


def function(order: int) -> None: ...


@each(
    ("options", "words"),
    [
        ({"around": plain}, "around cannot be <function plain.*give a list"),
        ({"around": [lambda job: None]}, "around: .*<lambda>: it must be a generator function with one yield"),
        ({"around": [3]}, "around: int: it must be a generator"),
        ({"around": [asynchronous]}, "asynchronous cannot run around it: it is async, but the job is a plain function"),
        ({"skip_if": asks}, "asks cannot run around it: it is async"),
        ({"skip_if": "paid"}, "skip_if cannot be 'paid': give a function of the job's arguments"),
        ({"skip_if": lambda customer: True}, "its skip_if takes 'customer', which is not an argument of the job"),
    ],
)
def test_what_cannot_run_around_a_job_is_refused_where_it_is_defined(options, words):
    with pytest.raises(ConfigError, match=words):
        job("test.refused", **options)(function)
    assert REGISTRY.known("test.refused") is None


def test_a_class_is_checked_as_a_function(monkeypatch):
    with pytest.raises(ConfigError, match="asynchronous cannot run around it"):

        class Refused(Job, name="test.refused", around=[asynchronous]):
            order: int

            def handle(self) -> None: ...


class Limit:
    """A middleware with settings."""

    def __call__(self, job: Current) -> Iterator[None]:
        yield


def silent(job: Current) -> Iterator[None]:
    if job.id == "":
        yield


def twice(job: Current) -> Iterator[None]:
    yield
    yield


def replaces(job: Current) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise OSError("another") from error


def attempt(around: list[object], error: BaseException | None = None, handler: Callable[..., object] | None = None):
    """What comes of an attempt at a job that raises this, or with this handler."""

    def returns(order: int = 1) -> str:
        if error is not None:
            raise error
        return "returned"

    name = "test.layered"
    job(name, around=around)(handler or returns)
    try:
        task = REGISTRY.find(name).bind(order=1)
        set_current(Current(decode(payload("a"), 1), "default"))
        return task.run()
    finally:
        set_current(None)
        del REGISTRY._handlers[name]


def test_a_coroutine_that_a_plain_function_returns_runs_inside_of_the_middleware():
    seen: list[str] = []

    def around(job: Current) -> Iterator[None]:
        seen.append("enters")
        try:
            yield
        except KeyError:
            seen.append("catches")

    async def lost(order: int) -> None:
        seen.append("runs")
        raise KeyError(order)

    @wraps(lost)
    def decorated(order: int = 1) -> object:
        return lost(order)

    returned = attempt([around], handler=decorated)
    assert ["enters"] == seen
    assert asyncio.run(returned) is None
    assert ["enters", "runs", "catches"] == seen


def test_a_job_inside_middleware_returns_what_it_returns():
    assert "returned" == attempt([plain, Limit()])


@each("around", [[plain], [Limit(), plain]])
@each("error", [ValueError("one"), StopIteration("two"), SystemExit(3), GeneratorExit()])
def test_an_error_passes_through_as_it_is(around, error):
    with pytest.raises(type(error)) as caught:
        attempt(around, error)
    assert error is caught.value


def test_an_error_may_be_replaced():
    with pytest.raises(OSError, match="another"):
        attempt([plain, replaces], ValueError("one"))


@each(("around", "words"), [([silent], "silent did not yield; to leave the job out, call"), ([twice], "yielded twice")])
def test_a_middleware_that_does_not_yield_once_is_named(around, words):
    with pytest.raises(RuntimeError, match=words):
        attempt(around)
