"""The runtime directory disappears under a running pool (item 7 of docs/attacks.md)."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from queuepool.board.runtime_dir import Pidfile
from queuepool.errors import ConfigError, PoolRunning
from tests.support.eventually import eventually
from tests.support.processes import go_on, halt, kill


def works(site) -> None:
    """A job that is pushed now is done."""
    done = site.push("ok")
    eventually(lambda: site.trail(event="end", id=done))


def replaced(pool, victim: int) -> None:
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: victim not in (now := pool.workers()) and len(now) == 2)


@pytest.mark.by_turns("gone")
@pytest.mark.by_turns("how")
@pytest.mark.parametrize("gone", ["run", "run/default", "run/default/master.pid"])
@pytest.mark.parametrize("how", ["--preload", "--no-preload"])
def test_a_directory_that_disappears_is_made_anew_and_the_pool_is_found_again(site, gone, how):
    place = ("--runtime-dir", str(site.path / "run"))
    with site.pool("--workers", "2", how) as pool:
        path = site.path / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        eventually(lambda: "was removed; created again" in pool.log())  # said when all of it is there
        replaced(pool, pool.workers()[0])
        works(site)
        [status] = json.loads(site.run("status", *place, "--json").stdout)
        site.run("scale", *place, "3")
        eventually(lambda: 3 == len(pool.workers()))
        site.run("stop", *place)

        assert (pool.pid, "running", 2) == (status["master"], status["state"], status["workers"])
        assert 0 == pool.wait()
    assert 1 == pool.log().count("was removed; created again")
    assert "never became ready" not in pool.log()


def test_a_second_pool_that_took_the_place_meanwhile_is_left_alone_and_the_first_ends(site):
    with site.pool("--workers", "1") as first:
        halt(first.pid)
        shutil.rmtree(site.path / "run")
        with site.pool("--workers", "1") as second:
            go_on(first.pid)

            assert 1 == first.wait()
            works(site)
            status = site.run("status", "--runtime-dir", str(site.path / "run")).stdout
            assert f"master={second.pid}" in status
    assert "cannot be created again" in first.log()


def test_a_directory_that_cannot_be_made_anew_ends_the_pool_at_once_after_its_jobs(site):
    gate = site.path / "gate"
    site.push("until", gate=str(gate))
    with site.pool("--workers", "2") as pool:
        eventually(lambda: site.trail(event="start"))
        shutil.rmtree(site.path / "run")
        (site.path / "run").touch()  # in its place
        eventually(lambda: "cannot be created again" in pool.log())
        gate.touch()

        assert 1 == pool.wait()
        (site.path / "run").unlink()
    assert 1 == len(site.trail(event="end"))
    assert 1 == pool.log().count("CRITICAL")


def test_the_jobs_of_a_pool_whose_directory_disappeared_are_settled_when_its_master_is_killed(site):
    gate = site.path / "gate"
    site.push("until", gate=str(gate))
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        shutil.rmtree(site.path / "run")
        eventually(lambda: "was removed; created again" in pool.log())  # said when all of it is there
        pool.titles()
        os.kill(pool.pid, signal.SIGKILL)
        pool.wait()
        gate.touch()

    assert 1 == len(site.trail(event="end"))
    assert 0 == site.queue.size()


@pytest.mark.thorough("the first test has the new directory, and pool/ what a killed pool leaves")
def test_what_a_pool_left_in_a_directory_that_was_made_anew_is_gone_after_the_next_start(site):
    with site.pool("--workers", "1") as pool:
        shutil.rmtree(site.path / "run")
        eventually(lambda: "was removed; created again" in pool.log())  # said when all of it is there
        site.push("kill", maxTries=1)  # of the worker that comes after it, which nothing ends
        eventually(site.queue.stores.failed.page)
        pool.wait_until_ready()
        left = eventually(lambda: list((site.path / "run/default").glob("board.*.trace*")))
        kill(*pool.titles())
        pool.wait()
        assert left[0].exists()
        with site.pool("--workers", "1"):
            assert not left[0].exists()


def refused(pid: int) -> PoolRunning:
    return PoolRunning("p", pid, Path("run"))


def test_a_directory_is_made_again_that_the_last_steward_removes_before_the_pidfile_is_in_it(tmp_path):
    folder, made = tmp_path / "p", list[int]()

    def make() -> None:
        folder.mkdir(exist_ok=True)
        made.append(1)
        if len(made) == 1:
            folder.rmdir()  # as the steward of the killed master does, which finds it empty

    pidfile = Pidfile(folder / "master.pid", refused)
    pidfile.claim(make)

    assert pidfile.is_ours
    assert 2 == len(made)
    pidfile.close()


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"master\.pid: No such file or directory"):
        Pidfile(tmp_path / "p/master.pid", refused).claim(lambda: None)
