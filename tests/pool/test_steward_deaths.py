"""What keeps crashing stewards is skipped; a pool whose stewards cannot stay alive gives up."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from queuepool.board.board import Board, Slot
from tests.support import processes, warm
from tests.support.eventually import eventually
from tests.support.pools import ROOT, RunningPool, Site

#: a listener's module that ends the steward a while after it has begun to work, and leaves the workers alone
SHORT_LIVED = """
import os, pathlib, threading
if b"steward" in pathlib.Path("/proc/self/cmdline").read_bytes():
    threading.Timer(1.5, os._exit, [7]).start()
"""


def board_of(pool: RunningPool) -> Board:
    (path,) = (path for path in Path(pool.runtime).glob("*/board.*") if path.name.count(".") == 1)
    return Board.open(path, write=True)


def slot_of(board: Board, pid: int) -> Slot:
    return next(slot for slot in board.slots if slot.pid == pid)


def scribble_over_its_job(board: Board, pid: int) -> None:
    """What the worker holds looks whole, but is no payload."""
    receipt = slot_of(board, pid).hand.held()[0].lease.receipt
    at = board.memory[0 : len(board.memory)].find(receipt)
    board.memory[at : at + 1] = b"x"


def test_a_job_that_two_stewards_have_died_of_is_set_aside_and_the_pool_goes_on(site: Site):
    site.push("until", gate=str(site.path / "gate"))
    with site.pool("--workers", "2") as pool:
        (start,) = eventually(lambda: site.trail(event="start"))
        scribble_over_its_job(board_of(pool), start["pid"])
        os.kill(start["pid"], signal.SIGKILL)
        eventually(lambda: re.search(r"skipping \S+ slot \d+ life 1 job 0:", pool.log()))
        site.push("ok", delay=0.5)
        eventually(lambda: site.trail(event="end", mode="ok"))
        eventually(lambda: 3 == len(pool.workers()) + len(pool.pids("steward .* running")))

    assert 2 == len(re.findall(r"steward=0 pid=\d+ (died\b|never became ready)", pool.log()))


def test_stewards_that_are_killed_while_they_settle_are_no_reason_to_set_its_jobs_aside(away: Site, own_server):
    """The store keeps whoever writes waiting, so that they are at it for long."""
    away.push("until", gate=str(away.path / "gate"), maxTries=0)
    with away.pool("--workers", "1") as pool:
        (start,) = eventually(lambda: away.trail(event="start"))
        board = board_of(pool)
        own_server.say("CLIENT", "PAUSE", 600_000, "WRITE")
        os.kill(start["pid"], signal.SIGKILL)
        for times in range(3):
            kill_at_a_slot(pool, board, times)
        own_server.say("CLIENT", "UNPAUSE")
        eventually(lambda: 2 == len(away.trail(event="start")))
        (away.path / "gate").touch()
        eventually(lambda: away.trail(event="end"))

    assert "skipping" not in pool.log()


def kill_at_a_slot(pool: RunningPool, board: Board, times: int) -> None:
    """So many stewards have died there: until the next one has counted them, the board shows what the last one did."""
    eventually(lambda: died_at_a_slot(board) == times and pool.pids("steward"))
    (steward,) = pool.pids("steward")
    eventually(lambda: is_halted_at_a_slot(steward, board))
    os.kill(steward, signal.SIGKILL)
    eventually(lambda: steward not in pool.pids("steward"))


def died_at_a_slot(board: Board) -> int:
    """How many stewards, at the slot itself or at a job of it."""
    return sum(int(line.split(" ")[0]) for line in board.header.died_of.splitlines() if " slot " in line)


def is_halted_at_a_slot(steward: int, board: Board) -> bool:
    """Halt it, and let it go on if it is anywhere else: it gives up a silent store after a while, and tries again."""
    processes.halt(steward)
    if " slot " in board.header.doing:
        return True
    processes.go_on(steward)
    return False


def status(site: Site, pool: RunningPool) -> subprocess.CompletedProcess[str]:
    return site.run("status", "--runtime-dir", pool.runtime, *site.where, check=False)


def test_a_pool_whose_stewards_die_soon_after_they_have_come_is_failing_and_gives_up(site: Site):
    (site.path / "short_lived.py").write_text(SHORT_LIVED)
    config = "[pool]\nlisteners = short_lived\n"
    with site.pool("--workers", "1", "--give-up", "9", config=config, wait=False) as pool:
        told = eventually(lambda: (said := status(site, pool)).returncode == 4 and "failing" in said.stdout and said)
        assert 1 == pool.wait()

    assert "the steward dies again and again" in told.stdout
    assert "no steward has stayed alive for 9s: giving up" in pool.log()


def test_workers_that_wait_for_their_first_orders_are_seen(site: Site):
    with site.pool("--workers", "1", "--url", "unix:///nonexistent.sock", wait=False) as pool:
        eventually(lambda: pool.pids(r"^queuepool: worker 1 \[default\] starting"))
        eventually(lambda: pool.pids(r"^queuepool: master \[default\] starting"))
        words = "no worker becomes ready before the store is back"
        told = eventually(lambda: words in (said := status(site, pool)).stdout and said)
        facts = site.run("status", "--runtime-dir", pool.runtime, *site.where, "--json", check=False)

    assert (4, 4) == (told.returncode, facts.returncode)
    assert "starting" == json.loads(facts.stdout)[0]["state"]


#: a steward whose chore ends it, on the board that it is given
STEWARD = """
import os, sys
from pathlib import Path
from queuepool.board.blame import Blame
from queuepool.board.board import Board
from queuepool.events.listeners import LISTENERS
from queuepool.settlement.outage import Outage
from queuepool.unix.signals import WorkerSignals
from queuepool.steward.loop import Steward

