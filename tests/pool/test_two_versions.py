"""Pools of an earlier version and of this one: on one queue, and one after the other in one directory.

The earlier one is taken from the repository's history; a shallow clone has none.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.meters import boards_in
from tests.support.pools import ROOT, RunningPool, Site, is_gone

#: the last commit whose boards have another layout
EARLIER = "772cf2fae431"
#: seconds; a steward kills orphans a third before its end, if it cannot renew it
LEASE = 10
QUICK = f"[connection]\nretry_after = {LEASE}\n[pool]\ntimeout = 0\n"


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


@pytest.mark.thorough("what any lost pool held is done when its lease ends; the earlier one has its leases above")
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


@pytest.fixture
def of_another_layout(site: Site) -> Iterator[tuple[Path, int, int]]:
    """A pool whose master was killed in the middle of a job, and whose board has another magic number.

    Unlike the earlier one it locks its board, as all later ones do. Yields the board, and the pids of its steward and
    of its worker.
    """
    site.push("until", gate=str(site.path / "gate"), maxTries=0)
    with site.pool("--workers", "1", config=QUICK) as pool:
        [start] = eventually(lambda: site.trail(event="start"))
        steward = pool.steward()
        os.kill(pool.pid, signal.SIGKILL)
        pool.wait()
        [board] = boards_in(Path(pool.runtime))
        with board.open("r+b") as file:
            file.write((7).to_bytes(8, "little"))
        yield board, steward, start["pid"]


def test_the_board_of_another_layout_is_left_to_its_own_steward(site: Site, of_another_layout: Any) -> None:
    board, _, worker = of_another_layout
    with site.pool("--workers", "1", config=QUICK) as pool:
        site.push("ok", delay=LEASE + 1, tag="a lease later")
        eventually(lambda: site.trail(event="end", tag="a lease later"))
        assert (True, False) == (board.exists(), is_gone(worker))
        (site.path / "gate").touch()
        eventually(lambda: not board.exists())
        eventually(lambda: 0 == site.queue.size())

    assert [worker] == [line["pid"] for line in site.trail(event="start", mode="until")]
    assert "Traceback" not in pool.log()


def test_workers_of_another_layout_end_when_their_steward_is_dead_too(site: Site, of_another_layout: Any) -> None:
    board, steward, worker = of_another_layout
    os.kill(steward, signal.SIGKILL)
    with site.pool("--workers", "1", config=QUICK) as pool:
        eventually(lambda: is_gone(worker))
        eventually(lambda: not board.exists())
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end"))
        eventually(lambda: 0 == site.queue.size())

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start")]
    assert 1 == len(site.trail(event="end"))
    assert 1 == pool.log().count("cannot be read: killed what still ran of its pool")
