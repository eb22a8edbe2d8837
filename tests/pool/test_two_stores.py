"""Jobs are in one store, failed jobs or control keys in another: either may be away while the other works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from queuepool.jobs.client import Queue
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.redis_server import Server

MANY = 40


def beside(site: Site, **urls: str) -> Iterator[Site]:
    """The site with something of it in another store."""
    connection = replace(site.connection, **urls)
    queue = Queue(connection)
    yield Site(connection, site.path, queue)
    queue.close()


def config(site: Site, **more: object) -> str:
    urls = {name: getattr(site.connection, name) for name in ("failed_url", "control_url", "maintenance_url")}
    keys = {**{name: url for name, url in urls.items() if url}, **more}
    return "[connection]\n" + "".join(f"{name} = {value}\n" for name, value in keys.items())


@pytest.fixture
def with_table(site: Site, sqlite_url: str) -> Iterator[Site]:
    client = SqlClient(sqlite_url, create=True)
    migrate(client)
    client.close()
    yield from beside(site, failed_url=sqlite_url)


@pytest.fixture
def with_server(site: Site, own_server: Server) -> Iterator[Site]:
    yield from beside(site, failed_url=f"unix://{own_server.path}")


@pytest.fixture
def with_control(site: Site, own_server: Server) -> Iterator[Site]:
    yield from beside(site, control_url=f"unix://{own_server.path}")


@pytest.fixture
def with_maintenance(site: Site, own_server: Server) -> Iterator[Site]:
    yield from beside(site, maintenance_url=f"unix://{own_server.path}")


def is_settled(site: Site, failed: int) -> bool:
    stores = site.queue.stores
    return (0, 0, failed) == (site.queue.size(), stores.forwarder.count(), stores.failed.count())


def statuses(site: Site) -> dict[str, object]:
    where = ("--runtime-dir", str(site.path / "run"))
    return json.loads(site.run("status", *where, "--json", check=False).stdout)[0]  # 4 until the master has looked


rarely = pytest.mark.thorough("what goes wrong rarely is seen when it is done often")


@pytest.mark.thorough("the next test has one such job; here are hundreds")
@pytest.mark.parametrize("times", [1, pytest.param(3, marks=rarely)])
def test_jobs_that_are_retried_and_fail_again_are_all_recorded_again(with_table, times):
    site = with_table
    site.queue.bulk([("do", {"mode": "raise"})] * MANY, options={"maxTries": 1})
    with site.pool("--workers", "2", config=config(site)):
        eventually(lambda: is_settled(site, MANY))
        for _ in range(times):
            site.run("retry", "all", *site.where, "-c", "pool.ini")
            eventually(lambda: is_settled(site, MANY))

    assert MANY <= len(site.trail(event="start"))


@pytest.mark.parametrize("times", [2, pytest.param(7, marks=rarely)])
def test_one_job_that_is_retried_and_fails_again_keeps_its_record(with_table, times):
    site = with_table
    job = site.push("raise", maxTries=1)
    with site.pool("--workers", "1", config=config(site)):
        for attempts in range(1, times + 1):
            eventually(lambda attempts=attempts: attempts == len(site.trail(event="start")) and is_settled(site, 1))
            [record] = site.queue.stores.failed.page()
            site.run("retry", record.id, *site.where, "-c", "pool.ini")
        eventually(lambda: is_settled(site, 1))

    assert job == json.loads(site.queue.stores.failed.page()[0].payload)["id"]


def test_while_the_failed_store_is_away_failed_jobs_wait_and_good_ones_are_done(with_server, own_server):
    site = with_server
    own_server.kill()
    with site.pool("--workers", "2", config=config(site)) as pool:
        for _ in range(5):
            site.push("raise", maxTries=1)
        eventually(lambda: 5 == site.queue.stores.forwarder.count())
        for _ in range(5):
            site.push("ok")
        eventually(lambda: 5 == len(site.trail(event="end")))
        eventually(lambda: 'store="failed store"' in pool.log())
        eventually(lambda: 5 == statuses(site)["unrecorded"])
        shown = site.run("status", "--runtime-dir", str(site.path / "run")).stdout

        own_server.start()
        eventually(lambda: is_settled(site, 5))
        eventually(lambda: (None, 0) == (statuses(site)["failed_store_lost"], statuses(site)["unrecorded"]))
        eventually(lambda: "store regained" in pool.log())  # the main thread says what another has seen

    assert "the failed store has been away since" in shown
    assert "failed jobs wait for the failed store: 5" in shown
    assert 1 == pool.log().count("store lost")
    assert 1 == pool.log().count("store regained")


def test_a_lone_worker_records_what_failed_before_it_leaves(with_table):
    with_table.push("raise", maxTries=1)
    (with_table.path / "pool.ini").write_text(config(with_table))

    with_table.work("-c", "pool.ini")

    assert is_settled(with_table, 1)


def test_the_list_of_failed_jobs_says_how_many_are_not_in_it_yet(with_table):
    queue = with_table.queue.stores.queue
    with_table.push("ok")
    [lease] = queue.reserve(["default"], queue.join(), 1).leases
    facts = {"id": "a", "name": "do", "queue": "default", "connection": "default", "attempts": 1}
    queue.fail(lease, "a", {**facts, "payload": lease.receipt.decode(), "exception": "ValueError"})
    (with_table.path / "pool.ini").write_text(config(with_table))

    listed = with_table.run("failed", *with_table.where, "-c", "pool.ini")

    assert "1 failed job not yet recorded" in listed.stderr


def test_a_lone_worker_goes_on_while_the_failed_store_is_away(with_server, own_server):
    own_server.kill()
    with_server.push("raise", maxTries=1)
    with_server.push("ok")
    (with_server.path / "pool.ini").write_text(config(with_server))

    done = with_server.work("-c", "pool.ini")

    assert 1 == len(with_server.trail(event="end"))
    assert 1 == with_server.queue.stores.forwarder.count()
    assert "failed store" in done.stderr


def test_a_pool_begins_without_a_control_store_that_is_away_and_heeds_it_when_it_is_back(with_control, own_server):
    site = with_control
    own_server.kill()
    site.push("ok")
    with site.pool("--workers", "1", config=config(site), wait=False) as pool:
        eventually(lambda: 'store="control store"' in pool.log())
        eventually(lambda: site.trail(event="end"))
        eventually(lambda: None is not statuses(site)["control_store_lost"])

        own_server.start()
        eventually(lambda: None is statuses(site)["control_store_lost"])
        site.queue.stores.control.pause("default")
        eventually(lambda: ["default"] == statuses(site)["paused"])
        site.queue.stores.control.resume("default")

    assert "work begins as if nothing were paused" in pool.log()


def test_a_lone_worker_goes_on_while_the_control_store_is_away(with_control, own_server):
    own_server.kill()
    with_control.push("ok")
    (with_control.path / "pool.ini").write_text(config(with_control))

    done = with_control.work("-c", "pool.ini")

    assert 1 == len(with_control.trail(event="end"))
    assert "control store" in done.stderr


def test_a_restart_that_is_broadcast_after_a_start_without_the_control_store_is_heeded_once(with_control, own_server):
    site = with_control
    own_server.kill()
    with site.pool("--workers", "1", config=config(site), wait=False) as pool:
        eventually(lambda: "work begins as if nothing were paused" in pool.log())
        own_server.start()
        eventually(lambda: None is statuses(site)["control_store_lost"])
        before = eventually(pool.workers)
        site.queue.stores.control.restart()
        eventually(lambda: pool.workers() and not set(before) & set(pool.workers()))

    assert 1 == pool.log().count("restarting: every worker is replaced")


def test_laravels_maintenance_mode_in_another_store_holds_the_pool(with_maintenance, own_server):
    site, down = with_maintenance, "illuminate:foundation:down"
    own_server.say("SET", down, "a:0:{}")
    site.push("ok")
    with site.pool("--workers", "1", config=config(site), wait=False) as pool:
        eventually(lambda: "maintenance" in pool.log())
        before = len(site.trail(event="start"))

        own_server.say("DEL", down)
        eventually(lambda: site.trail(event="end"))

    assert 0 == before
