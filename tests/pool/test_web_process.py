"""The web process of a pool: what it serves, that it asks no store, and how it begins and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.board.board import Role
from queuepool.config.values import Address
from queuepool.jobs.client import Queue
from queuepool.metrics.server import bound
from tests.support.eventually import eventually
from tests.support.http_pages import Pages
from tests.support.meters import board_in
from tests.support.pools import RunningPool, Site
from tests.support.processes import halt, halted
from tests.support.redis_server import PREFIX, Server

WEB = r"^queuepool: web \[default\] running"


@pytest.fixture
def pages() -> Pages:
    return Pages()


def web(pool: RunningPool) -> int:
    return eventually(lambda: pool.pids(WEB))[0]


def test_a_pool_serves_its_metrics_its_health_and_its_status(site, pages):
    with site.pool("--workers", "2", "--listen", pages.address) as pool:
        web(pool)
        eventually(lambda: pages.status("/readyz") == 200)
        status = json.loads(pages.get("/api/v1/status")[1])

        assert [200, 200, 404] == [pages.status(page) for page in ("/livez", "/startedz", "/livez/")]
        assert (1.0, 2.0) == (
            pages.value('queuepool_up{pool="default"}'),
            pages.value('queuepool_workers{pool="default",state="idle"}'),
        )
        assert ("default", "running", pool.pid) == (status["pool"], status["state"], status["master"])
        assert [f"queuepool: web [default] running listen={pages.address}"] == [
            title for title in pool.titles().values() if "web" in title
        ]


def test_it_serves_at_a_unix_socket_and_removes_it(site):
    pages = Pages(str(site.path / "q.sock"))
    with site.pool("--workers", "1", "--listen", pages.address) as pool:
        web(pool)

        assert 1.0 == pages.value('queuepool_up{pool="default"}')

    assert not (site.path / "q.sock").exists()


@pytest.mark.thorough("the other tests have a socket and an address that serve; these look at the place itself")
def test_a_unix_socket_that_is_removed_is_made_anew_and_anothers_is_left_alone(site):
    path = site.path / "q.sock"
    pages = Pages(str(path))
    with site.pool("--workers", "1", "--listen", pages.address) as pool:
        web(pool)
        path.unlink()
        eventually(path.exists)
        eventually(lambda: pages.status("/livez") == 200)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path.with_name("other.sock")))
            other.listen()
            path.with_name("other.sock").replace(path)  # at once: where none is, the pool makes one anew
            eventually(lambda: "Address already in use" in pool.log())
            pool.end()

    assert path.exists()
    assert "the socket of unix:" in pool.log()


def commands_of(server) -> dict[str, int]:
    """How often the server has carried out each command, without the one that asks for it."""
    return {name: found["calls"] for name, found in server.info("commandstats").items() if name != "cmdstat_info"}


def test_a_hundred_scrapes_cost_the_store_no_command(site, server, pages):
    site.push("ok")
    with site.pool("--workers", "1", "--listen", pages.address) as pool:
        eventually(lambda: site.trail(event="end"))
        serving = web(pool)
        with halted(*(pid for pid in pool.titles() if pid != serving)):
            # What a halted worker has sent before, a reserve behind its wait, is carried out when that ends.
            eventually(lambda: server.info("clients")["blocked_clients"] == 0)
            before = commands_of(server)
            found = {pages.status("/metrics") for _ in range(100)}
            pages.get("/readyz"), pages.get("/api/v1/status")
            site.run("metrics", *site.where, "--runtime-dir", pool.runtime)
            after = commands_of(server)

    assert {200} == found
    assert before == after


def test_a_scrape_works_while_the_store_is_away(site, tmp_path_factory, pages):
    """Its values stay; only the store's own metric says so."""
    server = Server(str(tmp_path_factory.mktemp("redis")))
    try:
        connection = replace(site.connection, url=f"unix://{server.path}")
        queue = Queue(connection)
        apart = Site(connection, site.path, queue)
        apart.push("ok")
        with apart.pool("--workers", "1", "--listen", pages.address):
            eventually(lambda: apart.trail(event="end"))
            up = 'queuepool_store_up{connection="default",pool="default"}'
            done = 'queuepool_jobs_total{job_name="do",outcome="done",pool="default",queue="default"}'
            measured = 'queuepool_queue_measured_timestamp_seconds{pool="default",queue="default"}'
            ready = 'queuepool_queue_jobs{pool="default",queue="default",state="ready"}'
            eventually(lambda: pages.status("/readyz") == 200 and pages.value(up) == pages.value(done) == 1.0)
            eventually(lambda: pages.value(measured))
            server.kill()
            eventually(lambda: pages.value(up) == 0.0)
            since, size = pages.value(measured), pages.value(ready)

            assert size is not None
            assert {(since, size, 1.0)} == {tuple(map(pages.value, (measured, ready, done))) for _ in range(20)}
            assert [200, 200] == [pages.status("/livez"), pages.status("/readyz")]
            assert 1.0 == pages.value('queuepool_up{pool="default"}')
            server.start()
            eventually(lambda: pages.value(up) == 1.0 and (pages.value(measured) or 0.0) > (since or 0.0))
        queue.close()
    finally:
        server.kill()


