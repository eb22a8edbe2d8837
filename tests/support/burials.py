"""The chore that settles dead workers, on a board that a test has written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from queuepool.board.blame import Blame
from queuepool.board.board import Board
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.events import Event
from queuepool.events.listeners import Listeners
from queuepool.settlement.attempts import AttemptRecords
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.steward.leases import GiveBack, LostReplies
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.steward.settle_dead import SettleDead
from queuepool.stores.contract import QueueStore
from queuepool.unix.signals import WorkerSignals


def chore_on(
    board: Board, store: QueueStore, told: list[Event], folder: Path, attempts: AttemptRecords | None = None,
    between: Callable[[], object] = lambda: None,
) -> SettleDead:  # fmt: skip
    """A new steward's, which adds its events to ``told``. Its pool's directory, below the folder, is not there."""
    return chores_on(board, store, told, folder, attempts, between)[0]


def chores_on(
    board: Board, store: QueueStore, told: list[Event], folder: Path, attempts: AttemptRecords | None = None,
    between: Callable[[], object] = lambda: None,
) -> tuple[SettleDead, GiveBack]:  # fmt: skip
    """The same with another chore of this steward's."""
    listeners, blame = Listeners(), Blame(board.header)
    listeners.add(Event, told.append)
    outage = Outage(WorkerSignals(), listeners, announces=False)
    settler = Settler(store, outage, listeners, ConnectionSettings(name="main"), attempts=attempts)
    runtime = RuntimeDir(PoolSettings(runtime_dir=folder / "gone"))
    lost_replies = LostReplies(store, settler, ["default"], retry_after=90.0)
    boards = OrphanedBoards(board, runtime, blame)
    settle = SettleDead(boards, runtime, store, settler, lost_replies, blame, grace=1.0, between=between)
    return settle, GiveBack(boards, settler, lost_replies)
