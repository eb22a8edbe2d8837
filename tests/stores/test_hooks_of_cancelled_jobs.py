"""The hook of a job that was cancelled while it waited goes to a pool of this host that serves its queue."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuepool.board.about import About
from queuepool.board.board import Board, BoardName
from queuepool.config.connections import identity_of
from queuepool.config.settings import PoolSettings
from queuepool.jobs.cancelling import Cancellation, Canceller, CancelWish
from queuepool.settlement import deferred_hooks
from queuepool.stores.factory import Stores
from tests.support.eventually import eventually
from tests.support.samples import new_jobs, payload


@pytest.fixture
def master() -> Iterator[int]:
    """The pid of a process that is woken and does nothing."""
    script = "trap '' USR1; echo; exec sleep 600"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.kill()


def pool(folder: Path, stores: Stores, master: int, *queues: str) -> Board:
    folder.mkdir(0o700)
    About.of(PoolSettings(connection=stores.settings, queues=queues)).write(folder)
    board = Board.create(folder / str(BoardName.of(master)), capacity=2)
    board.header.store = identity_of(stores.settings)
    return board


def cancel(stores: Stores, *boards: Board) -> Cancellation:
    stores.queue.push("mail", new_jobs(payload("a")))
    return Canceller(stores, ["mail"], boards).cancel(CancelWish("a", "ana@web"))


def notes(stores: Stores, *boards: Board) -> list[bool]:
    """Whether each has one."""
    store = identity_of(stores.settings)
    return [deferred_hooks.take(board.path.parent, store) is not None for board in boards]


def test_a_pool_that_serves_the_queue_gets_it_before_any_other(stores, tmp_path, master):
    eventually(lambda: BoardName.of(master).has_master)
    boards = [pool(tmp_path / queue, stores, master, queue) for queue in ("default", "mail", "high")]
    found = cancel(stores, *boards)

    assert (True, "") == (bool(found), found.no_hook)
    assert [0, 1, 0] == [board.header.deferred_hooks for board in boards]
    assert [False, True, False] == notes(stores, *boards)


def test_where_none_serves_it_another_pool_on_the_store_gets_it(stores, tmp_path, master):
    boards = [pool(tmp_path / queue, stores, master, queue) for queue in ("default", "high")]
    boards[0].header.store = "another"
    cancel(stores, *boards)

    assert [False, True] == notes(stores, *boards)


def test_where_no_pool_is_here_it_is_said(stores):
    found = cancel(stores)

    assert found
    assert found.no_hook.startswith("nobody calls its after_failed")
