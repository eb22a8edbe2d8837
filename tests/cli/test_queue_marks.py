"""``size``, ``monitor`` and ``status`` mark queues that nobody serves, paused ones, and pools that are lost."""

from __future__ import annotations

import getpass
import json
import re
import socket
from typing import Any

import pytest

from queuepool.board.status import iso
from tests.support.eventually import eventually
from tests.support.pools import Site


def rows(site: Site, verb: str, *flags: str) -> dict[str, dict[str, Any]]:
    place = ("--runtime-dir", str(site.path / "run")) if verb == "status" else ()
    return {row["queue"]: row for row in json.loads(site.run(verb, *site.where, *place, "--json", *flags).stdout)}


def test_queues_that_nobody_serves_are_marked_and_those_of_any_host_are_not(site):
    site.push()
    for queue in ("campaing", "theirs"):
        site.push(queue=queue)
    site.queue.stores.control.publish("web2:p:1", {"host": "web2", "pool": "p", "queues": ["theirs"]})
    for verb in ("size", "monitor"):
        marked = {queue: row["served"] for queue, row in rows(site, verb).items()}
        assert {"default": False, "campaing": False, "theirs": True} == marked  # no pool runs here
        said = site.run(verb, *site.where)
        assert "warn: queue campaing: no running pool serves it\n" in said.stderr
        assert "theirs" not in said.stderr
        assert "warn" not in said.stdout
    with site.pool("--workers", "1"):
        eventually(lambda: rows(site, "size")["default"]["served"])

    site.queue.stores.control.publish("web3:old:1", {"host": "web3", "pool": "old"})  # it does not say its queues

    assert {None} == {row["served"] for row in rows(site, "size").values()}
    assert "" == site.run("size", *site.where).stderr


def test_a_paused_queue_is_shown_with_since_when_and_by_whom(site):
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    site.push()
    with site.pool("--workers", "1", "--queue", "default,high") as pool:
        began = site.queue.stores.queue.now()
        site.run("pause", *site.where, "default")
        again = site.run("pause", *site.where, "default").stdout
        site.queue.stores.control.pause("high")  # as Laravel does
        place = ("--runtime-dir", pool.runtime)

        def shown() -> Any:
            [found] = json.loads(site.run("status", *site.where, *place, "--json").stdout)
            return len(found["pauses"]) == 2 and {one["queue"]: one for one in found["pauses"]}

        pauses = eventually(shown)
        said = site.run("status", *site.where, *place).stdout
        warned = site.run("monitor", *site.where, "default", "high").stderr
        [notice] = eventually(site.queue.stores.control.pools)
        site.run("continue", *site.where, "default", "high")
        eventually(lambda: " default (since " not in site.run("status", *site.where, *place).stdout)

    since = pauses["default"]["since"]
    assert iso(began - 1) <= since <= iso(began + 60)
    assert (by, None) == (pauses["default"]["by"], pauses["high"]["by"])
    assert f"queue default: already paused (since {since} by {by})\n" == again
    assert f": default (since {since} by {by}), high (since {pauses['high']['since']})\n" in said
    assert f"warn: queue default is paused (since {since} by {by})\n" in warned
    assert "warn: queue high is paused\n" in warned
    assert ["default", "high"] == notice["queues"]


@pytest.mark.thorough("what is known is shown in the tests above; test_is_the_pool_well.py has a store that is away")
def test_the_sizes_are_shown_without_a_control_store_and_what_is_unknown_is_said(site, server, own_server):
    site.push()
    (site.path / "q.ini").write_text(f"[connection]\ncontrol_url = unix://{own_server.path}\n")
    own_server.kill()
    server.set(f"{site.connection.prefix}queuepool:pools", "no notices")
    for verb in ("size", "monitor"):
        [row] = rows(site, verb, "-c", "q.ini").values()
        assert (1, None, None) == (row["size"], row["served"], row["paused"])
        said = site.run(verb, *site.where, "-c", "q.ini").stderr.splitlines()
        assert 2 == len(said)
        assert "note: connection default: which queues are served is unknown: WRONGTYPE" in said[0]
        assert said[1].startswith("note: connection default: which queues are paused is unknown: control store: ")


def test_a_late_notice_has_its_age_and_a_lost_pool_is_shown_with_what_it_ran(site, server):
    with site.pool("--workers", "1"):
        [notice] = eventually(site.queue.stores.control.pools)
    job = {
        "name": "charge",
        "id": "abc",
        "queue": "high",
        "attempt": 2,
        "since": "2026-11-23T03:01:10Z",
        "running": 1.0,
    }
    worker = {"role": "worker", "number": 1, "pid": 7, "state": "busy", "generation": 0, "job": job}
    now = server.time()[0]
    key = f"{site.connection.prefix}queuepool:pools"
    for host, ago in (("late", 11), ("lost", 300), ("gone", 4000)):
        facts = {**notice, "host": host, "at": now - ago, "processes": [worker]}
        server.hset(key, f"{host}:default:1", json.dumps(facts))
    server.hset(key, "lost:default:0", json.dumps({**notice, "host": "lost", "at": now - 900}))

    done = site.run("status", *site.where, "--all", check=False)
    found = {
        pool["host"]: pool
        for pool in json.loads(site.run("status", *site.where, "--all", "--json", check=False).stdout)
    }

    assert 5 == done.returncode
    assert {"late", "lost", socket.gethostname()} == found.keys()
    assert "left" == found[socket.gethostname()]["state"]
    assert ("lost", True) == (found["lost"]["state"], 300 <= found["lost"]["notice_age"] < 400)
    late, lost = (next(line for line in done.stdout.splitlines() if f"on {host}:" in line) for host in ("late", "lost"))
    assert re.search(r" notice=\d\ds ago", late)
    assert " beat=" not in late
    assert "pool default on lost: lost " in lost
    assert "and was not stopped; it ran charge abc. What it ran begins again when the leases end" in done.stdout
