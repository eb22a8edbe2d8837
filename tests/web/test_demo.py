"""The demo in the browser: pools with life in them, and nothing left of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support.eventually import eventually
from tests.support.pools import ROOT
from tests.support.redis_server import free_port

pytestmark = pytest.mark.thorough("it starts two pools and takes half a minute")


def test_the_demo_shows_pools_with_life_in_them_and_leaves_nothing(tmp_path: Path):
    listen = f"127.0.0.1:{free_port()}"
    env = {**os.environ, "DEMO_LISTEN": listen, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([ROOT / "scripts/demo", "--web"], env=env, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout
            assert f"the dashboard is at http://{listen}/" in demo.stdout.readline()
            eventually(lambda: has_life(listen), 60)
        finally:
            demo.terminate()
            assert 143 == demo.wait(60)

    assert [] == list(tmp_path.iterdir())


def has_life(listen: str) -> bool:
    """Whether jobs are done, fail, are in quarantine, and run."""
    totals = facts(listen, "overview")["totals"]
    return bool(totals["failed"] and totals["quarantined"] and totals["delayed"] and facts(listen, "running")["jobs"])


def facts(listen: str, page: str) -> Any:
    with urlopen(f"http://{listen}/api/v1/{page}", timeout=20) as answer:
        return json.load(answer)


def test_the_demo_takes_no_other_words():
    assert 2 == subprocess.run([ROOT / "scripts/demo", "--wbe"], capture_output=True, check=False).returncode
