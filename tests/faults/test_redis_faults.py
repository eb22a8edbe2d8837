"""Faults of the Redis server, under a real pool."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import Envelope, encode
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.redis_server import Server, free_port

QUICK = "[connection]\nblock_for = 1\n"
MANY = 300


def push_many(site) -> None:
    site.queue.bulk([("do", {"mode": "ok"})] * MANY)


def settled(site) -> bool:
    return 0 == site.queue.size()


def assert_each_ran_once(site) -> None:
    assert {1} == set(Counter(line["id"] for line in site.trail(event="start")).values())
    assert MANY == len(site.trail(event="end"))
    assert 0 == site.queue.stores.failed.count()


@contextmanager
def meanwhile(act: Callable[[], object], pause: float) -> Iterator[None]:
    """Again and again, beside what is tested."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(pause):
            act()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.fault("F45")
def test_a_server_that_is_killed_under_load_loses_nothing_and_costs_nobody_his_life(away, own_server):
    push_many(away)
    with away.pool("--workers", "2") as pool:
        before = set(pool.workers())
        for done in (30, 90, 150):
            eventually(lambda done=done: done <= len(away.trail(event="end")))
            own_server.kill()
            eventually(lambda: pool.log().count("store lost") > pool.log().count("store regained"))
            own_server.start()
            eventually(lambda: pool.log().count("store lost") == pool.log().count("store regained"))
        eventually(lambda: settled(away))
        assert before == set(pool.workers())

    assert_each_ran_once(away)


@pytest.mark.fault("F46")
@pytest.mark.by_turns("cut")
@pytest.mark.parametrize("cut", [1, 200, 700])
def test_of_a_log_whose_end_is_gone_only_the_last_pushes_are_lost(away, own_server, cut):
    pushed = [away.push("ok") for _ in range(20)]
    own_server.kill()
    [log] = Path(own_server.folder, "appendonlydir").glob("*.incr.aof")
    os.truncate(log, log.stat().st_size - cut)
    own_server.start()
    left = away.queue.size()
    away.work()

    assert 15 <= left < 20
    assert pushed[:left] == [line["id"] for line in away.trail(event="end")]
    assert 0 == away.queue.sizes().quarantined


@pytest.fixture
def pair(tmp_path) -> Iterator[tuple[Server, Server]]:
    """A server and its replica."""
    port = free_port()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        servers = Server(one, "--port", str(port), "--repl-diskless-sync-delay", "0"), Server(two)
        try:
            servers[1].say("REPLICAOF", "127.0.0.1", port)
            eventually(lambda: 1 == servers[0].say("WAIT", 1, 100))
            yield servers
        finally:
            for server in servers:
                server.kill()


@pytest.mark.thorough("pool/test_failovers.py has a replica that is promoted after a kill")
@pytest.mark.fault("F47")
def test_clients_go_on_with_a_replica_that_is_promoted_after_the_primary_was_killed(pair, connection, tmp_path):
    primary, replica = pair
    here = tmp_path / "redis.sock"  # a path that moves, as a host's name does
    here.symlink_to(primary.path)
    site = Site(replace(connection, url=f"unix://{here}"), tmp_path, Queue(replace(connection, url=f"unix://{here}")))
    push_many(site)
    assert 1 == primary.say("WAIT", 1, 30_000)
    with site.pool("--workers", "2", wait=False) as pool:
        eventually(lambda: site.trail(event="end"))
        primary.kill()
        here.unlink()
        here.symlink_to(replica.path)
        eventually(lambda: "store lost" in pool.log())  # nor does a replica take writes
        replica.say("REPLICAOF", "NO", "ONE")
        eventually(lambda: settled(site) and "store regained" in pool.log())

    assert MANY == len({line["id"] for line in site.trail(event="end")})
    site.queue.close()


@pytest.mark.fault("F48")
def test_a_server_that_becomes_a_replica_fails_no_job_and_is_used_again_when_promoted(away, own_server):
    gate = away.path / "gate"
    away.push("until", gate=str(gate), maxTries=1)
    with away.pool("--workers", "2", config=QUICK) as pool:
        eventually(lambda: away.trail(event="start"))
        own_server.say("REPLICAOF", "127.0.0.1", free_port())
        eventually(lambda: "store lost" in pool.log())
        gate.touch()
        eventually(lambda: away.trail(event="end"))
        own_server.say("REPLICAOF", "NO", "ONE")
        eventually(lambda: settled(away))
        eventually(lambda: "store regained" in pool.log())

    assert (1, 0) == (len(away.trail(event="start")), away.queue.stores.failed.count())
    assert "lease lost" not in pool.log()


