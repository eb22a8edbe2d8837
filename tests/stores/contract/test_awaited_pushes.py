"""Coroutines push through one queue: thousands at once, cancelled, in closed loops, before and after a fork."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from queuepool import Job, configure, context, job
from queuepool.errors import NotSendable, NotTracked, StoreDown
from queuepool.jobs.client import Queue
from queuepool.jobs.in_threads import MOST
from queuepool.payload.envelope import OBJECT_JOB, decode
from queuepool.payload.lease import Ending, StateRecord
from tests.support.eventually import eventually
from tests.support.store_contract import OURS

pytestmark = pytest.mark.every_store("connection")  # what is awaited are the threads, which know no store


@pytest.fixture
def queue(connection, built) -> Iterator[Queue]:
    shared = configure(Queue(replace(connection, timeout=30.0)))  # a busy machine's server takes its time
    yield shared
    shared.close()
    eventually(lambda: not pushing_threads())


def pushing_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "queuepool push"]


def jobs_of(store) -> list:
    """All that are ready; a store may give them in several parts."""
    found = []
    while leases := store.reserve(["default"], OURS, 500).leases:
        found += [decode(lease.receipt, 0) for lease in leases]
    return found


@job("async.send")
def send(order: int, to: object = None) -> None: ...


@job("async.once", unique="{order}")
def once(order: int) -> None: ...


class Report(Job, name="async.report"):
    order: int

    def handle(self) -> None: ...


@pytest.mark.thorough("thousands at once")
def test_thousands_are_pushed_at_once_over_few_connections(queue, store):
    async def push() -> list[str]:
        return await asyncio.gather(*(queue.apush("ok") for _ in range(2000)))

    pushed = asyncio.run(push())

    assert len(pushing_threads()) <= MOST
    assert sorted(pushed) == sorted(one.id for one in jobs_of(store))


def test_every_verb_has_one_that_is_awaited(queue, store):
    async def push() -> list[object]:
        return [
            await send.adispatch(1, to="a"),
            await send.using(queue="other").adispatch(order=2),
            await send.alater(60, order=3),
            await send.abulk([{"order": 4}, [5]]),
            await send.using(delay=60).abulk(iter([{"order": 6}])),
            await Report(7).adispatch(),
            await Report(8).alater(60),
            await Report(9).using(queue="other").adispatch(),
            await Report.abulk([Report(10), Report(11)], queue="other"),
            await queue.apush("name", {"order": 12}, options={"tries": 3}),
            await queue.alater(60, "name"),
            await queue.abulk([("name", 13), ("name", 14)], queue="other"),
            await queue.apush_object("App\\Jobs\\Send", {"order": 15}, protected=["order"]),
            await once.adispatch(order=1),
            await once.adispatch(order=1),
            await queue.asize(),
            await queue.asize("other"),
        ]

    one, two, three, four_and_five, *_, again, size, others = asyncio.run(push())
    ready = jobs_of(store)

    assert ([36, 36, 36], 2) == ([len(identity) for identity in (one, two, three)], len(four_and_five))
    assert ("", 11, 6) == (again, size, others)
    assert ["async.send"] * 3 + ["async.report", "name", OBJECT_JOB, "async.once"] == [one.options.job for one in ready]
    assert ({"order": 1, "to": "a"}, [5]) == (ready[0].data, ready[2].data)


def test_the_callers_context_goes_with_the_job(queue, store):
    async def push(number: int) -> None:
        with context.scope(request=number):
            await queue.apush("ok", number)

    async def push_all() -> None:
        await asyncio.gather(*map(push, range(50)))

    asyncio.run(push_all())

    assert [(number, f"i:{number};") for number in range(50)] == sorted(
        (one.data, one.context["data"]["request"]) for one in jobs_of(store)
    )


def test_what_is_changed_after_the_coroutine_has_started_is_not_pushed(queue, store):
    data = {"to": ["a"], "cc": ({"name": "b"},), "of": {1}}

    async def push() -> None:
        pushing = [asyncio.create_task(queue.apush("ok", data)), asyncio.create_task(send.adispatch(1, to=data))]
        await asyncio.sleep(0)  # they begin
        data["to"].append("c")
        data["cc"][0]["name"] = "d"
        data["of"].add(2)
        await asyncio.gather(*pushing)

    asyncio.run(push())
    before = {"to": ["a"], "cc": [{"name": "b"}], "of": [1]}

    assert [before, {"order": 1, "to": before}] == sorted((one.data for one in jobs_of(store)), key=len, reverse=True)


def test_a_cancelled_push_is_stored_whole_or_not_at_all_and_the_queue_goes_on(queue, store):
    async def push() -> int:
        pushing = [asyncio.create_task(queue.abulk([("ok", None), ("ok", None)])) for _ in range(200)]
        await pushing[0]
        for task in pushing:
            task.cancel()
        done = await asyncio.gather(*pushing, return_exceptions=True)
        await queue.apush("last")
        return sum(isinstance(one, list) for one in done)

    returned = asyncio.run(push())
    queue.close()
    eventually(lambda: not pushing_threads())
    names = [one.name for one in jobs_of(store)]

    assert 1 == names.count("last")
    assert 0 == names.count("ok") % 2
    assert 2 * returned <= names.count("ok")  # a task may be cancelled after its push, before it goes on


@pytest.mark.bad_input("B125")
def test_errors_are_those_of_the_push_that_is_not_awaited(queue, store):
    async def wrong() -> None:
        with pytest.raises(NotSendable):
            await queue.apush("ok", object())
        with pytest.raises(TypeError):
            await send.adispatch()
        with pytest.raises(TypeError):
            await send.abulk([{"order": 1}, {"none": 2}])
        with pytest.raises(ValueError, match="is not a delay"):
            await queue.alater(float("nan"), "ok")
        endless: list[object] = []
        endless.append(endless)
        with pytest.raises(NotSendable):
            await queue.apush("ok", endless)

    asyncio.run(wrong())

    assert 0 == queue.size()


@pytest.mark.bad_input("B125")
def test_a_coroutine_outside_of_a_loop_is_one_that_asyncio_runs(queue):
    identity = asyncio.run(send.adispatch(order=1))
    with pytest.warns(RuntimeWarning, match="'JobFunction.adispatch' was never awaited"):
        send.adispatch(order=2)

    assert (36, 1) == (len(identity), queue.size())


@pytest.mark.fault("F76")
def test_a_loop_that_is_closed_in_mid_push_harms_no_other(queue, store):
    loop = asyncio.new_event_loop()
    abandoned = [loop.create_task(queue.apush("abandoned")) for _ in range(20)]
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    asyncio.run(queue.apush("after"))
    eventually(lambda: 21 == queue.size())
    for task in abandoned:
        task._log_destroy_pending = False  # it is what this test is about

    assert {"abandoned", "after"} == {one.name for one in jobs_of(store)}


@pytest.mark.fault("F76")
def test_a_closed_queue_pushes_nothing_more_and_keeps_nothing_waiting(queue, store):
    async def push() -> list[object]:
        pushing = [asyncio.create_task(queue.apush("ok")) for _ in range(500)]
        await pushing[0]
        queue.close()
        return await asyncio.gather(*pushing, return_exceptions=True)

    done = list[object]()
    # A loop that is held up hears of the first push when all have been made.
    eventually(lambda: done.extend(asyncio.run(push())) or any(isinstance(one, StoreDown) for one in done))
    refused = [one for one in done if isinstance(one, StoreDown)]

    assert {"the queue was closed before this push began: nothing was pushed"} == set(map(str, refused))
    assert sorted(one for one in done if isinstance(one, str)) == sorted(one.id for one in jobs_of(store))


def test_a_queue_that_has_pushed_before_a_fork_pushes_after_it_in_both_processes(queue, store, connection, tmp_path):
    script = """
        import asyncio, os, sys
        from queuepool.jobs.client import Queue
        from queuepool.config.settings import ConnectionSettings

        async def push(count):
            return await asyncio.gather(*(queue.apush("ok") for _ in range(count)))

        queue = Queue(ConnectionSettings(url=sys.argv[1], prefix=sys.argv[2], timeout=30.0))
        asyncio.run(push(20))
        parent = os.fork()
        asyncio.run(push(50))
        if parent:
            assert os.waitpid(parent, 0)[1] == 0
    """
    words = [connection.url, connection.prefix]
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), *words], check=True, timeout=60)

    assert 120 == queue.size()


def test_jobs_are_pushed_from_a_job_that_is_a_coroutine_and_from_threads_with_loops_of_their_own(queue, store):
    threads = [threading.Thread(target=lambda: asyncio.run(queue.apush("ok"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 8 == queue.size()
    assert os.getpid() == queue._threads._pid


def test_a_tracked_job_is_awaited(queue, store):
    async def follow() -> None:
        followed = await queue.apush("report", track=60)
        with pytest.raises(TimeoutError, match="is queued after"):
            await queue.await_job(followed, 0.05)
        waiting = asyncio.ensure_future(followed.await_job(60))
        [lease] = store.reserve(["default"], OURS, 1).leases
        done = b'{"state": "done", "name": "report", "queue": "default"}'
        store.finish(lease, Ending(state=StateRecord(followed, done, 60.0)))

        assert "done" == (await waiting).state
        with pytest.raises(NotTracked):
            await queue.await_job("never-was")

    asyncio.run(follow())
