"""Tasks of jobs side by side: each job's own are ended with it, and no others."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from array import array
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from queuepool.board.lane_layout import ON_CPU
from queuepool.jobs.current_job import Current
from queuepool.payload.envelope import decode
from queuepool.worker.lane_tasks import JobTask, LaneTasks, can_end, make_task
from tests.support.loops import LOOPS
from tests.support.samples import payload

WORDS, REALS = array("q", bytes(64)), array("d", bytes(64))
#: as much of a slot's lanes as a step writes to
LANES: Any = SimpleNamespace(wholes=WORDS, reals=REALS, count=20, hook=20, common=21)
#: the word for a task of no job's
COMMON = 22
Run = Callable[[Awaitable[object]], object]
#: seconds that nothing here takes
_LONG = 60.0


@pytest.fixture(params=LOOPS)
def run(request):
    loop = LOOPS[request.param]()
    loop.set_task_factory(partial(make_task, LANES))
    yield loop.run_until_complete
    loop.close()


def lane(number: int = 0) -> LaneTasks:
    return LaneTasks(LANES, number)


def begun(tasks: LaneTasks, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return tasks.begin(asyncio.get_running_loop(), work, contextvars.copy_context())


def leave(work: Coroutine[Any, Any, Any], **options: Any) -> None:
    """Make a task and forget it, as jobs do."""
    asyncio.get_running_loop().create_task(work, **options)


async def ticks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_job_that_leaves_nothing_has_nothing_left(run: Run):
    async def test() -> object:
        one = lane()
        result = await begun(one, asyncio.sleep(0, 7))
        return result, one.left

    assert (7, set()) == run(test())


def test_a_job_that_has_just_ended_counts_as_one_that_ends_by_itself(run: Run):
    """As nothing is left of it, nobody need be killed for it."""
    job = Current(decode(payload("a")), "default")

    async def test() -> list[bool]:
        one = lane()
        one.job, one.is_plain = job, True
        task = begun(one, asyncio.sleep(0))
        assert isinstance(task, JobTask)
        before = can_end(task)
        await task
        return [before, can_end(task), can_end(None)]

    assert [False, True, True] == run(test())


def test_what_a_job_leaves_is_cancelled_and_its_neighbours_tasks_are_not(run: Run):
    ended = []

    async def long(name: str) -> None:
        try:
            await asyncio.sleep(_LONG)
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async def job(name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(long(name))
        await asyncio.sleep(0)
        return task

    async def test() -> None:
        first, second = lane(0), lane(1)
        ours = asyncio.create_task(long("the pool's"))
        left, kept = await asyncio.gather(begun(first, job("first")), begun(second, job("second")))
        found = await first.clear(_LONG)
        assert (1, set()) == found
        assert ["first"] == ended
        assert [True, False, False] == [left.cancelled(), kept.done(), ours.done()]
        assert {kept} == second.left
        assert 1 == (await second.clear(_LONG)).cancelled
        ours.cancel()

    run(test())


def test_tasks_of_tasks_are_the_jobs_also_in_a_context_of_their_own(run: Run):
    async def grandchild() -> None:
        await asyncio.sleep(_LONG)

    async def child() -> None:
        leave(grandchild())
        await asyncio.sleep(_LONG)

    async def job() -> None:
        leave(child(), context=contextvars.Context())
        await asyncio.wait_for(asyncio.sleep(0), 5)
        await ticks()

    async def test() -> int:
        one = lane()
        await begun(one, job())
        assert 2 == len(one.left)
        return (await one.clear(_LONG)).cancelled

    assert 2 == run(test())


def test_a_task_may_be_made_in_the_context_in_which_it_is_made(run: Run):
    contexts = []

    async def job() -> None:
        await asyncio.get_running_loop().create_task(asyncio.sleep(0), context=contexts[0])

    async def test() -> None:
        contexts.append(contextvars.copy_context())
        one = lane()
        await one.begin(asyncio.get_running_loop(), job(), contexts[0])
        await one.clear(_LONG)

    run(test())


def test_the_steps_of_a_jobs_tasks_are_its_lanes(run: Run):
    seen = []

    async def child() -> None:
        await asyncio.sleep(0)
        seen.append(WORDS[ON_CPU])

    async def job() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
        await asyncio.gather(child(), child())
        seen.append(WORDS[ON_CPU])

    async def test() -> None:
        await begun(lane(6), job())
        seen.append(WORDS[ON_CPU])

    run(test())

    assert [7, 7, 7, 7, COMMON] == seen


def test_a_task_that_refuses_to_end_is_known_in_time(run: Run):
    stop = []

    async def refuses() -> None:
        while not stop:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)

    async def job() -> None:
        leave(refuses())

    async def test() -> None:
        one = lane()
        await begun(one, job())
        found = await one.clear(0.01)
        assert (1, one.left) == found
        assert 1 == len(one.left)
        stop.append(True)
        await asyncio.wait(one.left)
        assert set() == one.left

    run(test())


def test_what_is_left_is_cancelled_even_if_there_is_no_time(run: Run):
    async def job() -> None:
        leave(asyncio.sleep(_LONG))

    async def test() -> None:
        one = lane()
        await begun(one, job())
        assert 1 == (await one.clear(0.0)).cancelled
        await ticks()
        assert set() == one.left

    run(test())


def test_a_task_that_a_cancelled_one_makes_is_cancelled_too(run: Run):
    async def leaves_another() -> None:
        try:
            await asyncio.sleep(_LONG)
        finally:
            leave(asyncio.sleep(_LONG))

    async def job() -> None:
        leave(leaves_another())
        await asyncio.sleep(0)

    async def test() -> object:
        one = lane()
        await begun(one, job())
        return await one.clear(_LONG)

    assert (2, set()) == run(test())


@pytest.mark.by_turns("run")
def test_a_generator_that_is_closed_in_anothers_code_is_nobodys(run: Run):
    seen = []

    async def numbers():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            seen.append(WORDS[ON_CPU])

    async def job() -> None:
        # A cycle, so that it is closed where garbage is collected.
        cycle: list[object] = []
        generator = numbers()
        cycle += [cycle, generator]
        await anext(generator)

    async def collects() -> None:
        gc.collect()
        await asyncio.sleep(0)

    async def test() -> None:
        await begun(lane(0), job())
        other = lane(1)
        await begun(other, collects())
        assert set() == other.left
        await ticks()

    run(test())

    assert [0] == seen


def test_what_awaits_a_neighbours_task_gets_its_result_or_is_cancelled_alone(run: Run):
    made: list[asyncio.Task[Any]] = []

    async def offers() -> None:
        made.extend(asyncio.create_task(asyncio.sleep(seconds, 7)) for seconds in (0.0, _LONG))
        await asyncio.sleep(_LONG)

    async def takes() -> int:
        early, done = await made[0], await made[0]
        assert early == done == 7
        async with asyncio.timeout(0.01):
            await made[1]
        return 0

    async def test() -> None:
        first, second = lane(0), lane(1)
        offering = begun(first, offers())
        await asyncio.sleep(0)
        taking = begun(second, takes())
        with pytest.raises(TimeoutError):
            await taking
        assert not made[1].done()
        assert 1 == (await first.clear(_LONG)).cancelled
        offering.cancel()

    run(test())


def test_what_is_no_coroutine_is_refused_as_ever(run: Run):
    async def job() -> None:
        asyncio.get_running_loop().create_task(7)  # type: ignore[arg-type]

    async def test() -> None:
        await begun(lane(), job())

    with pytest.raises(TypeError, match="coroutine was expected"):
        run(test())
