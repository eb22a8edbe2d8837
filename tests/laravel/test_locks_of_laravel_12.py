"""A worker and the locks of jobs as Laravel 12 pushes them: ended with the job or at its start, and said if not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis

from queuepool.payload.xxh3 import hexdigest
from tests.support.pools import Site

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())["12.67.0"]
HANDLERS = r"""
import redis, os
from queuepool import job
from tests.support.poolapp import note

def held(event=None, number=None):
    with redis.Redis(unix_socket_path=os.environ["QP_SOCKET"]) as server:
        note(event="ran", locks=sum(1 for _ in server.scan_iter("*laravel_unique_job:*")))

for name in ("Listeners\\UniqueReceipt", "Listeners\\ReceiptUntil", "Events\\OrderMoved", "Jobs\\Unique"):
    job("App\\" + name)(held)
"""


@pytest.fixture
def locked(site: Site, server: redis.Redis, redis_socket: str, monkeypatch: pytest.MonkeyPatch):
    """Push a recorded payload whose lock has this name."""
    monkeypatch.setenv("QP_SOCKET", redis_socket)
    (site.path / "held.py").write_text(HANDLERS)

    def push(case: str, lock: str) -> None:
        server.set(f"laravel_unique_job:{lock}", "whoever")
        site.queue.push_raw(RECORDED[case].encode())

    return push


def work(site: Site) -> str:
    return site.work("--modules", "held").stderr


@pytest.mark.parametrize(
    ("case", "name", "during"),
    [
        ("unique listener", "App\\Listeners\\UniqueReceipt", 1),
        ("listener until", "App\\Listeners\\ReceiptUntil", 0),
        ("unique broadcast", "App\\Events\\OrderMoved", 1),
    ],
)
def test_the_lock_of_what_a_job_carries_ends_when_laravel_says(site, server, locked, case, name, during):
    locked(case, f"{hexdigest(name)}:7")
    log = work(site)

    assert [during] == [line["locks"] for line in site.trail(event="ran")]
    assert ([], False) == (server.keys("*laravel_unique_job:*"), "payload odd" in log)


@pytest.mark.parametrize("case", ["unique", "listener until"])
def test_a_lock_that_is_elsewhere_is_said(site, locked, case):
    locked(case, "another name:7")
    locked(case, "another name:7")
    log = work(site)

    assert 1 == log.count("its unique lock was not found at its release")
    assert "set restart_key with the prefix of Laravel's cache" in log


def test_a_lock_that_the_payload_does_not_name_is_said(site, server, locked):
    """As of ``Schedule::job()``."""
    locked("scheduled", "App\\Jobs\\Unique:7")
    locked("scheduled", "App\\Jobs\\Unique:7")
    log = work(site)

    assert 1 == log.count("stays held: the payload does not name it; set unique_id on its handler")
    assert [b"laravel_unique_job:App\\Jobs\\Unique:7"] == server.keys("*laravel_unique_job:*")


def test_a_chain_that_foreign_drops_is_said_once(site, monkeypatch):
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_FOREIGN", "ignore")
    (site.path / "held.py").write_text(
        "from queuepool import job\n@job('App\\\\Jobs\\\\Step')\ndef step(number): ...\n"
    )
    for _ in range(2):
        site.queue.push_raw(RECORDED["chain"].encode())
    log = site.work("--modules", "held").stderr

    assert 1 == log.count("it is followed by 2 more of its chain and has callbacks for a failure of its chain: dropped")
