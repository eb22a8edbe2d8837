"""Limits in real pools: never more than so many at a time, whatever is killed meanwhile, and no place at rest."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from queuepool import group
from queuepool.jobs.composing import flow_of
from queuepool.jobs.decorator import JobFunction
from tests.chaos.plant import Plant
from tests.support.drivers import DATABASES, site_on
from tests.support.eventually import eventually
from tests.support.limitapp import aimports, calls, dies, imports, locked, plain, shares, steps, waits
from tests.support.pools import ROOT, STEWARD, RunningPool, Site

APP = ("--modules", "tests.support.limitapp")
pytestmark = pytest.mark.every_store("place")


@pytest.fixture(params=["redis", *DATABASES])
def place(request: pytest.FixtureRequest) -> Iterator[Site]:
    with site_on(request.param, request) as found:
        yield found


def push(site: Site, kind: JobFunction[..., object], tenant: str, *more: object) -> None:
    site.queue.push(kind.name, {"tenant": tenant, **dict(zip(("seconds",), more, strict=False))})


def most_at_once(site: Site, tenant: str) -> int:
    most = running = 0
    for line in site.trail():
        if line.get("tenant") == tenant:
            running += {"begins": 1, "ends": -1}.get(line["what"], 0)
            most = max(most, running)
    return most


@pytest.mark.by_turns("more")
@pytest.mark.parametrize("more", [(), ("--concurrency", "4")], ids=["one by one", "side by side"])
def test_no_more_run_at_a_time(place, more):
    for number in range(12):
        push(place, aimports if number % 2 else imports, "a" if number % 3 else "b", 0.5)
    with place.pool("--workers", "4", *more, *APP):
        eventually(lambda: len(place.trail(what="ends")) == 12)

    assert 2 == most_at_once(place, "a")
    assert most_at_once(place, "b") <= 2


def test_a_start_is_counted_for_its_period(place):
    with place.pool("--workers", "2", *APP) as pool:
        eventually(lambda: len(pool.workers()) == 2)
        pushed = time.time()
        for _ in range(11):
            push(place, calls, "a")
        eventually(lambda: len(place.trail(what="begins")) == 11)

    # Each begins some time after its start was counted, so only the time since the first push is sure.
    began = sorted(line["at"] for line in place.trail(what="begins"))
    assert began[5] - pushed > 1.0
    assert began[10] - pushed > 2.0


def test_one_tenants_flood_waits_behind_anothers_first_job(place):
    for _ in range(20):
        push(place, shares, "large", 0.05)
    push(place, shares, "small", 0.05)
    with place.pool("--workers", "2", *APP):
        eventually(lambda: len(place.trail(what="ends")) == 21)

    assert 1 == max(most_at_once(place, "large"), most_at_once(place, "small"))
    order = [line["tenant"] for line in place.trail(what="begins")]
    assert order.index("small") < 20


def test_the_place_of_a_dead_worker_is_free_at_once(place, tmp_path):
    gate = str(tmp_path / "died")
    for _ in range(3):
        place.queue.push(dies.name, {"tenant": "a", "until": gate})
    with place.pool("--workers", "2", *APP):
        eventually(lambda: len(place.trail(what="ends")) == 3)

    assert Counter(begins=4, ends=3) == Counter(line["what"] for line in place.trail())


@pytest.mark.thorough("a worker that dies beside others, above, gives its place back by the same act")
def test_the_only_place_is_free_at_once_if_its_worker_is_killed(place):
    gate = place.path / "gate"
    place.queue.push(waits.name, {"tenant": "killed", "gate": str(gate)})
    with place.pool("--workers", "2", *APP):
        [running] = eventually(lambda: place.trail(what="begins"))
        push(place, shares, "next")
        eventually(lambda: place.queue.parked() == 1)
        killed = time.time()
        os.kill(running["pid"], signal.SIGKILL)
        [began] = eventually(lambda: place.trail(what="begins", tenant="next"))
        gate.touch()
        eventually(lambda: place.queue.size() + place.queue.parked() == 0)

    assert 0 < began["at"] - killed < 30  # its lease lasts for longer than a minute


@pytest.mark.thorough("the contract of limits has the end of a lease on each store")
def test_the_only_place_is_free_with_its_lease_if_its_host_is_lost(place):
    gate, config = place.path / "gate", "[connection]\nretry_after = 4\n"
    place.queue.push(waits.name, {"tenant": "lost", "gate": str(gate)})
    lost = RunningPool(place, place.flags("--runtime-dir", str(place.path / "lost"), "--workers", "1", *APP), config)
    eventually(lambda: place.trail(what="begins"))
    with place.pool("--workers", "2", *APP, config=config):
        push(place, shares, "next")
        eventually(lambda: place.queue.parked() == 1)
        lost.kill_all()
        ends = lease_end(place)
        gate.touch()
        [began] = eventually(lambda: place.trail(what="begins", tenant="next"))
        eventually(lambda: place.queue.size() + place.queue.parked() == 0)

    assert -0.13 < began["at"] - ends < 30  # on Redis a lease ends at the next but one sixteenth of a second


def test_parked_jobs_are_cancelled_and_cleared_while_workers_would_take_them(place):
    gate = place.path / "gate"
    place.queue.push(waits.name, {"tenant": "first", "gate": str(gate)})
    with place.pool("--workers", "3", *APP):
        eventually(lambda: place.trail(what="begins"))
        pushed = [place.queue.push(shares.name, {"tenant": "next"}) for _ in range(6)]
        eventually(lambda: place.queue.parked() == 6)
        cancelled = [place.run("cancel", *place.where, one) for one in pushed[:3]]
        place.run("clear", *place.where, "default", "--yes")
        left = place.queue.parked()
        gate.touch()

    assert ["was taken out of queue default" in one.stdout for one in cancelled] == [True] * 3
    assert 0 == left
    assert 3 == place.queue.stores.failed.count()
    assert [] == place.trail(tenant="next")


@pytest.mark.thorough("the contract has each of these verbs, and the test above has workers beside two of them")
def test_parked_jobs_are_moved_dropped_and_left_while_workers_would_take_them(place):
    gate = place.path / "gate"
    place.queue.push(waits.name, {"tenant": "first", "gate": str(gate)})
    with place.pool("--workers", "3", *APP):
        eventually(lambda: place.trail(what="begins"))
        pushed = [place.queue.push(shares.name, {"tenant": tenant}) for tenant in "abcdef"]
        eventually(lambda: place.queue.parked() == 6)
        left = place.run("cancel", "--requeue", *place.where, pushed[0], check=False)
        moved = place.run("move", *place.where, "default", "other", "--where", "tenant=b", "--yes")
        dropped = place.run("drop", *place.where, "default", "--yes")
        gate.touch()

    assert "waits in queue default already, where it waited for a place of a limit" in left.stderr
    assert "1 job moved from default to other: default 1\n" == moved.stdout
    assert "5 jobs dropped on connection default: default 5\n" == dropped.stdout
    assert (0, 1) == (place.queue.parked(), place.queue.size("other"))
    assert [] == place.trail(tenant="a")


#: the reserve that ends a job is not told of its place; on Redis it could not give that back
WAITS = Plant(
    "",
    (
        ("worker/attempt.py", "lease._replace(holder=job.holder)\n            if plan", "lease\n            if plan"),
        ("worker/limits.py", "return self._store.limits.end_with_reserve", "return True"),
    ),
)


@pytest.mark.parametrize(
    "plant",
    [None, pytest.param(WAITS, marks=pytest.mark.thorough("a planted fault, which shows that the test can fail"))],
    ids=["as it is", "with a fault"],
)
def test_a_place_is_given_back_whatever_ends_its_job(place, plant, tmp_path):
    push(place, imports, "a")
    folder = plant.write(tmp_path / "planted") if plant else ROOT
    command = [sys.executable, "-m", "queuepool", "work", *place.flags("--stop-when-empty", *APP)]
    env = {**place.env(), "PYTHONPATH": f"{place.path}:{folder}:{ROOT}"}
    subprocess.run(command, env=env, cwd=folder, check=True, capture_output=True)

    assert len(place.trail(what="ends")) == 1
    assert bool(plant) == bool(place.queue.stores.limits.by_key())


def lease_end(site: Site) -> float:
    """When the only lease ends, in Unix seconds."""
    stores = site.queue.stores
    if site.connection.url.startswith(("redis", "unix")):
        key = f"{site.connection.prefix}queues:default:reserved"
        return float(stores.client.command("ZRANGE", key, 0, -1, "WITHSCORES")[1])
    rows = "SELECT reserved_at FROM jobs WHERE reserved_at IS NOT NULL"
    return float(stores.client.ask(lambda connection: connection.exec_driver_sql(rows).scalar()) + 4)


@pytest.mark.thorough("the next test has members that wait for a place and give it back")
def test_members_of_a_flow_wait_for_their_places(place):
    calls = [imports.call("a", 0.02) for _ in range(8)]
    page = flow_of(group(calls, then=imports.call("b"))).push_to(place.queue)
    with place.pool("--workers", "4", *APP):
        assert "done" == page.wait(60).state

    assert most_at_once(place, "a") <= 2


def test_members_of_a_flow_give_their_places_back_as_they_end(place):
    """Those that find no place, and those whose end could wait for the next reserve if they held none."""
    members = [plain.call("a", 0.02) for _ in range(5)]
    counted = [calls.call("b") for _ in range(3)]
    page = flow_of(group([*members, *counted], then=plain.call("a"))).push_to(place.queue)
    with place.pool("--workers", "3", *APP, config="[pool]\nlimits = default:1\nkeep_done = 1h\n"):
        assert "done" == page.wait(60).state
        eventually(lambda: not place.queue.stores.limits.by_key())

    assert 1 == most_at_once(place, "a")


def test_a_queue_has_a_limit_of_its_own(place):
    for _ in range(6):
        push(place, plain, "a", 0.1)
    with place.pool("--workers", "3", *APP, config="[pool]\nlimits = default:1\n"):
        eventually(lambda: len(place.trail(what="ends")) == 6)

    assert 1 == most_at_once(place, "a")


def test_a_job_without_the_argument_of_its_limit_fails_with_one_line(place):
    place.queue.push(imports.name, {"tenant": None})
    place.queue.push(imports.name, {"tenant": "a"})
    with place.pool("--workers", "1", *APP) as pool:
        eventually(lambda: place.trail(what="ends"))

    assert "limit import: tenant is None, where text or a number is needed" in pool.log()


@pytest.mark.thorough("a step, and a job that is given back, have tests of their own")
def test_a_job_that_leaves_at_a_step_gives_its_place_back(place):
    push(place, steps, "a")
    push(place, steps, "b")
    with place.pool("--workers", "1", *APP) as pool:
        eventually(lambda: place.trail(what="begins"))
        pool.end()
    with place.pool("--workers", "1", *APP):
        eventually(lambda: len(place.trail(what="ends")) == 2)

    assert {1} == {line["attempts"] for line in place.trail(what="ends")}


@pytest.mark.thorough("every run kills workers beside limits, flows and steps in a chaos run")
def test_never_more_run_whatever_is_killed(place):
    """Two pools, as on two hosts, lose workers and stewards all the while."""
    jobs, chance = 120, random.Random(7)
    for number in range(jobs):
        place.queue.push(locked.name, {"tenant": "ab"[number % 2], "number": number})
    other = ("--runtime-dir", str(place.path / "other"))
    with place.pool("--workers", "3", *APP) as first, place.pool("--workers", "3", *other, *APP) as second:

        def kill_and_look() -> bool:
            pool = chance.choice([first, second])
            pids = [*pool.workers(), *(pool.pids(STEWARD) if chance.random() < 0.2 else [])]
            if pids and chance.random() < 0.15:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(pids), signal.SIGKILL)
            return len({line["number"] for line in place.trail(what="ends")}) == jobs

        eventually(kill_and_look, within=90)
        eventually(lambda: not place.queue.stores.limits.by_key())

    assert [] == place.trail(what="too many")
    assert 0 == place.queue.size() + place.queue.parked()
