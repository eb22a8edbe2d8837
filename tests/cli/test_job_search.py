"""``queuepool job ID`` of a job that is not tracked says where it is; and what it has looked at if it is nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.samples import new_jobs

pytestmark = pytest.mark.every_store("at")


@pytest.fixture(params=["redis", "sqlite", "postgres", "mariadb"])
def at(request: pytest.FixtureRequest):
    with site_on(request.param, request) as found:
        yield found


def asked(site: Site, job_id: str, *flags: str) -> dict[str, Any]:
    place = ("--runtime-dir", str(site.path / "run"))
    found: dict[str, Any] = json.loads(site.run("job", *site.where, *place, job_id, "--json", *flags).stdout)
    return found


def where(site: Site, job_id: str) -> tuple[str, str, str]:
    found = asked(site, job_id)
    assert job_id == found["id"]
    return found["state"], found["name"], found["found"]


def test_it_is_found_wherever_it_is(at):
    gate = at.path / "gate"
    failed = at.push("raise", maxTries=1)
    at.queue.push_raw(b'{"uuid":"odd-1","job":7}')
    delayed = at.push(delay=3600)
    elsewhere = at.push(queue="other")
    [lease] = at.queue.stores.queue.reserve(["other"], at.queue.stores.queue.join(), 1).leases
    waiting = at.push(queue="other")
    assert elsewhere == json.loads(lease.receipt)["id"]
    with at.pool("--workers", "1") as pool:
        running = at.push("until", gate=str(gate))
        eventually(lambda: at.trail(event="start", id=running))

        found = asked(at, running)
        assert ("running", "do", "default", 1) == tuple(found[key] for key in ("state", "name", "queue", "attempts"))
        assert (pool.workers(), "the board of pool default") == ([found["pid"]], found["found"])
        assert ("failed", "do", "the failed jobs") == where(at, failed)
        assert "asked" in asked(at, failed)["error"]
        assert ("delayed", "do", "the delayed jobs of queue default") == where(at, delayed)
        assert ("queued", "do", "the ready jobs of queue other") == where(at, waiting)
        at.queue.stores.queue.renew([lease])  # the commands may have taken longer than it lasts
        assert ("reserved", "do", "the reserved jobs of queue other") == where(at, elsewhere)
        odd = asked(at, "odd-1")
        assert ("quarantined", "default") == (odd["state"], odd["queue"])
        gate.touch()
        eventually(lambda: at.trail(event="end", id=running))
        said = ("job", *at.where, "--runtime-dir", pool.runtime, running)
        gone = eventually(lambda: (done := at.run(*said, check=False)).returncode == 1 and done)

    assert "" == gone.stdout
    for looked in (
        "no pool known here (default", "not among the failed jobs", "in quarantine",
        "or in queues default, other",
    ):  # fmt: skip
        assert looked in gone.stderr


def test_it_is_found_on_another_host_by_the_notice_of_its_pool(site):
    job = {"name": "charge", "id": "abc", "queue": "high", "attempt": 2, "since": "2026-11-23T03:01:10Z"}
    processes = [{"role": "steward", "number": 0}, {"role": "worker", "number": 3, "pid": 77, "job": job}]
    for host, shown in (("web1", 7), ("web2", processes)):
        site.queue.stores.control.publish(f"{host}:p:1", {"host": host, "pool": "p", "processes": shown})

    found = asked(site, "abc")
    assert ("running", "charge", "web2", 3, 77, 2) == tuple(
        found[key] for key in ("state", "name", "host", "worker", "pid", "attempts")
    )
    assert ("2026-11-23T03:01:10Z", "the last notice of pool p on web2") == (found["since"], found["found"])


def test_it_is_found_although_a_store_of_another_thing_is_away(site, own_server):
    (site.path / "q.ini").write_text(f"[connection]\nfailed_url = unix://{own_server.path}\n")
    site.queue.stores.queue.push("default", new_jobs(b'{"uuid":"odd-1","job":7}'))
    [lease] = site.queue.stores.queue.reserve(["default"], site.queue.stores.queue.join(), 1).leases
    site.queue.stores.queue.quarantine(lease, "odd")
    own_server.kill()

    assert "quarantined" == asked(site, "odd-1", "-c", "q.ini")["state"]
    said = site.run("job", *site.where, "-c", "q.ini", "never", check=False)
    assert 1 == said.returncode
    assert "; not searched: failed jobs (failed store: " in said.stderr


def test_the_end_of_one_that_is_not_tracked_cannot_be_waited_for(site):
    job_id = site.push()
    done = site.run("job", *site.where, job_id, "--wait", check=False)

    assert (1, f"job {job_id} is not tracked: cannot wait for its end\n") == (done.returncode, done.stderr)
    assert "state: queued\n" in done.stdout
