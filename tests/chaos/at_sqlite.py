"""Faults of an SQLite file that every process has open."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from tests.chaos.disks import fill
from tests.chaos.intermittent import intermittently
from tests.chaos.rig import Rig


def hold_the_file(rig: Rig) -> Iterator[float]:
    """Another program writes for longer than any process waits."""
    while True:
        with closing(_stranger(rig)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            yield rig.chance.uniform(0.3, 4.0)
        rig.ledger.write("back")
        yield rig.chance.uniform(0.2, 1.0)


def hold_a_snapshot(rig: Rig) -> Iterator[float]:
    """Another program reads without end, so that the write-ahead log grows."""
    while True:
        with closing(_stranger(rig)) as stranger:
            stranger.execute("BEGIN")
            stranger.execute("SELECT count(*) FROM jobs").fetchone()
            yield rig.chance.uniform(0.5, 3.0)
        yield rig.chance.uniform(0.05, 0.3)


def read_only(rig: Rig) -> Iterator[float]:
    """For processes that open it now; one that has it open may still write, by the kernel's rules."""
    path = rig.store.path
    return intermittently(rig, lambda: make_read_only(path), lambda: make_writable(path), (0.3, 2.0), (0.2, 1.0))


def disk_full(rig: Rig) -> Iterator[float]:
    """To the last byte."""
    filler = rig.store.disk / "filler"
    while True:
        try:
            fill(filler)
            yield rig.chance.uniform(0.3, 3.0)
        finally:
            filler.unlink(missing_ok=True)
            rig.ledger.write("back")
        yield rig.chance.uniform(0.2, 1.0)


def move_away(rig: Rig) -> Iterator[float]:
    """And back, with its folder: a process that has it open goes on in it, one that opens it meanwhile finds none.

    In one step: whoever opened the file before and its log after it was moved would begin another log.
    """
    here = rig.store.path.parent
    there = here.with_name("elsewhere")
    return intermittently(rig, lambda: here.rename(there), lambda: there.rename(here), (0.2, 2.0), (0.5, 1.5))


def replace_the_file(rig: Rig) -> Iterator[float]:
    """By a copy made under its lock, so that it holds everything that was acknowledged."""
    while True:
        replace_by_a_copy(rig.store.path)
        yield rig.chance.uniform(0.5, 2.0)


def replace_by_a_copy(path: Path) -> None:
    """With its folder, for the same reason."""
    here = path.parent
    old, new = here.with_name("old"), here.with_name("new")
    new.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as owner:
        owner.execute("BEGIN IMMEDIATE")
        with closing(sqlite3.connect(path)) as reader, closing(sqlite3.connect(new / path.name)) as written:
            reader.backup(written)
            written.execute("PRAGMA journal_mode = WAL")
        here.rename(old)
        new.rename(here)
        owner.execute("ROLLBACK")
    shutil.rmtree(old)


def make_read_only(path: Path) -> None:
    """The superuser may write wherever he reads, but for what is marked as immutable."""
    for file in _files(path):
        _mark(file, "+i") if 0 == os.getuid() else file.chmod(0o400)


def make_writable(path: Path) -> None:
    for file in _files(path):
        _mark(file, "-i") if 0 == os.getuid() else file.chmod(0o600)


def _stranger(rig: Rig) -> sqlite3.Connection:
    return sqlite3.connect(rig.store.path, isolation_level=None, timeout=60)


def _files(path: Path) -> list[Path]:
    """The file, then its log and what the log's readers share."""
    return sorted(path.parent.glob(f"{path.name}*"))


def _mark(file: Path, how: str) -> None:
    subprocess.run(["chattr", how, str(file)], check=True)


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "hold_the_file": (hold_the_file, 2),
    "hold_a_snapshot": (hold_a_snapshot, 1),
    "read_only": (read_only, 1),
    "move_away": (move_away, 1),
    "replace_the_file": (replace_the_file, 1),
}
ON_A_DISK_OF_ITS_OWN: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {"disk_full": (disk_full, 2)}
