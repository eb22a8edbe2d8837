"""The store goes away and comes back: nothing has to be restarted, and nothing is lost."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from queuepool.errors import StoreDown
from queuepool.events import Event, SideStoreLost, StoreLost, StoreRegained, StoreStillLost
from queuepool.events.listeners import Listeners
from queuepool.settlement.outage import Outage
from queuepool.steward.side_stores import SideStores
from queuepool.unix.signals import WorkerSignals
from tests.chaos.proxy import Proxy
from tests.support.eventually import eventually
from tests.support.lines import killed_at
from tests.support.pools import RunningPool, Site, is_gone
from tests.support.processes import go_on, halt
from tests.support.scenarios import outage


@pytest.mark.fault("F45")
def test_a_pool_outlives_a_killed_store_and_its_running_job_is_settled_after(away, own_server):
    status: list[dict[str, Any]] = []

    def look(pool: RunningPool) -> None:
        status.extend(json.loads(away.run("status", "--runtime-dir", str(away.path / "run"), "--json").stdout))
        eventually(lambda: not pool.pids(r"^queuepool: worker .* busy"))  # what is only to be reported runs no more
        eventually(lambda: "store still away" in pool.log())  # first the connection was cut, then there is no server

    with outage(away, own_server, look) as pool:
        away.push("ok")
        eventually(lambda: away.trail(event="end", mode="ok"))

    assert None is not status[0]["store_lost"]
    assert (1, 1) == tuple(pool.log().count(words) for words in ("store lost", "store regained"))
    assert 2 >= pool.log().count("store still away")
    assert 1 == len(away.trail(event="start", mode="until"))
    assert 0 == away.queue.size()


@pytest.mark.fault("F45")
def test_a_pool_stops_at_once_while_the_store_is_away(away, own_server):
    with away.pool("--workers", "2") as pool:
        own_server.kill()
        eventually(lambda: "store lost" in pool.log())
        began = time.monotonic()
        eventually(lambda: time.monotonic() > began + 0.5)  # its workers have tried to reserve meanwhile
        pool.signal(signal.SIGTERM)

        assert 0 == pool.wait()
        assert "killed:" not in pool.log()  # as a steward that cannot give something back, after 5 seconds


def test_what_the_store_takes_to_answer_after_a_job_has_raised_is_not_the_jobs_time(away, own_server):
    gate = away.path / "gate"
    away.push("raise_when", gate=str(gate), maxTries=0, maxExceptions=5, timeout=4)
    with away.pool("--workers", "1") as pool:
        [start] = eventually(lambda: away.trail(event="start"))
        halt(own_server.process.pid)
        gate.touch()
        eventually(lambda: time.time() > start["at"] + 6)
        go_on(own_server.process.pid)
        eventually(lambda: away.trail(event="end"))

        assert {start["pid"]} == {line["pid"] for line in away.trail(event="start")}
    assert "timed out" not in pool.log()


@pytest.mark.thorough("the test of leases below halts it, too")
@pytest.mark.fault("F52")
def test_a_store_that_hangs_does_not_wedge_the_pool(away, own_server):
    with away.pool("--workers", "1") as pool:
        halt(own_server.process.pid)
        eventually(lambda: "store lost" in pool.log())
        go_on(own_server.process.pid)
        away.push("ok")
        eventually(lambda: away.trail(event="end"))


@pytest.mark.thorough("test_redis_faults.py has them forgotten again and again")
@pytest.mark.fault("F51")
def test_scripts_that_the_server_forgot_are_sent_again(away):
    with away.pool("--workers", "1"):
        away.push("ok")
        eventually(lambda: len(away.trail(event="end")) == 1)
        away.queue.stores.client.command("SCRIPT", "FLUSH")
        away.push("ok")
        eventually(lambda: len(away.trail(event="end")) == 2)

    assert 0 == away.queue.size()


@pytest.mark.fault("F52")
def test_a_worker_whose_lease_cannot_be_renewed_is_killed_before_it_ends_and_the_job_comes_back(away, own_server):
    gate = away.path / "gate"
    config = "[connection]\nretry_after = 3\nblock_for = 1\n"
    with away.pool("--workers", "1", config=config) as pool:
        pushed = time.time()  # the lease begins after that, and before the job says that it starts
        away.push("until", gate=str(gate), maxTries=0)
        first = eventually(lambda: away.trail(event="start"))[0]
        halt(own_server.process.pid)
        eventually(lambda: "killed: LEASE" in pool.log())
        [line] = [line for line in pool.log().splitlines() if "killed: LEASE" in line]
        assert line.endswith(f" job=do id={first['id']}")
        go_on(own_server.process.pid)
        starts = eventually(lambda: len(found := away.trail(event="start")) == 2 and found)
        gate.touch()
        eventually(lambda: away.trail(event="end"))

    assert [1, 2] == [line["attempt"] for line in starts]
    assert starts[1]["at"] >= pushed + 3
    assert 0 == away.queue.size()


@pytest.fixture
def partitioned(away, own_server, tmp_path):
    """A host that can be cut off from the store, and another one that cannot."""
    proxy = Proxy(own_server.path, Path(own_server.folder, "proxy.sock"))
    proxy.start()
    (tmp_path / "elsewhere").mkdir()
    cut_off = Site(replace(away.connection, url=f"unix://{proxy.path}"), tmp_path, away.queue)
    yield proxy, cut_off, away
    proxy.stop()


@pytest.mark.fault("F62")
def test_a_host_that_is_cut_off_kills_its_worker_before_another_host_starts_the_job(partitioned):
    proxy, cut_off, other = partitioned
    gate = other.path / "gate"
    other.push("until", gate=str(gate), maxTries=0)
    config = "[connection]\nretry_after = 5\nblock_for = 1\n"  # killed half a second before its end
    elsewhere = ("--runtime-dir", str(other.path / "elsewhere"))
    with cut_off.pool("--workers", "1", config=config) as pool:
        (first,) = eventually(lambda: other.trail(event="start"))
        with other.pool("--workers", "1", *elsewhere, config=config):
            proxy.silent = True
            eventually(lambda: is_gone(first["pid"]))
            second = eventually(lambda: other.trail(event="start")[1:])[0]
            proxy.heal()
            pool.wait_until_ready()
            gate.touch()
            eventually(lambda: other.trail(event="end"))

    assert killed_at(pool.log()) < second["at"]
    assert 2 == len(other.trail(event="start"))
    assert 1 == len(other.trail(event="end"))
    assert 0 == other.queue.size()


@pytest.mark.thorough("the test above has a lease that cannot be renewed, with a master")
@pytest.mark.fault("F52")
def test_a_steward_without_a_master_kills_the_orphan_whose_lease_it_cannot_renew(partitioned):
    proxy, cut_off, other = partitioned
    other.push("until", gate=str(other.path / "gate"), maxTries=0)
    config = "[connection]\nretry_after = 5\nblock_for = 1\n"
    with cut_off.pool("--workers", "1", config=config) as pool:
        (first,) = eventually(lambda: other.trail(event="start"))
        pool.titles()
        pool.signal(signal.SIGKILL)
        pool.wait()
        with other.pool("--workers", "1", "--runtime-dir", str(other.path / "elsewhere"), config=config):
            proxy.silent = True
            eventually(lambda: is_gone(first["pid"]))
            second = eventually(lambda: other.trail(event="start")[1:])[0]
            proxy.heal()
            (other.path / "gate").touch()
            eventually(lambda: other.trail(event="end"))
        eventually(lambda: all(map(is_gone, pool.seen)))

    assert killed_at(pool.log()) < second["at"]
    assert 0 == other.queue.size()


def test_a_reason_that_changes_is_logged_again_and_one_that_comes_back_is_not():
    told: list[Event] = []
    listeners = Listeners()
    listeners.add(Event, told.append)
    outage = Outage(WorkerSignals(), listeners, announces=True)
    for reason in ("broken pipe", "broken pipe", "wrong password", "port 1 refused", "port 2 refused", "broken pipe"):
        outage.lost(StoreDown(reason))
    outage.regained()
    outage.lost(StoreDown("wrong password"))

    problems = [event.problem for event in told if isinstance(event, (StoreLost, StoreStillLost))]
    assert ["broken pipe", "wrong password", "port 1 refused", "wrong password"] == problems
    assert [StoreLost, StoreStillLost, StoreStillLost, StoreRegained, StoreLost] == [type(event) for event in told]


def test_of_a_store_beside_the_queue_a_reason_that_changes_is_logged_too():
    told: list[Event] = []
    listeners = Listeners()
    listeners.add(Event, told.append)
    sides = SideStores(listeners)
    for reason in ("broken pipe", "wrong password", "wrong password"):
        sides.lost(StoreDown(reason, "failed store"))

    assert [
        SideStoreLost("failed store", "failed store: broken pipe"),
        StoreStillLost("failed store", "failed store: wrong password"),
    ] == told
