"""A coroutine that says at each step which lane has the processor is the same coroutine for everybody else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import traceback
from array import array
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from queuepool.board.board import Board
from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE
from queuepool.board.lanes import Lanes
from queuepool.worker.lane_tasks import Stepped
from tests.support.loops import LOOPS, Loop

WORDS, REALS = array("q", bytes(64)), array("d", bytes(64))
#: as much of a slot's lanes as a step writes to
LANES: Any = SimpleNamespace(wholes=WORDS, reals=REALS)


@pytest.fixture(params=LOOPS)
def loop(request):
    loop = LOOPS[request.param]()
    yield loop
    loop.close()


def stepped(coroutine: Coroutine[Any, Any, Any], lane: int = 0) -> Stepped:
    return Stepped(coroutine, LANES, lane)


def ran(loop: Loop, coroutine: Coroutine[Any, Any, Any], lane: int = 0) -> object:
    return loop.run_until_complete(loop.create_task(stepped(coroutine, lane)))


def test_the_lane_that_runs_is_on_the_board_and_no_other(loop):
    seen = []

    async def job() -> int:
        seen.append(WORDS[ON_CPU])
        await asyncio.sleep(0.001)
        seen.append(WORDS[ON_CPU])
        return 7

    async def idle() -> None:
        await asyncio.sleep(0)
        seen.append(WORDS[ON_CPU])

    async def both() -> object:
        found, _ = await asyncio.gather(loop.create_task(stepped(job(), 4)), idle())
        return found

    assert 7 == loop.run_until_complete(both())
    assert ([5, 0, 5], 0) == (seen, WORDS[ON_CPU])


def test_a_step_within_a_step_gives_the_processor_back():
    seen = []

    async def inner() -> None:
        seen.append(WORDS[ON_CPU])

    async def outer() -> None:
        with pytest.raises(StopIteration):
            stepped(inner(), 2).send(None)
        seen.append(WORDS[ON_CPU])

    with pytest.raises(StopIteration):
        stepped(outer(), 1).send(None)

    assert ([3, 2], 0) == (seen, WORDS[ON_CPU])


@pytest.mark.parametrize("way", ["send", "throw", "close"])
def test_a_step_with_a_step_within_has_begun_when_it_began(way):
    seen = []

    async def inner() -> None:
        with suppress(BaseException):
            await asyncio.sleep(0)
        seen.append(REALS[ON_CPU_SINCE])

    async def outer() -> None:
        seen.append(REALS[ON_CPU_SINCE])
        within = stepped(inner(), 2)
        within.send(None)
        with suppress(StopIteration):
            within.close() if way == "close" else getattr(within, way)(None if way == "send" else ValueError())
        seen.append(REALS[ON_CPU_SINCE])

    with pytest.raises(StopIteration):
        stepped(outer(), 1).send(None)

    began, later, after = seen
    assert began < later
    assert began == after


async def fails() -> None:
    await asyncio.sleep(0)
    raise ValueError("no")


async def awaits(make: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
    await asyncio.get_running_loop().create_task(make(fails()))


def frames_of(loop: Loop, make: Callable[[Coroutine[Any, Any, Any]], Any]) -> list[str]:
    with pytest.raises(ValueError, match="no") as raised:
        loop.run_until_complete(loop.create_task(make(awaits(make))))
    return [frame.name for frame in traceback.extract_tb(raised.tb)]


def test_a_traceback_is_the_same_also_through_a_task_of_the_job(loop):
    assert frames_of(loop, lambda plain: plain) == frames_of(loop, stepped)


def test_a_cancellation_comes_in_and_its_traceback_is_the_same(loop):
    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            assert 4 == WORDS[ON_CPU]
            await asyncio.sleep(0)

    async def cancels() -> list[str]:
        task = loop.create_task(stepped(waits(), 3))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        return [frame.name for frame in traceback.extract_tb(raised.tb)]

    frames = loop.run_until_complete(cancels())
    assert "waits" in frames
    assert not {"throw", "send"} & set(frames)
    assert 0 == WORDS[ON_CPU]


def test_async_generators_timeouts_and_groups_pass_through(loop):
    async def numbers():
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def job() -> list[int]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            one = group.create_task(asyncio.sleep(0, 8))
        return [number async for number in numbers()] + [one.result()]

    assert [0, 1, 2, 8] == ran(loop, job())


def test_a_task_shows_the_coroutine_that_was_wrapped(loop):
    coroutine = fails()
    task = loop.create_task(stepped(coroutine))

    assert "fails() running at" in repr(task)
    assert [coroutine.cr_frame] == task.get_stack()
    with pytest.raises(ValueError, match="no"):
        loop.run_until_complete(task)


def test_it_can_be_closed_and_awaited(loop):
    closed = []

    async def job() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            closed.append(WORDS[ON_CPU])

    async def awaits_it() -> object:
        return await stepped(asyncio.sleep(0, 9))

    one = stepped(job(), 5)
    loop.call_soon(one.send, None)
    loop.call_soon(loop.stop)
    loop.run_forever()
    one.close()

    assert [6] == closed
    assert 9 == loop.run_until_complete(awaits_it())


def test_a_process_that_dies_in_a_step_has_left_the_lane_on_the_board(tmp_path):
    board = Board.create(tmp_path / "board.1-1", capacity=1, lanes=3)

    async def dies() -> None:
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if 0 == pid:
        try:
            mapped = lanes_of(Board.open(board.path, write=True).mapped())
            fresh = asyncio.new_event_loop()
            other = fresh.create_task(Stepped(asyncio.sleep(60), mapped, 0))
            fresh.call_later(60, other.cancel)
            fresh.run_until_complete(fresh.create_task(Stepped(dies(), mapped, 2)))
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)

    assert (signal.SIGKILL, 2) == (os.WTERMSIG(status), lanes_of(board).on_cpu)


# In a process of its own, which forks: its first step ends the copy, whatever it does then.
_FORKS = """
import asyncio, os, sys
from array import array
from types import SimpleNamespace
from queuepool.worker.lane_tasks import Stepped, end_copies

words, copies = array("q", bytes(64)), []
lanes = SimpleNamespace(wholes=words, reals=array("d", bytes(64)))
end_copies()

async def job(way):
    copies.append(os.fork())
    if copies[-1] == 0:
        if way == "fails":
            raise SystemExit(7)
        if way == "returns":
            return
        await asyncio.sleep(0)
        print("the copy goes on", flush=True)
    await asyncio.sleep(0)

async def test():
    neighbour = asyncio.create_task(Stepped(asyncio.sleep(0.01), lanes, 1))
    await asyncio.create_task(Stepped(job(sys.argv[1]), lanes, 0))
    await neighbour
    print(os.waitstatus_to_exitcode(os.waitpid(copies[0], 0)[1]), words[0], flush=True)

asyncio.run(test())
"""


@pytest.mark.by_turns("way", "code")
@pytest.mark.parametrize(("way", "code"), [("returns", 70), ("awaits", 70), ("fails", 7)])
def test_a_copy_of_the_worker_that_a_job_forks_ends_with_that_step(way, code):
    done = subprocess.run([sys.executable, "-c", _FORKS, way], capture_output=True, text=True, timeout=50, check=True)

    assert f"{code} 0\n" == done.stdout


def lanes_of(board: Board) -> Lanes:
    lanes = board.slots[0].lanes
    assert lanes
    return lanes
