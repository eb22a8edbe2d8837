"""A stop while the steward imports its listeners: it waits for them only if something has to be settled."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from tests.support.eventually import eventually
from tests.support.pools import is_gone
from tests.support.processes import kill

#: a listener whose import takes until there is a file ``heard``; each process that begins it leaves a file
SLOW = (
    "import os, time\nopen(f'begun.{os.getpid()}', 'w').close()\n"
    "while not os.path.exists('heard'):\n    time.sleep(0.02)\n"
)
STEWARD = r"^queuepool: steward "
FLAGS = ("--workers", "1", "--listeners", "slow")
#: seconds that a stop gives a steward that needs no more time
SETTLE = 5


@pytest.fixture(autouse=True)
def slow(site) -> None:
    (site.path / "slow.py").write_text(SLOW)


def importing(site, pool) -> int:
    """The pid of its steward, which imports its listeners."""
    [steward] = eventually(lambda: pool.pids(STEWARD))
    eventually(lambda: (site.path / f"begun.{steward}").exists())
    return int(steward)


@pytest.mark.by_turns("stop")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGQUIT])
def test_a_stop_ends_at_once_a_steward_that_nothing_needs(site, stop):
    with site.pool(*FLAGS, wait=False) as pool:
        importing(site, pool)
        pool.signal(stop)
        assert 0 == pool.wait()

    assert not re.search(r" steward=\d+ pid=\d+ (killed|died)", pool.log())


def test_who_tells_such_a_steward_alone_to_leave_gets_another_one(site):
    with site.pool(*FLAGS, wait=False) as pool:
        for _ in range(4):  # none has failed by that
            steward = importing(site, pool)
            os.kill(steward, signal.SIGTERM)
            eventually(lambda gone=steward: pool.pids(STEWARD) not in ([], [gone]))
        (site.path / "heard").touch()
        pool.wait_until_ready()

    assert "never became ready" not in pool.log()


def test_such_a_steward_outlives_its_master(site):
    site.push("until", gate=str(site.path / "gate"), maxTries=1)
    with site.pool("--workers", "1") as pool:
        [start] = eventually(lambda: site.trail(event="start"))
        kill(pool.steward(), pool.pid)
        with site.pool(*FLAGS, wait=False) as successor:
            steward = importing(site, successor)
            kill(successor.pid)
            successor.wait()
            (site.path / "heard").touch()
            (site.path / "gate").touch()
            eventually(lambda: is_gone(start["pid"]) and is_gone(steward))

    assert 1 == len(site.trail(event="start")) == len(site.trail(event="end"))
    assert 0 == site.queue.size()


@pytest.mark.thorough("it waits for longer than a stop does otherwise")
def test_a_stop_waits_for_such_a_steward_if_there_may_be_orphans(site):
    site.push("until", gate=str(site.path / "gate"), maxTries=1)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        kill(pool.steward(), pool.pid)
        with site.pool(*FLAGS, wait=False) as successor:
            importing(site, successor)
            successor.signal(signal.SIGTERM)
            stopped = time.monotonic()
            eventually(lambda: not successor.pids("^queuepool: worker ") and time.monotonic() > stopped + SETTLE + 2)
            (site.path / "heard").touch()
            eventually(lambda: "waiting for workers of killed masters" in successor.log())
            (site.path / "gate").touch()
            assert 0 == successor.wait()

    assert 1 == len(site.trail(event="start")) == len(site.trail(event="end"))
    assert 0 == site.queue.size()
