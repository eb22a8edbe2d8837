"""A pool in the dashboard of Laravel Horizon.

By Horizon's own code where its source is there (the folder in ``QP_HORIZON``), else by the same reads.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

import pytest

from queuepool.config.settings import PoolSettings
from queuepool.steward.horizon_jobs import EndedJobs
from queuepool.stores.horizon import Gain, ListedJob, Supervised
from tests.support.eventually import eventually
from tests.support.horizon import SOURCE, Horizon, Recorded, recorded
from tests.support.laravel_peer import require_php
from tests.support.pools import Site
from tests.support.redis_server import PREFIX
from tests.support.samples import payload, record
from tests.support.store_contract import Clock, reserved

OWN = "laravel_horizon:"
NAME = f"Queuepool-{os.uname().nodename}-default"
REPORT = "App\\Jobs\\Report@build"
SHOWN = ("--horizon", OWN, "--queue", "high,default", "--workers", "2", "--keep-done", "1h")


@pytest.fixture
def real(redis_socket: str) -> Horizon:
    require_php()
    if not os.environ.get(SOURCE):
        pytest.skip(f"needs laravel/horizon 5: its folder in {SOURCE}")
    return Horizon(redis_socket, PREFIX, OWN)


@pytest.fixture(params=["recorded", "real"])
def horizon(request: pytest.FixtureRequest, redis_socket: str) -> Horizon | Recorded:
    """Whoever reads what the dashboard shows."""
    return request.getfixturevalue("real") if request.param == "real" else recorded(redis_socket, OWN)


def names_of(jobs: Mapping[str, Any]) -> dict[str, str]:
    return {one["id"]: one["status"] for one in jobs["jobs"]}


def check(site: Site) -> str:
    """What `check` prints of a pool that is shown there."""
    (site.path / "pool.ini").write_text(f"[pool]\nhorizon = {OWN}\nmodules = tests.support.poolapp\n")
    return site.run("check", *site.where, "-c", str(site.path / "pool.ini"), check=False).stdout


def test_the_dashboard_shows_workers_queues_and_jobs(site: Site, horizon: Any) -> None:
    with site.pool(*SHOWN):
        done = [site.push(queue=queue) for queue in ("high", "default") for _ in range(3)]
        failed = site.push("raise")
        eventually(lambda: 7 <= sum(horizon.dashboard()[kind]["total"] for kind in ("completed", "failed")))
        # What ends in the middle of a round is listed in it, and counted in the next one.
        found = eventually(lambda: (now := horizon.dashboard())["stats"]["jobsPerMinute"] == 6 and now)
        master = found["masters"][NAME]
        [supervisor] = master["supervisors"]

        assert ("running", 2, 6) == tuple(found["stats"][key] for key in ("status", "processes", "jobsPerMinute"))
        # Up to 5.18 the page did not name it.
        assert ("queuepool", "running") == (master.get("environment", "queuepool"), master["status"])
        assert (f"{NAME}:pool", {"redis:high,default": 2}) == (supervisor["name"], supervisor["processes"])
        assert ("high,default", "off", 60) == tuple(
            supervisor["options"][key] for key in ("queue", "balance", "timeout")
        )
        assert (["do"], ["default", "high"]) == (found["jobs"], found["queues"])
        assert dict.fromkeys(done, "completed") == names_of(found["completed"])
        assert {failed: "failed"} == names_of(found["failed"])
        assert "ValueError: as asked" in found["failed"]["jobs"][0]["exception"]
    assert ("inactive", {}) == (horizon.dashboard()["stats"]["status"], dict(horizon.dashboard()["masters"]))


def test_horizon_itself_measures_retries_and_pushes(site: Site, real: Horizon) -> None:
    """Its workload, its snapshots, a job of its own that waits, and its button `Retry`."""
    real.run("push", REPORT, "high")
    assert ["pending"] == [one["status"] for one in real.dashboard()["pending"]["jobs"]]
    with site.pool(*SHOWN):
        failed = site.push("raise")
        eventually(lambda: real.dashboard()["failed"]["total"])
        real.run("snapshot")
        real.run("retry", failed)
        eventually(lambda: 2 <= real.dashboard()["failed"]["total"])
        found = real.dashboard()
        [parent] = [one for one in found["failed"]["jobs"] if one["id"] == failed]
        [workload] = found["workload"]

        assert ["failed"] == [one["status"] for one in parent["retried_by"]]
        assert (0, 1) == (found["pending"]["total"], found["completed"]["total"])
        assert ("high,default", 0, 2) == tuple(workload[key] for key in ("name", "length", "processes"))
        assert [1] == [one["throughput"] for one in found["of_queue"]["high"]]


def test_a_killed_pool_leaves_the_page_and_a_paused_one_says_so(site: Site, redis_socket: str) -> None:
    horizon = recorded(redis_socket, OWN)
    with site.pool(*SHOWN) as pool:
        pool.signal(signal.SIGUSR2)
        eventually(lambda: "paused" == horizon.dashboard()["stats"]["status"])
        assert 0 < horizon.server.ttl(f"{OWN}master:{NAME}") <= 15
        assert 0 < horizon.server.ttl(f"{OWN}supervisor:{NAME}:pool") <= 30


def test_a_store_that_refuses_horizons_keys_costs_the_pool_one_warning(site: Site, redis_socket: str) -> None:
    server = recorded(redis_socket, OWN).server
    server.set(f"{OWN}masters", "not a sorted set")
    with site.pool(*SHOWN) as pool:
        eventually(lambda: "the pool is not shown in Horizon" in pool.log())
        site.push()
        eventually(lambda: site.trail(event="end"))
        checked = check(site)
    assert 1 == pool.log().count("not shown in Horizon")
    assert "warn pool default horizon: the pool would not be shown" in checked


def test_check_says_who_is_shown_at_the_prefix(site: Site, redis_socket: str) -> None:
    server = recorded(redis_socket, OWN).server
    assert f"warn pool default horizon: at {OWN} are no masters" in check(site)
    with site.pool(*SHOWN):
        eventually(lambda: f"at {OWN} are only {NAME}:" in check(site))
        server.zadd(f"{OWN}masters", {"web1-Xk3f": time.time()})
        assert f"ok   pool default horizon: at {OWN} are the masters {NAME}, web1-Xk3f" in check(site)
    assert [] == server.keys("*check*")


@pytest.mark.by_turns("key")
@pytest.mark.parametrize("key", ["masters", f"master:{NAME}", "measured_jobs"])
def test_a_job_whose_id_is_a_key_of_horizons_hurts_neither_that_nor_other_jobs(
    key: str, site: Site, redis_socket: str
) -> None:
    horizon, keys = recorded(redis_socket, OWN), site.queue.stores.horizon(OWN)
    known: dict[str, Any] = {"name": "do", "queue": "default", "payload": "{}", "created": 1.0, "began": 0.0}
    keys.show(Supervised(NAME, 1, False, "redis", ["default"], 1, {}), {"do": Gain(1, 1.0)}, {})
    before = horizon.server.dump(f"{OWN}{key}")
    keys.list_jobs([ListedJob(id=one, ended=time.time(), **known, retry_of=key) for one in (key, "other")], "redis")

    assert {"other": "completed"} == names_of(horizon.dashboard()["completed"])
    assert before == horizon.server.dump(f"{OWN}{key}")


def test_names_of_dead_pools_do_not_pile_up_where_no_horizon_runs(site: Site, redis_socket: str) -> None:
    horizon, keys = recorded(redis_socket, OWN), site.queue.stores.horizon(OWN)
    dead, alive = {"dead": time.time() - 15}, {"alive": time.time()}
    for kind in ("masters", "supervisors"):
        horizon.server.zadd(f"{OWN}{kind}", dead | alive)
    keys.show(Supervised(NAME, 1, False, "redis", ["default"], 1, {}), {}, {})

    assert {b"alive", NAME.encode()} == set(horizon.server.zrange(f"{OWN}masters", 0, -1))
    assert {b"alive", f"{NAME}:pool".encode()} == set(horizon.server.zrange(f"{OWN}supervisors", 0, -1))


def test_failed_jobs_are_listed_though_the_clock_of_the_host_is_wrong(site: Site) -> None:
    stores = site.queue.stores
    Clock(stores.queue)  # many years behind the host's
    [lease] = reserved(stores.queue, payload("a"))
    stores.queue.fail(lease, "a", record(lease))
    ended = EndedJobs(PoolSettings(connection=site.connection), stores)

    assert ["a"] == [one.id for one in ended.found([], 1)]


def test_a_pool_without_it_sends_nothing_of_it(site: Site, redis_socket: str) -> None:
    with site.pool() as pool:
        site.push()
        eventually(lambda: site.trail(event="end"))
        pool.end()
    assert [] == recorded(redis_socket, OWN).server.keys("*horizon*")
