"""Starting a pool: its directory, its board, its master; and several pools of one file side by side."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Sequence

from queuepool import fork, log, proc
from queuepool.board import Board, Role
from queuepool.errors import QueuepoolError
from queuepool.master import Master
from queuepool.roles import Roles
from queuepool.runtime import Runtime
from queuepool.settings import PoolSettings
from queuepool.signals import Mailbox

_SPARE_SLOTS = 14


def start(settings: PoolSettings) -> int:
    """Run this pool until it is told to stop; the exit code. Raises ``PoolRunning`` and ``ConfigError``."""
    Mailbox().open()  # from here on a signal waits for the master, and does not end it
    runtime = Runtime(settings)
    runtime.claim()
    log.setup(settings, "master", patience=0.0)
    # Twice the workers: in a rolling restart a number has two.
    board = runtime.new_board(capacity=max(64, 2 * settings.workers + _SPARE_SLOTS))
    header = board.header
    header.since, header.target = time.time(), settings.workers
    roles = Roles(settings, board, runtime)
    proc.adopt_orphans()
    gc.freeze()  # pages that the collector does not touch stay shared with the children
    code = Master(settings, board, worker=roles.worker, steward=roles.steward).run()
    _clear_away(runtime, board)
    return code


def start_all(pools: Sequence[PoolSettings], told: Callable[[QueuepoolError], int]) -> int:
    """Run each pool under a master of its own, and pass every signal on; the worst exit code.

    ``told`` says in a line why one of several could not start, and gives its exit code; of a single one it is raised.
    """
    if len(pools) == 1:
        return start(pools[0])
    mailbox = Mailbox()
    mailbox.open()
    proc.show(f"queuepool: masters={len(pools)} running")
    living = {fork.spawn(lambda pool=pool: _start_or_tell(pool, told)) for pool in pools}  # type: ignore[misc]
    worst = 0
    while living:
        signum = mailbox.next(1.0)
        if signum is not None and signum != signal.SIGCHLD:
            for pid in living:
                fork.tell(pid, signal.Signals(signum))
        for pid, status in fork.reap(living):
            living.discard(pid)
            worst = max(worst, abs(os.waitstatus_to_exitcode(status)))
    return worst


def _start_or_tell(pool: PoolSettings, told: Callable[[QueuepoolError], int]) -> int:
    try:
        return start(pool)
    except QueuepoolError as error:
        return told(error)


def _clear_away(runtime: Runtime, board: Board) -> None:
    """What could not be settled stays on the board, for the next master's steward."""
    if not board.of(Role.WORKER):
        board.unlink()
    runtime.release()
