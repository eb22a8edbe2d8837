"""A prefetch in a process of its own, on a real board and a real store, driven by a script."""

from __future__ import annotations

import sys
from pathlib import Path

from queuepool.config.settings import ConnectionSettings
from tests.support import warm

# A process of its own, since the alarm belongs to the process.
SUPPLY = """
import sys, time
from pathlib import Path
from queuepool.board.board import Board, Role
from queuepool.stores.factory import Stores
from queuepool.steward.leases import LostReplies
from queuepool.jobs.registry import REGISTRY
from queuepool.worker.context import WorkerContext
from queuepool.worker.context import BoardControlState
from queuepool.worker.context import Limits
from queuepool.worker.slot_writer import SlotWriter
from queuepool.errors import StoreDown, StoreError
from queuepool.events import JobQuarantined, JobReserving, LeaseLost
from queuepool.events.listeners import Listeners
from queuepool.worker.membership import Membership
from queuepool.settlement.outage import Outage
from queuepool.worker.prefetch_size import PrefetchSize
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.settlement.settler import Settler
from queuepool.unix.signals import Alarm, WorkerSignals
from queuepool.worker.prefetch import Prefetch, Reports

path, url, prefix, ahead = sys.argv[1:]
connection = ConnectionSettings(url=url, prefix=prefix, embedded=url.startswith("sqlite"))
stores, listeners, attention = Stores(connection), Listeners(), WorkerSignals()
store, outage = stores.queue, Outage(attention, listeners, announces=False)
settler = Settler(store, outage, listeners, ConnectionSettings(name="main"))
board = Board.create(Path(path) / "board", capacity=1)
slot = board.slots[0]
slot.begin(Role.WORKER, 1, 1)
slot_writer = SlotWriter(slot, "default", Alarm(board.new_trace(slot)), attention, stall_timeout=30.0)
batch, size = slot_writer.batch, PrefetchSize(int(ahead))
context = WorkerContext(
    pool=PoolSettings(connection=connection, queues=("first", "default")), store=store, registry=REGISTRY,
    listeners=listeners, signals=attention, slot_writer=slot_writer, outage=outage, settler=settler,
    batches=lambda: stores.batches,
    control_state=BoardControlState(board.header, 1, ("first", "default")),
    limits=Limits(memory=0.0, max_jobs=0, until=0.0),
    take_deferred_hook=lambda: None, run_chores=None, alone=False,
)
membership = Membership(context)
membership.join()
prefetch = Prefetch(context, membership, Reports(listeners, outage, context.store.flows), size)

def is_done(lease):
    batch.succeeded(batch.number)
    batch.done.append(lease)
"""


def said_by_a_worker(does: str, connection: ConnectionSettings, folder: Path, ahead: int = 1) -> str:
    command = [sys.executable, "-c", SUPPLY + does, str(folder), connection.url, connection.prefix, str(ahead)]
    return str(warm.run(command, capture_output=True, text=True, check=True).stdout)
