"""What the pools of all hosts run: of this host by their boards, of any other by their last notices."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from queuepool.board.board import Role
from queuepool.board.fields import Slot
from queuepool.board.held_jobs import still_held
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.shown_pools import ShownPool, pools_in
from queuepool.board.status import board_of, overview
from queuepool.errors import ConfigError, NotRunning
from queuepool.payload.lease import Lease
from queuepool.stores.contract import ShelfJob
from queuepool.stores.control import instance_in
from queuepool.stores.factory import Stores


def pools_of(runtimes: Iterable[RuntimeDir], stores: Stores) -> Iterator[ShownPool]:
    """The pools of one connection: those of this host are never behind. Raises ``StoreError`` after these."""
    here = set[object]()
    for runtime in runtimes:
        with suppress(NotRunning, ConfigError, OSError):
            board = board_of(runtime)
            shown = overview(runtime.name, board)
            yield ShownPool(runtime.name, "", f"the board of pool {runtime.name}", shown.processes)
            here |= {board.name.instance, (socket.gethostname(), str(runtime.path))}
    for notice in stores.control.pools():
        place = notice["host"], str(notice.get("runtime_directory"))
        if (instance_in(notice) or place) not in here:
            yield from pools_in([notice])


class Holder(NamedTuple):
    """The worker of a pool of this host that has reserved a job."""

    pool: str
    worker: int
    pid: int


def holder_of(runtimes: Iterable[RuntimeDir], job: ShelfJob) -> Holder | None:
    """Who has reserved this job, if it is a worker of one of these pools."""
    for runtime in runtimes:
        with suppress(NotRunning, ConfigError, OSError):
            for slot in board_of(runtime).of(Role.WORKER):
                if any(_is_on(lease, job) for lease in _held_by(slot)):
                    return Holder(runtime.name, slot.number, slot.pid)
    return None


def _held_by(slot: Slot) -> list[Lease]:
    try:
        return still_held(slot.held())
    except (ValueError, OSError):  # its worker was writing it
        return []


def _is_on(lease: Lease, job: ShelfJob) -> bool:
    same = lease.row.id == job.place if lease.row else lease.receipt == job.payload
    return same and lease.tag == job.tag
