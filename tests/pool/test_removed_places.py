"""What a pool was started in and with is removed while it runs, as by whoever prunes old releases: the pool goes on."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from tests.support.eventually import eventually
from tests.support.pools import ROOT

#: in a directory of its own, and in one that is gone
IN_A_RELEASE = ["sh", "-c", 'mkdir -p release && cd release && exec "$@"', "sh"]
IN_NONE = ["sh", "-c", 'mkdir none && cd none && rmdir ../none && exec "$@"', "sh"]


def remove(folder):
    """At once: whoever writes a file there meanwhile does it before that, or finds no such directory."""
    folder.rename(gone := folder.with_name(f"{folder.name}.gone"))
    shutil.rmtree(gone)


def works(site):
    done = site.push("ok")
    eventually(lambda: site.trail(event="end", id=done))


@pytest.mark.by_turns("preload")
@pytest.mark.parametrize("preload", ["--no-preload", "--preload"])
def test_new_workers_and_reloads_do_without_the_working_directory(site, preload):
    place = ["--runtime-dir", str(site.path / "run"), *site.where]
    with site.pool("--workers", "1", "--max-jobs", "1", preload, parent=IN_A_RELEASE) as pool:
        (site.path / "release").rmdir()
        for _ in range(3):
            works(site)
        done = site.run("reload", "--wait", *place, parent=IN_NONE)
        works(site)
    log = pool.log()

    assert "1 of 1 workers run the new code" in done.stdout
    assert 1 == log.count(f"gone since the start: {site.path}/release (the working directory)")
    assert "Traceback" not in log
    assert "never became ready" not in log


@pytest.mark.thorough("the first test has a pool whose directory is gone")
def test_code_that_went_with_the_directory_is_named_and_costs_no_worker(site):
    place = ["--runtime-dir", str(site.path / "run"), *site.where]
    (site.path / "release").mkdir()
    (site.path / "release/own.py").write_text("import tests.support.poolapp\n")
    with site.pool("--workers", "1", "--modules", "own", parent=IN_A_RELEASE) as pool:
        remove(site.path / "release")
        done = site.run("reload", "--wait", *place, check=False)
        found = site.run("check", *site.flags(), parent=IN_NONE, check=False).stdout
        works(site)

    assert 1 == done.returncode
    problem = "cannot import own: there is no own in the working directory, which was removed"
    assert f"the new code does not become ready: {problem}" in done.stderr
    assert f"gone since the start: {site.path}/release (the working directory)" in pool.log()
    assert "ok   modules: tests.support.poolapp" in found


@pytest.mark.thorough("the first test has a pool whose directory is gone")
def test_a_log_goes_on_without_its_directory_and_without_the_one_it_was_named_from(site):
    (site.path / "logs").mkdir()
    with site.pool("--workers", "1", "--max-jobs", "1", "--log", "../logs/app.log", parent=IN_A_RELEASE):
        works(site)
        remove(site.path / "logs")
        (site.path / "release").rmdir()
        for _ in range(3):  # by a worker that is there, and by one that is not yet
            works(site)
    log = (site.path / "logs/app.log").read_text()

    assert 3 <= log.count(" job done ")
    assert " master pid=" in log.splitlines()[-1]


@pytest.mark.real_start
def test_a_pool_outlives_its_installation(site):
    shutil.copytree(ROOT / "queuepool", site.path / "queuepool")
    config = "[schedule:hourly]\ncron = 0 * * * *\njob = do\n[alerts]\nexec = /bin/true\n"
    listen = ("--listen", f"unix:{site.path}/web.sock")
    with site.pool("--workers", "1", *listen, config=config) as pool:
        remove(site.path / "queuepool")
        first = [pool.steward(), *pool.pids("^queuepool: web"), *pool.workers()]
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: not {*first} & {*pool.titles()})
        eventually(lambda: len(pool.pids("^queuepool: (steward|web) .* running")) == 2 and pool.workers())
        for mode in ("ok", "raise", "release"):
            site.push(mode, maxTries=1)
        site.queue.push("add", {"left": 1, "right": 2})
        eventually(lambda: len(site.trail(event="end")) >= 3)
        works(site)

    assert "stderr: " not in pool.log()


@pytest.mark.thorough("the tests above remove each place from one pool")
@pytest.mark.real_start
def test_a_later_master_of_several_pools_needs_neither_the_installation_nor_the_working_directory(site):
    shutil.copytree(ROOT / "queuepool", site.path / "queuepool")
    config = f"[pool:first]\nlisten = unix:{site.path}/web.sock\n[pool:second]\nqueue = other\n"
    (site.path / "pool.ini").write_text(config)
    flags = ("--workers", "1", "--runtime-dir", "../run", "-c", str(site.path / "pool.ini"))
    with site.pool(*flags, parent=IN_A_RELEASE, wait=False) as pool:
        [first] = eventually(lambda: pool.pids(r"^queuepool: master \[first\] running workers=1"))
        works(site)
        remove(site.path / "queuepool")
        (site.path / "release").rmdir()
        os.kill(first, signal.SIGKILL)
        eventually(lambda: "the pool is back" in pool.log())
        works(site)

    assert "Traceback" not in pool.log()
    assert "never became ready" not in pool.log()
