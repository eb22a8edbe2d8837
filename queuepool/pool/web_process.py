"""The web process of a pool: it serves the pages of ``listen``, from the board and without a store."""

from __future__ import annotations

import asyncio
import logging
import time

from queuepool.board.board import Board, Slot, State
from queuepool.config.settings import PoolSettings
from queuepool.config.values import address_of
from queuepool.metrics.server import Pages, bound, file_of, leave, serve
from queuepool.unix import proc
from queuepool.unix.exit_codes import FAILED, LEFT
from queuepool.unix.signals import WorkerSignals

#: seconds between checks for a stop; and seconds without one after which the master replaces the process
_TICK, _STALL_TIMEOUT = 0.25, 30.0
_log = logging.getLogger("queuepool")


def run(settings: PoolSettings, board: Board, slot: Slot, signals: WorkerSignals) -> int:
    """Serve until a stop signal; returns the exit code. The master replaces a process that cannot listen."""
    slot.deadline = time.monotonic() + _STALL_TIMEOUT
    address = address_of(settings.listen)
    try:
        listening = bound(address)
    except OSError as error:
        _log.error("cannot listen on %s: %s", settings.listen, error.strerror or error)
        return FAILED
    file = file_of(address)

    def tick() -> float:
        slot.deadline = time.monotonic() + _STALL_TIMEOUT
        return 0.0 if signals.stop or file_of(address) != file else _TICK

    if not address.is_private:
        _log.warning("%s is open to other hosts, and asks for no password", settings.listen)
    _log.info("listening on %s", settings.listen)
    slot.state = State.RUNNING
    proc.show(f"queuepool: web [{settings.name}] running listen={settings.listen}")
    asyncio.run(serve(Pages(settings.name, settings.connection.name, board).answer, listening, tick))
    leave(address, file)
    if not signals.stop:
        _log.error("the socket of %s was removed or replaced: it is created again", settings.listen)
        return FAILED
    slot.exited_cleanly = 1
    return LEFT
