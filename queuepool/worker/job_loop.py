"""The event loop of a worker's async jobs: clean after each of them, except for what clients keep open on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

#: seconds that cancelled tasks have to end, within the timeout of the job that left them
_CANCEL_TIMEOUT = 5.0
_Task = asyncio.Task[object]


class Leftovers(NamedTuple):
    """How many leftover tasks were cancelled, and the tasks that did not end."""

    cancelled: int
    refusing: set[_Task]


class JobLoop:
    """Runs the coroutines of one job after another."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def run(self, work: Awaitable[object]) -> object:
        """Run until it is done, even if other code stops the loop meanwhile. Raises whatever it raises."""
        task = self._loop.create_task(_awaited(work))
        ended: list[_Task] = []
        task.add_done_callback(ended.append)
        task.add_done_callback(lambda _: self._loop.stop())
        try:
            # An earlier job's timer, or this job's last step, may also stop the loop, before our callback has run; a
            # callback left over would stop the next job's run.
            while not ended:
                self._loop.run_forever()
            return task.result()
        finally:
            if task.done() and not task.cancelled():
                task.exception()  # retrieved, even if something else is raised: SystemExit bypasses the task
            del task, ended[:]  # the error's traceback holds this frame, and the task holds the error

    def clear(self) -> Leftovers:
        """Cancel leftover tasks and wait for them to end. This counts as the job's time: its alarm is still set."""
        tasks = asyncio.all_tasks(self._loop)
        if not tasks:
            return Leftovers(0, tasks)
        try:
            found = self.run(_cleared())
        # Whatever a cancelled task raises, even SystemExit, must end neither the worker nor the next job.
        except BaseException:  # noqa: BLE001
            return Leftovers(len(tasks), tasks)
        return found if isinstance(found, Leftovers) else Leftovers(0, tasks)

    def close(self) -> None:
        self._loop.close()


async def _awaited(work: Awaitable[object]) -> object:
    return await work


async def _cleared() -> Leftovers:
    await asyncio.sleep(0)  # tasks about to end do so by themselves
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    until = loop.time() + _CANCEL_TIMEOUT
    cancelled: set[_Task] = set()
    while (remaining := asyncio.all_tasks() - {me}) and (now := loop.time()) < until:
        for task in remaining - cancelled:
            if not _closes_a_generator(task):
                task.cancel()
                cancelled.add(task)
        await asyncio.wait(remaining, timeout=until - now)
    return Leftovers(len(cancelled), remaining)


def _closes_a_generator(task: _Task) -> bool:
    """Whether it is the loop's own task, closing an unexhausted async generator: it ends soon; no job left it."""
    return type(task.get_coro()).__name__.startswith("async_generator")