@pytest.mark.fault("F49")
def test_a_full_server_is_emptied_and_refuses_pushes_alone(away, own_server):
    push_many(away)
    later = away.push("ok", delay=0.3)
    away.push("raise", maxTries=1)
    away.push("release", maxTries=2)
    away.push("kill", maxTries=1)
    away.queue.push_raw(b"no job")
    gate = away.path / "gate"
    tracked = away.queue.push("do", {"mode": "until", "gate": str(gate)}, track=600)
    own_server.say("CONFIG", "SET", "maxmemory", 1)
    with away.pool("--workers", "2", config=QUICK) as pool:
        eventually(lambda: (job := tracked.job()) and job.state == "running")
        gate.touch()
        eventually(lambda: settled(away))
        with pytest.raises(StoreDown):
            away.push("ok")
        eventually(away.queue.stores.control.pools)
        place = ["--runtime-dir", str(away.path / "run"), *away.where]
        told = eventually(lambda: (said := away.run("status", *place)).stdout.count("the store has been full") and said)
        metrics = away.run("metrics", *place).stdout
        checked = away.run("check", *away.flags(), check=False)
        own_server.say("CONFIG", "SET", "maxmemory", 0)
        eventually(lambda: "the store has been full" not in away.run("status", *place).stdout)

    assert told.stdout.startswith("pool default: running ")
    assert 'queuepool_store_full{pool="default",connection="default"} 1' in metrics
    assert 'queuepool_ready{pool="default"} 1' in metrics  # what is there is worked off, and makes room
    full = [line for line in checked.stdout.splitlines() if line.startswith("FAIL")]
    assert [True] == [" MB (maxmemory) are used; raise maxmemory" in line for line in full]
    assert 1 == checked.returncode
    assert [1, 1] == [pool.log().count(words) for words in ("the store is full", "the store has room again")]
    assert later in [line["id"] for line in away.trail(event="end")]
    assert (2, 1) == (away.queue.stores.failed.count(), away.queue.sizes().quarantined)
    assert "store lost" not in pool.log()


@pytest.mark.fault("F49")
def test_a_lone_worker_goes_on_at_a_full_server_with_a_job_that_comes_again(away, own_server):
    again = away.push("release", times=2, maxTries=3)
    last = away.push()
    own_server.say("CONFIG", "SET", "maxmemory", 1)
    away.run("work", *away.flags("--stop-when-empty"), timeout=30)

    assert settled(away)
    assert {again: 3, last: 1} == Counter(line["id"] for line in away.trail(event="start"))


@pytest.mark.fault("F51")
def test_scripts_that_are_forgotten_every_few_milliseconds_lose_and_double_nothing(away, own_server):
    push_many(away)
    with meanwhile(lambda: own_server.say("SCRIPT", "FLUSH"), 0.003), away.pool("--workers", "2"):
        eventually(lambda: settled(away))

    assert_each_ran_once(away)


def kill_clients(server: Server) -> None:
    for kind in ("normal", "pubsub"):
        server.say("CLIENT", "KILL", "TYPE", kind)


def descriptors(pids: list[int]) -> list[int]:
    return [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids]


@pytest.mark.fault("F54")
def test_connections_that_are_cut_again_and_again_lose_nothing_and_leave_none_open(away, own_server):
    with away.pool("--workers", "2") as pool:
        everybody = [*pool.workers(), pool.steward()]
        away.push("ok")
        eventually(lambda: settled(away))
        eventually(lambda: own_server.say("PUBSUB", "CHANNELS"))  # the last connection that the steward opens
        before = descriptors(everybody)
        push_many(away)
        with meanwhile(lambda: kill_clients(own_server), 0.02):
            eventually(lambda: MANY + 1 == len(away.trail(event="end")))
        eventually(lambda: settled(away))
        eventually(lambda: sum(before) >= sum(descriptors(everybody)))

    assert {1} == set(Counter(line["id"] for line in away.trail(event="start")).values())


@pytest.mark.fault("F55")
def test_a_store_that_is_emptied_in_the_middle_of_a_job_loses_what_it_held_and_nobody_else(away, own_server):
    gate = away.path / "gate"
    away.push("until", gate=str(gate))
    with away.pool("--workers", "1", config=QUICK) as pool:
        eventually(lambda: away.trail(event="start"))
        before = pool.workers()
        own_server.say("FLUSHALL")
        gate.touch()
        eventually(lambda: "lease lost" in pool.log())
        away.push("ok")
        eventually(lambda: away.trail(event="end", mode="ok"))
        assert before == pool.workers()

    assert 1 == pool.log().count("lease lost")


@pytest.mark.fault("F60")
def test_a_job_whose_wake_up_was_lost_is_found_when_the_wait_is_over(away, own_server):
    with away.pool("--workers", "1", config=QUICK):
        away.push("ok")
        eventually(lambda: settled(away))
        _, payload = encode("do", {"mode": "ok"}, Envelope(created_at=0))
        own_server.say("RPUSH", f"{away.connection.prefix}queues:default", payload)  # and no token
        eventually(lambda: 2 == len(away.trail(event="end")))
