"""Faults of a pool's surroundings: its board, its runtime directory, the signals that it inherits."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.chaos.at_processes import end_host
from tests.chaos.disks import fill
from tests.chaos.pool import Pool
from tests.chaos.rig import Rig

#: seconds in which a job is begun, if at all; and in which a master creates its directory again
_BEGINS, _RESTORED = 3.0, 5.0
_DEAF = """import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])"""


def born_deaf(rig: Rig) -> Iterator[float]:
    """As under ``trap '' CHLD``, and with everything blocked; the next master is too, until the one after it."""
    for pool in rig.pools:
        pool.birth = [sys.executable, "-c", _DEAF]
    try:
        while True:
            for pool in rig.pools:
                end_host(rig, pool)
            yield rig.chance.uniform(4.0, 6.0)
    finally:
        for pool in rig.pools:
            pool.birth = ()


def scribble(rig: Rig) -> Iterator[float]:
    """By jobs, over whatever board they can write to."""
    with rig.pushing("scribble", rate=2.0):
        while True:
            yield 1.0


def truncate(rig: Rig) -> Iterator[float]:
    """By jobs, of all of the pool's that they have inherited."""
    with rig.pushing("truncate", rate=2.0):
        while True:
            yield 1.0


def vanish(rig: Rig) -> Iterator[float]:
    """A cleaner clears temporary directories; the pool, or the next one, must be whole in spite of it."""
    while True:
        pool = rig.chance.choice(rig.pools)
        with pool.may_end():
            shutil.rmtree(pool.directory, ignore_errors=True)
            try:
                yield rig.chance.uniform(1.5, 3.0)
            finally:
                _await_board(rig, pool)  # nobody knows what a host has left that is killed before its board is there
        pool.note_size(rig.plan.whole)


def _await_board(rig: Rig, pool: Pool) -> None:
    end = time.monotonic() + _RESTORED
    while pool.process and time.monotonic() < end and not any(pool.directory.glob("board.*")):
        rig.rest(0.05)


def directory_full(rig: Rig) -> Iterator[float]:
    """To the last byte; now and then a pool is started meanwhile, which may refuse to."""
    filler = rig.run_dir / "filler"
    while True:
        pool = rig.chance.choice(rig.pools)
        try:
            for each in rig.pools:
                each.may_not_start = True
            fill(filler)
            if rig.chance.random() < 0.5:
                end_host(rig, pool)
            yield rig.chance.uniform(0.5, 2.0)
        finally:
            filler.unlink(missing_ok=True)
            for each in rig.pools:
                each.may_not_start = False
        yield rig.chance.uniform(0.5, 1.0)


def foreign_board(rig: Rig) -> Iterator[float]:
    """A pool of the same name was killed that had another store; then ours comes, and must be whole in spite of it."""
    while True:
        pool = rig.chance.choice(rig.pools)
        end_host(rig, pool)
        if pool.process:
            pool.process.wait()
        boards = _leave_a_board(rig, pool)
        pool.start()
        pool.note_size(rig.plan.whole)
        for board in boards:
            board.unlink(missing_ok=True)
        yield rig.chance.uniform(0.5, 1.0)


def _leave_a_board(rig: Rig, ours: Pool) -> list[Path]:
    """It holds a job. Our own board lies there meanwhile, and must not keep that pool from working either."""
    folder = rig.folder / "foreign"
    folder.mkdir(exist_ok=True)
    store = f"sqlite:///{folder}/queue.db"
    client = SqlClient(store, create=True)
    migrate(client)
    client.close()
    settings = {"workers": 1, "url": store, "queues": "default", "prefix": "", "other": "", "preload": "no", "ahead": 0}
    settings |= {"grace": 1, "retry_after": 60, "run": rig.folder / "run", "modules": "tests.chaos.foreign"}
    pool = Pool(ours.name, folder, rig.ledger, rig.env(), **settings, listeners="")
    pool.start()
    subprocess.run(pool.command("push", "Foreign@nap"), env=rig.env(), check=True, stdout=subprocess.DEVNULL)
    pool.note_size(rig.plan.whole)
    end = time.monotonic() + _BEGINS
    while not pool.pids(" busy ") and time.monotonic() < end:
        time.sleep(0.02)
    end_host(rig, pool)
    assert pool.process
    pool.process.wait()
    return list(pool.directory.glob(f"board.{pool.process.pid}-*"))


ON_A_DISK_OF_ITS_OWN: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {"directory_full": (directory_full, 1)}
NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "born_deaf": (born_deaf, 1),
    "scribble": (scribble, 1),
    "truncate": (truncate, 1),
    "vanish": (vanish, 1),
    "foreign_board": (foreign_board, 1),
}
