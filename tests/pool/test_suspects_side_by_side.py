"""Jobs that may have ended their workers run one after another, and those that wait hold nothing up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.redis_server import PREFIX

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.besideapp")
LOST = "lease lost"


def push(site: Site, mode: str, **data: Any) -> str:
    return site.push(mode, name="beside", **data)


def suspected(site: Site, mode: str, count: int, **data: Any) -> None:
    """So many jobs that were there when two workers died without a proof of who had ended them."""
    store = site.queue.stores.queue
    ids = [push(site, mode, **data) for _ in range(count)]
    for _ in range(2):
        for job_id, lease in zip(ids, store.reserve(("default",), store.join(), count).leases, strict=True):
            assert store.release(lease, 0.0, job_id, "suspects")


def test_suspects_run_one_after_another_and_keep_nobody_out(site):
    suspected(site, "until", 4, gate=str(site.path / "gate"), tag="suspect")
    with site.pool(*BESIDE[:3], "4", *BESIDE[4:]):
        eventually(lambda: site.trail(event="start", tag="suspect"))
        for number in range(3):
            push(site, "until", gate=str(site.path / "others"), tag=f"{number}")
        eventually(lambda: 4 == len(site.trail(event="start")))
        (site.path / "gate").touch()
        eventually(lambda: 4 == len(site.trail(event="end", tag="suspect")))
        (site.path / "others").touch()
        eventually(lambda: 0 == site.queue.size())

    order = [line["event"] for line in site.trail(tag="suspect") if line["event"] in ("start", "end")]
    assert ["start", "end"] * 4 == order


def one_runs(site: Site, count: int) -> None:
    """One of so many suspects, until the gate is there; the others are in the worker as well."""
    eventually(lambda: site.trail(event="start", tag="suspect"))
    eventually(lambda: (0, count) == (site.queue.sizes().ready, site.queue.sizes().reserved))


def test_those_that_wait_are_given_back_when_the_worker_is_paused(site):
    suspected(site, "until", 3, gate=str(site.path / "gate"), tag="suspect")
    with site.pool(*BESIDE) as pool:
        one_runs(site, 3)
        site.run("pause", *site.where, "default")
        eventually(lambda: "worker paused" in pool.log())
        (site.path / "gate").touch()
        eventually(lambda: (2, 0) == (site.queue.sizes().ready, site.queue.sizes().reserved))
        assert [] == site.trail(event="start", tag="suspect")[1:]
        site.run("continue", *site.where, "default")
        eventually(lambda: 3 == len(site.trail(event="end", tag="suspect")))
        eventually(lambda: 0 == site.queue.size())

    assert 3 == len(site.trail(event="start", tag="suspect"))


@pytest.mark.thorough("the first test has suspects that wait for one another")
def test_the_lost_lease_of_one_that_waits_ends_nobody(site, server):
    suspected(site, "until", 3, gate=str(site.path / "gate"), tag="suspect")
    with site.pool(*BESIDE, config="[connection]\nretry_after = 5\n") as pool:  # the others keep theirs
        one_runs(site, 3)
        [running] = site.trail(event="start", tag="suspect")
        reserved = f"{PREFIX}queues:default:reserved"
        waiting = [one for one in server.zrange(reserved, 0, -1) if running["id"].encode() not in one]
        server.zrem(reserved, waiting[-1])
        eventually(lambda: LOST in pool.log())
        (site.path / "gate").touch()
        eventually(lambda: 2 == len(site.trail(event="end", tag="suspect")))
        eventually(lambda: 0 == site.queue.size())

    assert 2 == len(site.trail(event="start", tag="suspect"))
    assert 1 == len({line["pid"] for line in site.trail()})


@pytest.mark.thorough("the first test has suspects that wait for one another")
def test_one_that_expires_while_it_waits_does_not_begin(site):
    control = site.queue.stores.control
    control.pause("default")
    with site.pool(*BESIDE) as pool:
        eventually(lambda: "worker paused" in pool.log())
        expires = int(time.time()) + 10  # the first of them has begun by then
        suspected(site, "until", 2, gate=str(site.path / "gate"), tag="suspect", retryUntil=expires)
        control.resume("default")
        one_runs(site, 2)
        eventually(lambda: time.time() > expires + 1)
        (site.path / "gate").touch()
        eventually(lambda: 1 == site.queue.stores.failed.count())
        eventually(lambda: 0 == site.queue.size())

    assert 1 == len(site.trail(event="start", tag="suspect"))
