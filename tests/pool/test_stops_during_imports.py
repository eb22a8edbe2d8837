"""A stop does not wait for an import: a worker that imports its modules holds no job."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from tests.support import warm
from tests.support.eventually import eventually
from tests.support.pools import is_gone

#: takes a minute or more once the gate is there, in Python's code or in C code
SLOW = """
import os, time
from queuepool import job
from tests.support.poolapp import hang_in_c, note

note(event="import")
if os.path.exists("gate"):
    {slow}

@job("quick")
def quick(): note(event="ran")
"""
IN_PYTHON, IN_C = "time.sleep(60)", "hang_in_c()"
#: seconds: less than the import takes, and than the 60 after which the alarm ends it
SOON = 20.0


def slow(site, how=IN_PYTHON, *, gate=True):
    (site.path / "slow.py").write_text(SLOW.format(slow=how))
    if gate:
        (site.path / "gate").touch()


@pytest.mark.by_turns("how", "preload")
@pytest.mark.parametrize("preload", ["--no-preload", "--preload"])
@pytest.mark.parametrize("how", [IN_PYTHON, IN_C])
def test_a_stop_while_the_modules_are_imported_ends_the_pool(site, how, preload):
    slow(site, how)
    with site.pool("--workers", "2", preload, "--modules", "slow", wait=False) as pool:
        eventually(lambda: site.trail(event="import"))
        pool.signal(signal.SIGTERM)
        assert 0 == pool.wait(SOON)

    assert "killed:" not in pool.log()
    assert "process died" not in pool.log()
    assert "next try" not in pool.log()


def test_a_stop_during_a_reload_and_one_worker_less_do_not_wait_for_new_workers(site):
    slow(site, gate=False)
    with site.pool("--workers", "1", "--modules", "slow") as pool:
        (site.path / "gate").touch()
        pool.signal(signal.SIGTTIN)
        second = eventually(lambda: len(found := site.trail(event="import")) == 2 and found[1]["pid"])
        pool.signal(signal.SIGTTOU)
        eventually(lambda: is_gone(second), SOON)
        pool.signal(signal.SIGHUP)
        eventually(lambda: len(site.trail(event="import")) == 3)
        pool.signal(signal.SIGTERM)
        assert 0 == pool.wait(SOON)

    assert "process died" not in pool.log()


def test_a_worker_that_somebody_else_ends_while_it_imports_is_replaced_at_once(site):
    slow(site)
    with site.pool("--workers", "1", "--modules", "slow", wait=False) as pool:
        first = eventually(lambda: site.trail(event="import"))[0]["pid"]
        (site.path / "gate").unlink()
        os.kill(first, signal.SIGTERM)
        pool.wait_until_ready()

    assert "next try" not in pool.log()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_worker_alone_leaves_while_it_imports(site, signum):
    slow(site)
    words = [sys.executable, "-m", "queuepool", "work", *site.flags("--modules", "slow")]
    with (site.path / "log").open("wb") as log:
        alone = warm.start(words, env=site.env(), cwd=site.path, stdout=log, stderr=log)
        try:
            eventually(lambda: site.trail(event="import"))
            alone.send_signal(signum)
            assert alone.wait(timeout=SOON) in (0, -signum)
        finally:
            alone.kill()
