"""A job cuts the board short, fills its disk, or writes over it (items 5 and 6 of docs/attacks.md)."""

from __future__ import annotations

import re
import signal
import subprocess

import pytest

from queuepool.board.board import Board
from queuepool.config.connections import identity_of
from tests.support.attackapp import SCRIBBLES
from tests.support.eventually import eventually
from tests.support.meters import board_in, counts_in
from tests.support.pools import is_gone
from tests.support.processes import kill

MODULES = ("--modules", "tests.support.poolapp,tests.support.attackapp")


def works(site) -> None:
    """A job that is pushed now is done."""
    done = site.push("ok")
    eventually(lambda: site.trail(event="end", id=done))


def status_of(site) -> str:
    return site.run("status", "--runtime-dir", str(site.path / "run"), "--json", check=False).stdout


def stores_of(site) -> list[str]:
    """The stores that the boards in the pool's directory say they are of."""
    boards = [path for path in (site.path / "run").glob("**/board.*") if path.name.count(".") == 1]
    return [Board.open(path).header.store for path in boards]


def unharmed(site, pool, workers: int) -> None:
    """As many processes as there should be, and no more; they work, and the master says who they are."""
    eventually(lambda: workers == len(pool.workers()))
    works(site)
    eventually(lambda: workers + 2 == len(pool.titles()))
    eventually(lambda: '"state": "running"' in status_of(site))  # what was written over is mended with the next tick
    assert pool.process.poll() is None


# Cut short


def test_a_job_finds_no_file_of_the_pools_open(site):
    site.queue.push("truncate_open_files")
    with site.pool("--workers", "1", *MODULES) as pool:
        [line] = eventually(lambda: site.trail(event="cut"))
        unharmed(site, pool, 1)

    # Its own trace is its own affair, and so are its own stacks.
    assert [] == [path for path in line["cut"] if not re.search(r"trace|\.stacks\d+$", path)]


@pytest.mark.by_turns("size")
@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["--preload", "--no-preload"])
@pytest.mark.parametrize("size", [0, 4096, pytest.param(10_000, marks=pytest.mark.thorough("as 4,096"))])
def test_a_board_that_a_job_cuts_short_costs_workers_and_no_pool(site, size, how):
    with site.pool("--workers", "2", how, *MODULES, wait=False) as pool:
        before = set(eventually(lambda: len(found := pool.workers()) == 2 and found))
        site.queue.push("truncate_board", {"size": size})
        eventually(lambda: site.trail(event="cut"))
        eventually(lambda: "was truncated" in pool.log())
        eventually(lambda: not before & set(pool.workers()))  # what they take until then waits for its lease to end
        eventually(lambda: 2 == len(pool.workers()))
        works(site)

    assert pool.process.returncode == 0


# Written over


# Slow: whatever is written over the board is read in another way, and each costs every worker.
@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", SCRIBBLES)
def test_a_job_that_writes_over_the_whole_board_ends_no_pool(site, how):
    with site.pool("--workers", "2", *MODULES) as pool:
        before = set(pool.workers())
        site.queue.push("scribble", {"how": how, "gate": str(site.path / "gate")}, options={"maxTries": 1})
        eventually(lambda: site.trail(event="scribbles"))
        (site.path / "gate").touch()
        eventually(lambda: not before & set(pool.workers()))  # what they take until then waits for its lease to end
        unharmed(site, pool, 2)
        eventually(lambda: 2 <= counts_in(site.path / "run").exits["crash"])  # none is taken for one that has left
        pool.signal(signal.SIGTERM)

        assert 0 == pool.wait()
    assert re.search(r"worker=\d pid=\d+ killed: OVERWRITTEN", pool.log())
    assert not re.search(r"steward=0 pid=\d+ (died|killed)", pool.log())


@pytest.mark.thorough("the test before it writes over the head and all the rest")
@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", SCRIBBLES)
def test_a_job_that_writes_over_the_head_of_the_board_harms_nobody(site, how):
    with site.pool("--workers", "2", *MODULES) as pool:
        before = set(pool.workers())
        site.queue.push("scribble", {"how": how, "last": 4096})
        eventually(lambda: site.trail(event="scribbled"))
        unharmed(site, pool, 2)
        eventually(lambda: stores_of(site) == [identity_of(site.connection)])  # else the next start leaves it alone
        site.run("restart", *site.where)
        eventually(lambda: not before & set(pool.workers()))

    assert "Traceback" not in pool.log()
    assert "killed" not in pool.log()


def test_the_steward_of_a_killed_master_kills_a_worker_that_wrote_over_its_slot(site):
    """It cannot renew that job's lease any more; without a living master, nobody else would see it."""
    killed, gate = site.path / "killed", site.path / "gate"
    with site.pool("--workers", "2", *MODULES) as pool:
        pool.titles()
        board = board_in(site.path / "run")
        data = {"how": "no numbers", "after": str(killed), "gate": str(gate)}
        site.queue.push("scribble", data, options={"maxTries": 1})
        eventually(lambda: site.trail(event="scribbles"))
        kill(pool.pid)
        pool.wait()
        eventually(lambda: board.header.orphans == 1)  # the steward has looked
        killed.touch()
        eventually(lambda: all(map(is_gone, pool.seen)))

    assert not gate.exists()
    assert 1 == pool.log().count("killed: OVERWRITTEN")
    assert "Traceback" not in pool.log()


# No room

NARROW = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
#: a runtime directory of so many KiB of its own, for the pool alone
MOUNT = 'mount -t tmpfs -o size={}k,mode=755 none run && exec "$0" "$@"'

can_mount = pytest.mark.skipif(
    subprocess.run([*NARROW, "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode != 0,
    reason="this kernel lets nobody make a file system of their own",
)


def narrow(site, size: int) -> list[str]:
    (site.path / "run").mkdir(mode=0o755)
    return [*NARROW, MOUNT.format(size)]


@pytest.mark.by_turns("size")
@can_mount
@pytest.mark.parametrize("size", [4, pytest.param(64, marks=pytest.mark.thorough("between the others")), 512])
def test_a_directory_without_room_is_refused_in_one_line(site, size):
    flags = site.flags("--workers", "2", "--runtime-dir", "run")
    done = site.run("start", *flags, check=False, parent=narrow(site, size))

    assert (73, "") == (done.returncode, done.stdout)
    assert re.fullmatch(r"queuepool: no room left for /\S+/run/default/\S+\n", done.stderr)


@can_mount
def test_a_directory_that_a_job_fills_ends_nobody_and_large_jobs_wait_until_there_is_room(site):
    flags = ("--workers", "2", "--sleep", "0.1", "--queue", "urgent,default", "--runtime-dir", "run")
    with site.pool(*flags, *MODULES, parent=narrow(site, 4096)) as pool:
        site.queue.push("fill")
        eventually(lambda: site.trail(event="filled"))
        for number in range(3):
            site.queue.push("big", {"text": "x" * 200_000 + str(number)})
        eventually(lambda: "no room beside the board" in pool.log())
        before, steward = set(pool.workers()), pool.steward()
        site.push("kill", maxTries=1, queue="urgent")
        eventually(lambda: len(now := pool.workers()) == 2 and set(now) != before)
        assert [] == site.trail(event="big")
        site.queue.push("make_room", queue="urgent")
        eventually(lambda: 3 == len(site.trail(event="big")))
        eventually(lambda: 0 == site.queue.size())

        assert steward == pool.steward()
    assert "Traceback" not in pool.log()
