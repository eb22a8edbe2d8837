"""Steps side by side, within each other, in hooks and in threads that are left behind: none is cut in its effect."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from sqlalchemy import text

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.stores.sql.client import SqlClient
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site, is_gone
from tests.support.redis_server import start_redis

APP = ("--modules", "tests.support.stepapp", "--max-crashes", "0")
BESIDE = ("--concurrency", "4")
#: seconds within which a job leaves its worker
SOON = 20.0
#: of a server that has its data after a kill
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")

pytestmark = pytest.mark.every_store("place")


@pytest.fixture(params=["redis", "sqlite"])
def place(request: pytest.FixtureRequest) -> Iterator[Site]:
    with site_on(request.param, request) as site:
        yield site


def counted(site: Site, event: str = "effect") -> Counter[str]:
    return Counter(line["name"] for line in site.trail(event=event))


def attempts(site: Site) -> list[int]:
    return [line["attempt"] for line in site.trail(event="start")]


@pytest.mark.by_turns("name", "more")
@pytest.mark.parametrize(
    ("name", "more"), [("together", ()), ("atogether", ()), ("atogether", BESIDE)], ids=["threads", "tasks", "beside"]
)
def test_a_restart_waits_for_the_steps_that_run_beside_the_first_to_end(site, name, more):
    first, second = str(site.path / "first"), str(site.path / "second")
    with site.pool(*APP, "--workers", "1", *more):
        job = site.queue.push(name, {"gates": [first, second]})
        eventually(lambda: len(counted(site, "begin")) == 2)
        site.run("restart", *site.where)
        eventually(lambda: len(site.trail(event="stopping")) == 2)
        (site.path / "first").touch()
        eventually(lambda: first in site.queue.stores.steps.of_job(job))
        assert [1] == attempts(site)
        (site.path / "second").touch()
        eventually(lambda: site.trail(event="end"))

    assert {1} == {*counted(site, "begin").values()} == {*counted(site).values()}
    assert [1, 1] == attempts(site)


@pytest.mark.thorough("steps beside steps, in threads and coroutines; test_steps.py has one after the other")
@pytest.mark.parametrize("rows", [False, True], ids=["a step", "a cursor"])
def test_a_step_is_not_left_in_its_middle_by_one_within_it(place, rows):
    with place.pool(*APP, "--workers", "1") as pool:
        place.queue.push("nested", {"gate": str(place.path / "gate"), "rows": rows})
        eventually(lambda: counted(place, "begin"))
        pool.signal(signal.SIGTERM)
        eventually(lambda: place.trail(event="stopping"))
        (place.path / "gate").touch()
        assert 0 == pool.wait(SOON)
    assert not place.trail(event="end")
    assert 1 == place.queue.sizes("default").ready

    with place.pool(*APP, "--workers", "1"):
        eventually(lambda: place.trail(event="end"))
    assert {1} == {*counted(place).values()}
    assert 1 == counted(place)["rest"]


@pytest.mark.by_turns("more")
@pytest.mark.parametrize("more", [(), BESIDE], ids=["alone", "beside"])
def test_the_hook_of_a_job_that_has_succeeded_is_not_left(site, more):
    with site.pool(*APP, "--workers", "1", *more) as pool:
        site.queue.push("tests.support.stepapp.Hooked", {"gate": str(site.path / "gate")})
        eventually(lambda: counted(site, "begin"))
        pool.signal(signal.SIGTERM)
        eventually(lambda: site.trail(event="stopping"))
        (site.path / "gate").touch()
        assert 0 == pool.wait(SOON)

    assert {"first": 1, "hooked": 1, "rest": 1} == counted(site)
    assert 0 == site.queue.size()


@pytest.mark.thorough("steps beside steps, in threads and coroutines; test_steps.py has one after the other")
@pytest.mark.by_turns("more")
@pytest.mark.parametrize("more", [(), BESIDE], ids=["alone", "beside"])
def test_a_thread_that_a_job_has_left_behind_takes_no_row_from_the_next_job(place, more):
    gates = {name: str(place.path / name) for name in ("first", "left", "never")}
    with place.pool(*APP, "--workers", "1", *more) as pool:
        place.queue.push("leaves-a-thread", {"gate": gates["first"], "left": gates["left"]})
        eventually(lambda: place.trail(event="left", row=1))
        (place.path / "first").touch()
        eventually(lambda: not place.queue.size())
        place.queue.push("waits-in-its-rows", {"gate": gates["never"]})
        eventually(lambda: counted(place, "begin")["row0"])
        (place.path / "left").touch()
        eventually(lambda: place.trail(event="left behind"))
        [worker] = pool.workers()
        os.kill(worker, signal.SIGKILL)
        eventually(lambda: len(attempts(place)) == 2)
        (place.path / "never").touch()
        eventually(lambda: place.trail(event="end"))

    assert {"row0": 2, "row1": 1, "row2": 1} == counted(place, "begin")
    if not more:  # beside others, a bare thread has no job
        assert [0, 1] == [line["row"] for line in place.trail(event="left")]


@pytest.mark.thorough("steps beside steps, in threads and coroutines; test_steps.py has one after the other")
@pytest.mark.by_turns("more")
@pytest.mark.parametrize("more", [(), BESIDE], ids=["alone", "beside"])
def test_two_cursors_side_by_side_lose_no_row(place, more):
    kills, chance = 0, random.Random(11)
    with place.pool(*APP, "--workers", "1", *more) as pool:
        job = place.queue.push("aside", {})
        while not place.trail(event="end"):
            wanted = len(place.trail(event="effect")) + chance.randrange(5, 30)
            eventually(lambda wanted=wanted: len(place.trail(event="effect")) >= wanted or place.trail(event="end"))
            for pid in pool.workers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                kills += 1
        eventually(lambda: not place.queue.size())

    found = counted(place)
    assert {f"{name}{row}" for name in ("left", "right") for row in range(60)} == {*found}
    assert sum(found.values()) - len(found) <= 2 * kills
    assert {} == place.queue.stores.steps.of_job(job)


@pytest.mark.thorough("steps beside steps, in threads and coroutines; test_steps.py has one after the other")
@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["imports", "aimports"])
def test_a_stop_while_the_store_is_away_does_not_wait_for_it_at_a_row_and_uses_up_no_try(tmp_path, name):
    """Its place is on the board, and its worker has not died."""
    folder = tmp_path / "server"
    folder.mkdir()
    servers = [start_redis(str(folder), *DURABLE)]
    connection = ConnectionSettings(url=f"unix://{folder}/redis.sock")
    site = Site(connection, tmp_path, Queue(connection))
    try:
        with site.pool(*APP, "--workers", "1", "--stop-timeout", "60") as pool:
            site.queue.push(name, {"rows": 100_000, "pause": 0.01, "steps": 0})
            eventually(lambda: counted(site)["row3"])
            [worker] = pool.workers()
            servers[0].kill()
            servers[0].wait()
            eventually(lambda: time.time() - site.trail(event="effect")[-1]["at"] > 1.0)  # it waits for the store
            pool.signal(signal.SIGTERM)
            eventually(lambda: is_gone(worker))
            servers.append(start_redis(str(folder), *DURABLE))
            assert 0 == pool.wait()
        done = len(counted(site))
        with site.pool(*APP, "--workers", "1"):
            eventually(lambda: len(counted(site)) > done)
        assert {1} == {*counted(site).values()}
        assert [1, 1] == [line["attempt"] for line in site.trail(event="start")]
        assert ("job given back" in pool.log(), "job lost its worker" in pool.log()) == (True, False)
    finally:
        for server in servers:
            server.kill()
            server.wait()
        site.queue.close()


@pytest.mark.thorough("steps beside steps, in threads and coroutines; test_steps.py has one after the other")
def test_a_job_that_catches_what_its_step_raises_ends_without_the_table(request):
    with site_on("sqlite", request) as site:
        with closing(SqlClient(site.queue.settings.url)) as client:
            client.transaction(lambda connection: connection.execute(text("drop table queuepool_steps")))
        with site.pool(*APP, "--workers", "1"):
            site.queue.push("catches", {})
            eventually(lambda: site.trail(event="end"))
            eventually(lambda: not site.queue.size())
        assert "has no table queuepool_steps" in site.trail(event="caught")[0]["error"]
        assert 0 == site.queue.stores.failed.count()


def test_a_step_that_would_block_the_jobs_beside_it_is_refused(site):
    with site.pool(*APP, "--workers", "1", *BESIDE):
        site.queue.push("blocks", {})
        eventually(lambda: site.trail(event="end"))

    assert [
        "step 'first' would block the other jobs of its worker: give it a coroutine function, and await it",
        "cursor 'rows' would block the other jobs of its worker: go through it with `async for`",
    ] == [line["error"] for line in site.trail(event="caught")]
    assert {} == counted(site)


def test_alone_it_may_block(site):
    with site.pool(*APP, "--workers", "1"):
        site.queue.push("blocks", {})
        eventually(lambda: site.trail(event="end"))

    assert {"first": 1, "row1": 1, "row2": 1} == counted(site)