@pytest.mark.fault("F78")
def test_a_killed_one_is_replaced_and_costs_no_worker(site, pages):
    with site.pool("--workers", "2", "--listen", pages.address) as pool:
        before = pool.workers()
        os.kill(killed := web(pool), signal.SIGKILL)
        eventually(lambda: web(pool) != killed and pages.status("/livez") == 200)

        assert before == pool.workers()
    assert "web=0" in pool.log()


@pytest.mark.fault("F78")
def test_a_stopped_one_is_replaced_after_its_deadline_and_costs_no_worker(site, pages):
    with site.pool("--workers", "1", "--listen", pages.address) as pool:
        before = pool.workers()
        halt(hung := web(pool))
        [slot] = board_in(Path(pool.runtime), write=True).of(Role.WEB)
        left = slot.deadline - time.monotonic()
        slot.deadline -= left  # the time passes at once: nobody but the stopped process writes it
        eventually(lambda: web(pool) != hung and pages.status("/livez") == 200)

        assert 0 < left <= 30
        assert before == pool.workers()
    assert "STALLED" in pool.log()


@pytest.mark.fault("F78")
def test_it_ends_with_a_killed_master_and_leaves_the_address_to_the_next(site, pages):
    with site.pool("--workers", "1", "--listen", pages.address) as pool:
        web(pool)
        pool.process.kill()
        pool.wait()
        eventually(lambda: pages.status("/livez") == 0)
        with site.pool("--workers", "1", "--listen", pages.address) as following:
            web(following)
            eventually(lambda: pages.status("/readyz") == 200)


def test_it_answers_until_the_last_job_of_a_stop_has_ended(site, pages):
    site.push("until", gate=str(site.path / "gate"))
    with site.pool("--workers", "1", "--listen", pages.address) as pool:
        eventually(lambda: site.trail(event="start"))
        web(pool)
        pool.signal(signal.SIGTERM)
        eventually(lambda: pages.status("/readyz") == 503)
        words = pages.get("/readyz")[1]
        busy = pages.value('queuepool_workers{pool="default",state="busy"}')
        (site.path / "gate").touch()

        assert 0 == pool.wait()

    assert ("the pool is being stopped: running jobs may finish\n", 1.0) == (words, busy)
    assert 0 == pages.status("/livez")


@pytest.mark.bad_input("B144")
def test_a_start_at_an_address_in_use_is_refused_in_a_line(site, pages):
    host, _, port = pages.address.partition(":")
    with bound(Address(host, int(port))):
        refused = site.run("start", *site.flags("--listen", pages.address, "--runtime-dir", "run"), check=False)
        (site.path / "pool.ini").write_text(f"[pool]\nlisten = {pages.address}\n")
        checked = site.run("check", *site.where, "-c", str(site.path / "pool.ini"), check=False)

    assert 78 == refused.returncode
    assert f"pool default: listen: {pages.address}: Address already in use" == refused.stderr.splitlines()[-1]
    assert f"FAIL listen {pages.address}: Address already in use" in checked.stdout
    assert not [*(site.path / "run").glob("*/*")]


@pytest.mark.thorough("the other tests have a socket and an address that serve; these look at the place itself")
def test_a_second_start_of_the_pool_is_told_so_and_check_finds_nothing_wrong(site, pages):
    config = f"[pool]\nmodules = tests.support.poolapp\nlisten = {pages.address}\nruntime_dir = run\n"
    config += f"[connection]\nurl = {site.connection.url}\nprefix = {PREFIX}\n"
    with site.pool("--workers", "1", "--runtime-dir", str(site.path / "run"), config=config) as pool:
        web(pool)
        file = str(site.path / "pool.ini")

        assert 75 == site.run("start", "-c", file, check=False).returncode
        assert f"ok   listen {pages.address}: the pool listens there" in site.run("check", "-c", file).stdout


@pytest.mark.thorough("the other tests have a socket and an address that serve; these look at the place itself")
def test_an_address_that_is_open_to_others_is_warned_of(site):
    open_to_all = Pages().address.replace("127.0.0.1", "0.0.0.0")
    with site.pool("--workers", "1", "--listen", open_to_all) as pool:
        web(pool)

    assert f"{open_to_all} is open to other hosts, and asks for no password" in pool.log()
