"""``@around``: hooks around every attempt, by the worker's own code in this process."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from queuepool import around, current, job, on
from queuepool.events import HookRaised
from queuepool.events.listeners import LISTENERS
from queuepool.jobs.around import HOOKS
from queuepool.jobs.connecting import default_queue
from queuepool.jobs.current_job import Current
from queuepool.testing import run_now
from queuepool.testing.attempts import Attempt

_seen: ContextVar[str] = ContextVar("seen", default="nothing")
#: what jobs and hooks did
steps: list[str] = []


@job("around.ok")
def ok() -> None:
    steps.append(f"job {_seen.get()}")


@ok.after_succeeded
def ok_succeeded() -> None:
    steps.append(f"after_succeeded {_seen.get()}")


@job("around.awaits")
async def awaits() -> None:
    await asyncio.sleep(0)
    steps.append(f"job {_seen.get()}")


ERRORS = {kind.__name__: kind for kind in (ValueError, SystemExit, StopIteration)}


@job("around.raises")
def raises(kind: str = "ValueError") -> None:
    raise ERRORS[kind]("as asked")


def outer(job: Current) -> Iterator[None]:
    before = _seen.set("within")
    steps.append(f"enter outer {job.name} {job is current()}")
    try:
        yield
    except BaseException as error:
        steps.append(f"saw {type(error).__name__}")
    finally:
        _seen.reset(before)
        steps.append("leave outer")


def inner(job: Current) -> Iterator[None]:
    steps.append("enter inner")
    yield
    steps.append("leave inner")


@pytest.fixture(autouse=True)
def unhooked() -> Iterator[None]:
    """No hook outlives its test."""
    steps.clear()
    yield
    HOOKS.clear()


def ran(*hooks: Callable[..., Any], dispatch: Callable[[], object] = ok.dispatch) -> tuple[Attempt, list[HookRaised]]:
    """One attempt with these hooks, and the complaints about them."""
    raised: list[HookRaised] = []
    for hook in hooks:
        around(hook)
    LISTENERS.add(HookRaised, raised.append)
    try:
        with run_now(raises=False) as found:
            dispatch()
    finally:
        LISTENERS._by_class[HookRaised].remove(raised.append)
    [attempt] = found.attempts
    return attempt, raised


def test_hooks_are_entered_in_order_and_left_in_reverse_around_the_job_and_its_own_hook():
    ran(outer, inner)

    assert [
        "enter outer around.ok True", "enter inner", "job within", "after_succeeded within", "leave inner",
        "leave outer",
    ] == steps  # fmt: skip


def test_an_async_job_runs_in_the_context_of_its_hooks():
    ran(outer, dispatch=awaits.dispatch)

    assert "job within" in steps
    assert "nothing" == _seen.get()


@pytest.mark.parametrize("kind", ERRORS)
def test_a_hook_sees_what_the_job_raises_and_cannot_swallow_it(kind):
    attempt, raised = ran(outer, inner, dispatch=lambda: raises.dispatch(kind))

    assert "failed" == attempt.outcome
    assert ERRORS[kind] is type(attempt.error)
    assert [] == raised
    assert [f"saw {kind}"] == [step for step in steps if "saw" in step]


def test_the_traceback_of_a_job_has_no_frame_of_a_hook():
    attempt, _ = ran(outer, inner, dispatch=raises.dispatch)
    assert attempt.error is not None
    names = [frame.name for frame in traceback.extract_tb(attempt.error.__traceback__)]

    assert "raises" == names[-1]
    assert not {"outer", "inner", "leave"} & set(names)


def test_hooks_are_around_an_attempt_that_cannot_begin_too():
    ran(outer, dispatch=lambda: default_queue().push("around.ok", ["no such"]))

    assert ["enter outer around.ok True", "saw BadArguments", "leave outer"] == steps


def raises_first(job: Current) -> Iterator[None]:
    raise KeyError("no")
    yield


def exits_first(job: Current) -> Iterator[None]:
    sys.exit(3)
    yield


def raises_last(job: Current) -> Iterator[None]:
    try:
        yield
    finally:
        raise KeyError("no")


def exits_last(job: Current) -> Iterator[None]:
    try:
        yield
    finally:
        sys.exit(3)


def never_yields(job: Current) -> Iterator[None]:
    return
    yield


def yields_twice(job: Current) -> Iterator[None]:
    with suppress(ValueError):
        yield
    yield


def never_ends(job: Current) -> Iterator[None]:
    for _ in range(3):  # as many as are taken from it here: Python itself complains about more
        try:
            yield
        except BaseException:
            continue


WORDS = {
    raises_first: "'no'", exits_first: "3", raises_last: "'no'", exits_last: "3", never_yields: "it did not yield",
    yields_twice: "it yielded twice: what follows its second yield has not run",
    never_ends: "generator ignored GeneratorExit",
}  # fmt: skip


@pytest.mark.bad_input("B155")
@pytest.mark.parametrize("bad", WORDS, ids=lambda hook: hook.__name__)
@pytest.mark.parametrize(("dispatch", "outcome"), [(ok.dispatch, "done"), (raises.dispatch, "failed")])
def test_a_hook_that_misbehaves_is_reported_once_and_changes_nothing(bad, dispatch, outcome):
    attempt, raised = ran(outer, bad, inner, dispatch=dispatch)

    assert (outcome, outcome == "failed") == (attempt.outcome, isinstance(attempt.error, ValueError))
    assert [(f"around {__name__}.{bad.__name__}", WORDS[bad])] == [(one.hook, str(one.error)) for one in raised]
    assert "leave outer" == steps[-1]


@pytest.mark.bad_input("B157")
@pytest.mark.parametrize("hook", [print, lambda job: None, 5], ids=["builtin", "lambda", "number"])
def test_what_is_no_generator_function_is_refused_where_it_is_defined(hook):
    with pytest.raises(TypeError, match=r"@around .* must be a generator function with one yield"):
        around(hook)


@pytest.mark.bad_input("B157")
def test_an_async_hook_is_refused_where_it_is_defined():
    with pytest.raises(TypeError, match=r"around .*asynchronous: it must be a generator function"):

        @around
        async def asynchronous(job: Current):
            yield


def test_a_hook_stays_a_function():
    assert inner is around(inner)
    assert on is not around