class Deadly:
    def run(self, now):
        os._exit(7)

class Harmless:
    runs = 0
    def run(self, now):
        Harmless.runs += 1
        return 0.0

board = Board.open(Path(sys.argv[1]), write=True)
attention = WorkerSignals()
outage = Outage(attention, LISTENERS, announces=True)
steward = Steward(
    "x", board.slots[0], board.header, [Deadly()], [Harmless()], lambda seconds: None, attention, outage,
    Blame(board.header),
)
steward.run(until=lambda: Harmless.runs > 3)
"""


def stewards(program: str, board: Board, count: int) -> list[subprocess.CompletedProcess[str]]:
    """So many of them, one after the other, on this board."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(board.path)]
    return [warm.run(command, env=env, capture_output=True, text=True) for _ in range(count)]


@pytest.mark.parametrize(("killed", "deaths"), [(0, 2), (1, 6)])
def test_a_chore_that_stewards_have_died_of_is_left_aside_by_the_next(tmp_path, killed, deaths):
    board = Board.create(tmp_path / "board", capacity=1)
    board.header.steward_killed = killed
    ends = stewards(STEWARD, board, deaths + 1)

    assert [7] * deaths + [0] == [end.returncode for end in ends]
    assert "skipping Deadly for 60s: it kept crashing the steward" in ends[-1].stderr


#: a steward whose thread ends it, while the main thread is at a chore of its own; and a third that harms nobody
THREADED = """
import os, sys, threading
from pathlib import Path
from queuepool.board.blame import Blame, Thread
from queuepool.board.board import Board
from queuepool.events.listeners import LISTENERS
from queuepool.settlement.outage import Outage
from queuepool.steward.loop import Steward
from queuepool.steward.side_stores import EventQueue, SideStores
from queuepool.steward.side_stores import SideThread
from queuepool.unix.signals import WorkerSignals

is_at_it = threading.Event()

class Deadly:
    def run(self, now):
        is_at_it.wait()  # else it may end before the other one begins
        os._exit(7)

class Waits:
    def run(self, now):
        is_at_it.set()
        threading.Event().wait()

class Harmless:
    runs = 0
    def run(self, now):
        Harmless.runs += 1
        return 0.0

board = Board.open(Path(sys.argv[1]), write=True)
attention, events, blame = WorkerSignals(), EventQueue(), Blame(board.header)
aside = SideThread([Deadly()], SideStores(events), events, LISTENERS, blame, Thread.ASIDE)
outage = Outage(attention, LISTENERS, announces=True)
steward = Steward(
    "x", board.slots[0], board.header, [aside, Waits(), Harmless()], [], lambda seconds: None, attention, outage, blame
)
steward.run(until=lambda: Harmless.runs > 3)
"""


def test_what_two_threads_were_at_when_stewards_died_is_left_aside_after_the_third(tmp_path):
    """For a minute: nobody can know which of them it was."""
    board = Board.create(tmp_path / "board", capacity=1)
    ends = stewards(THREADED, board, 4)

    assert [7, 7, 7, 0] == [end.returncode for end in ends]
    assert [f"skipping {what} for 60s: it kept crashing the steward" for what in ("Deadly", "Waits")] == sorted(
        ends[-1].stderr.splitlines()
    )
