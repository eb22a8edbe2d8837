"""Pools of an earlier version and of this one: on one queue, and one after the other in one directory.

The earlier one is taken from the repository's history; a shallow clone has none.
"""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.pools import ROOT, RunningPool, Site

#: the last commit whose boards have another layout
EARLIER = "772cf2fae431"


@dataclass
class EarlierSite(Site):
    """A site whose pools have the earlier package."""

    package: Path

    def env(self) -> dict[str, str]:
        return {**super().env(), "PYTHONPATH": f"{self.package}:{self.path}:{ROOT}"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("earlier")
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "archive", EARLIER, "queuepool"]
    archive = subprocess.run(git, capture_output=True)
    if archive.returncode:
        pytest.skip(f"no {EARLIER} here: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


@pytest.fixture
def earlier(site: Site, package: Path) -> EarlierSite:
    return EarlierSite(site.connection, site.path, site.queue, package)


def kill(pool: RunningPool, pattern: str) -> set[int]:
    pids = pool.pids(pattern)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return set(pids)


def test_both_do_each_job_of_one_queue_once_while_workers_are_killed(site: Site, earlier: EarlierSite) -> None:
    there = ["--workers", "2", "--runtime-dir", str(site.path / "there")]
    gate = site.path / "gate"
    with site.pool("--workers", "2") as ours, earlier.pool(*there) as theirs:
        pushed = {site.push("until", gate=str(gate)) for _ in range(4)}
        eventually(lambda: 4 == len(site.trail(event="start")))  # each worker of both has one
        gate.touch()
        pushed |= {site.push("sleep", seconds=0.02, maxTries=0) for _ in range(200)}
        killed: set[int] = set()
        for pool in (ours, theirs, ours):
            killed |= kill(pool, ": worker .* busy")
            pool.wait_until_ready()
        eventually(lambda: pushed == {line["id"] for line in site.trail(event="end")})
        eventually(lambda: 0 == site.queue.sizes().total)

    enders: dict[str, list[int]] = {identity: [] for identity in pushed}
    for line in site.trail(event="end"):
        enders[line["id"]].append(line["pid"])
    assert 4 <= len({pids[0] for pids in enders.values()})
    # Killed between the job's last line and its settlement, a worker may have done one that is then done again.
    assert [] == [pids for pids in enders.values() if not set(pids[:-1]) <= killed]


def test_what_a_killed_pool_of_the_earlier_one_held_is_done_when_its_lease_ends(
    earlier: EarlierSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its board has another layout, so it is not read; the leases in the store are the same."""
    identity = earlier.push("until", gate=str(earlier.path / "gate"), maxTries=0)
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_RETRY_AFTER", "4")
    flags = ["--workers", "1", "--timeout", "3"]
    with earlier.pool(*flags) as pool:
        eventually(lambda: earlier.trail(event="start"))
        kill(pool, ".")
        pool.wait()
        (earlier.path / "gate").touch()
        ours = Site(earlier.connection, earlier.path, earlier.queue)
        with ours.pool(*flags) as next_pool:
            eventually(lambda: ours.trail(event="end", id=identity))

    assert [1, 2] == [line["attempt"] for line in ours.trail(event="start")]
    assert "Traceback" not in next_pool.log()
