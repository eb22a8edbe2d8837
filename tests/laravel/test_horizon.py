"""A pool in the dashboard of Laravel Horizon: what its own code answers, where its source is there, about our keys."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.laravel_peer import LIMIT, require_php
from tests.support.pools import Site
from tests.support.redis_server import PREFIX

HORIZON = "laravel_horizon:"
NAME = f"Queuepool-{os.uname().nodename}-default"
SHOWN = ("--horizon", HORIZON, "--queue", "high,default", "--workers", "2")


@pytest.fixture
def ask(redis_socket: str) -> Any:
    """Ask Horizon; its source is where QP_HORIZON says."""
    require_php()
    if not os.environ.get("QP_HORIZON"):
        pytest.skip("needs laravel/horizon: its folder in QP_HORIZON")
    env = {**os.environ, "QP_SOCKET": redis_socket, "QP_PREFIX": PREFIX, "QP_HORIZON_PREFIX": HORIZON}

    def asked(*words: str) -> Any:
        command = ["php", str(Path(__file__).with_name("horizon.php")), *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert 0 == done.returncode and not done.stderr, done.stdout + done.stderr
        return json.loads(done.stdout)

    return asked


def test_the_dashboard_shows_workers_queues_and_what_they_have_done(site: Site, ask: Any) -> None:
    with site.pool(*SHOWN) as pool:
        for number in range(12):
            site.push(queue="high" if number % 2 else "default")
        eventually(lambda: 6 == int(ask("dashboard")["stats"]["jobsPerMinute"] or 0) // 2)
        found = ask("dashboard")
        print(json.dumps(found, indent=1))
    assert False
