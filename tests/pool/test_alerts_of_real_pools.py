"""Alerts in real pools: a program of the operator's is run, once for two pools, also while the store is away."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.drivers import site_at
from tests.support.eventually import eventually
from tests.support.lines import whole_lines
from tests.support.pools import RunningPool, Site
from tests.support.redis_server import Server
from tests.support.webhooks import hook

pytestmark = pytest.mark.every_store("place")

#: seconds: two looks, ten seconds apart, and a machine that is busy
TWO_LOOKS = 60.0
#: of a job that runs while another waits
KINDS = ("running", "wait")


def config(site: Site, *lines: str) -> str:
    """Two pools, and a program that keeps what it gets."""
    program = site.path / "page"
    # At once: the programs of two pools may run beside each other.
    program.write_text(f"#!/bin/sh\nnotice=$(cat)\nprintf '%s\\n' \"$notice\" >> {site.path}/notices\n")
    program.chmod(0o755)
    return "\n".join(["[pool:a]", "[pool:b]", "[alerts]", f"exec = {program}", "lost = 0", *lines, ""])


def notices(site: Site) -> list[tuple[str, str, str]]:
    found = [json.loads(line) for line in whole_lines(site.path / "notices")]
    return [(one["state"], one["kind"], one["subject"]) for one in found]


def alerts(pool: RunningPool, name: str = "a") -> list[dict[str, Any]]:
    """As ``status`` shows them."""
    done = pool.site.run(
        "status", "--json", "-c", "pool.ini", "--pool", name, "--runtime-dir", pool.runtime, check=False
    )
    return json.loads(done.stdout)[0]["alerts"]  # type: ignore[no-any-return]


@pytest.fixture(params=["redis", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    if request.param == "redis":
        return request.getfixturevalue("site")  # type: ignore[no-any-return]
    return site_at(f"sqlite:///{tmp_path}/queue.db", tmp_path)


# Slow: two pools, and the steward looks for alerts twice.
def test_two_pools_send_one_notice_of_each_alert_and_one_when_it_is_over(place: Site) -> None:
    for _ in range(3):
        place.push("until", gate=str(place.path / "gate"), timeout=300)
    text = config(place, "running = 1", "wait = 1")
    one = place.pool("--pool", "a", "--workers", "1", config=text)
    two = place.pool("--pool", "b", "--workers", "1", "--runtime-dir", str(place.path / "b"), config=text)
    with one as a, two:
        for kind in KINDS:
            eventually(lambda kind=kind: a.log().count(f"alert raised kind={kind}") == 2, TWO_LOOKS)  # type: ignore[misc]
        [alert] = eventually(lambda: [one for one in alerts(a) if one["kind"] == "running"])
        shown = place.run("status", "-c", "pool.ini", "--pool", "a", "--runtime-dir", a.runtime).stdout
        (place.path / "gate").touch()
        for kind in KINDS:
            eventually(lambda kind=kind: a.log().count(f"alert cleared kind={kind}") == 2, TWO_LOOKS)  # type: ignore[misc]
        eventually(lambda: len(notices(place)) >= 4)
        eventually(lambda: [] == alerts(a))

    assert ("running", 1.0) == (alert["kind"], alert["limit"])
    assert f"alert since {alert['since']}: job do has run for " in shown
    expected = [(state, *one) for state in ("raised", "cleared") for one in (("running", "do"), ("wait", "default"))]
    assert sorted(expected) == sorted(notices(place))


@pytest.mark.thorough("test_alerts.py has it with written boards; the test above with real pools")
@pytest.mark.fault("F83")
def test_a_store_that_is_away_is_an_alert_while_it_is_away(away: Site, own_server: Server, monkeypatch) -> None:
    text = config(away, "store = 1", "webhook = ${HOOK}")
    with hook() as server:
        monkeypatch.setenv("HOOK", server.url)
        with away.pool("--pool", "a", config=text) as pool:
            own_server.kill()
            eventually(lambda: notices(away) and server.bodies, TWO_LOOKS)
            during = eventually(lambda: alerts(pool))
            own_server.start()
            eventually(lambda: len(notices(away)) == 2 and len(server.bodies) == 2, TWO_LOOKS)

    assert [("store", "store")] == [(one["kind"], one["subject"]) for one in during]
    assert [("raised", "store", "store"), ("cleared", "store", "store")] == notices(away)
    assert ["raised", "cleared"] == [body["state"] for body in server.bodies]


def other_pool(site: Site, name: str) -> RunningPool:
    """A pool without alerts on the same store, whose notice is there."""
    folder = site.path / name
    folder.mkdir()
    place = Site(site.connection, folder, site.queue)
    pool = RunningPool(place, place.flags("--runtime-dir", str(folder / "run"), "--pool", name, "--workers", "1"), "")
    pool.wait_until_ready()
    eventually(lambda: f'"{name}"' in site.run("status", "--all", "--json", *site.where, check=False).stdout)
    return pool


# Slow: four pools, and as long as until a pool counts as lost.
@pytest.mark.thorough("it takes half a minute; test_alerts.py has lost and ended pools on written boards")
def test_a_pool_that_was_killed_or_lost_its_master_is_missed_and_one_that_was_stopped_is_not(site: Site) -> None:
    with site.pool("--pool", "a", config=config(site).replace("lost = 0", "lost = 10")) as watching:
        stopped, killed, headless = (other_pool(site, name) for name in ("stopped", "killed", "headless"))
        stopped.end()
        killed.kill_all()
        headless.titles()  # `end` waits for the processes that were seen while there was a master
        headless.signal(signal.SIGKILL)  # of the master alone, as the kernel does when memory is short
        headless.wait()
        headless.end()
        eventually(lambda: len(notices(site)) >= 2, 1.5 * TWO_LOOKS)
        assert watching.process.poll() is None

    host = os.uname().nodename
    assert [("raised", "lost", f"{host}:{name}") for name in ("headless", "killed")] == sorted(notices(site))


def test_dead_workers_are_settled_at_once_while_a_webhook_hangs(site: Site, monkeypatch) -> None:
    over, text = threading.Event(), config(site, "running = 1", "webhook = ${HOOK}")
    with hook(lambda _: over.wait() and None) as server:
        monkeypatch.setenv("HOOK", server.url)
        try:
            with site.pool("--pool", "a", "--workers", "2", config=text) as pool:
                site.push("until", gate=str(site.path / "gate"), timeout=300)
                eventually(lambda: server.bodies, TWO_LOOKS)
                site.push("kill", tag="killed")
                eventually(lambda: len(site.trail(event="start", tag="killed")) >= 3)
                eventually(lambda: "it took longer than 10 s" in pool.log())
                (site.path / "gate").touch()
        finally:
            over.set()

    assert "steward died" not in pool.log()


@pytest.mark.real_start
def test_without_the_section_nothing_of_alerts_is_imported(site: Site) -> None:
    (site.path / "look.py").write_text(
        "import os, sys\nfrom queuepool import on\nfrom queuepool.events import ProcessDied\n"
        "@on(ProcessDied)\ndef look(event):\n"
        "    names = [name for name in sys.modules if 'alert' in name and 'steward' in name]\n"
        "    open(os.environ['TRAIL'], 'a').write(f'{{\"event\": \"look\", \"alerts\": {len(names)}}}\\n')\n"
    )
    with site.pool("--listeners", "look", "--workers", "1") as pool:
        os.kill(pool.workers()[0], signal.SIGKILL)
        eventually(lambda: site.trail(event="look"))

    assert [0] == [line["alerts"] for line in site.trail(event="look")]
