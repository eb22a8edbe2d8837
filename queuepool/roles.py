"""The first thing a forked child does: from a slot and settings to a running worker or steward."""

from __future__ import annotations

from contextlib import suppress

from queuepool import client, log, mourning, proc
from queuepool.attempt import Attempts
from queuepool.board import Board, Slot
from queuepool.boot import import_modules
from queuepool.build import Stores
from queuepool.chores.bury import Bury
from queuepool.chores.publish import Publish
from queuepool.chores.renew import Renew
from queuepool.chores.stage import StageDue
from queuepool.chores.watch import Watch
from queuepool.desk import Desk
from queuepool.errors import BootFailure, StoreDown, StoreError
from queuepool.limits import BOOT, LEFT, Limits, StopReason
from queuepool.listeners import LISTENERS
from queuepool.orders import BoardOrders, Orders, StoreOrders
from queuepool.outage import Outage
from queuepool.registry import REGISTRY
from queuepool.runtime import Runtime
from queuepool.settings import PoolSettings
from queuepool.settle import Settler
from queuepool.signals import Alarm, Attention
from queuepool.steward import Steward
from queuepool.worker import Worker

#: seconds beyond its waits that a round without a job may take
_STALL = 30.0


class Roles:
    """What the master forks: each method runs one process of the pool and gives its exit code."""

    def __init__(self, settings: PoolSettings, board: Board, runtime: Runtime) -> None:
        self._settings = settings
        self._board = board
        self._runtime = runtime

    def worker(self, slot: Slot, paused: bool) -> int:
        attention = Attention(paused=paused)
        attention.listen()
        settings = self._settings
        proc.show(f"queuepool: worker {slot.number} [{settings.name}] starting")
        log.setup(settings, f"worker={slot.number}", patience=1.0)
        trace = self._board.new_trace(slot)
        alarm = Alarm(trace)
        try:
            boot(settings)
        except BootFailure as failure:
            trace.write(failure.trace.encode("utf-8", "replace"))
            return BOOT
        limits = Limits.drawn(memory=settings.memory, max_jobs=settings.max_jobs, max_time=settings.max_time)
        waits = settings.connection.block_for + settings.sleep + settings.rest
        desk = Desk(slot, settings.name, alarm, stall=waits + _STALL)
        return work(settings, desk, attention, limits, self._board, self._runtime).code

    def steward(self, slot: Slot, paused: bool) -> int:
        attention = Attention()
        attention.listen()
        settings = self._settings
        proc.show(f"queuepool: steward [{settings.name}] starting")
        log.setup(settings, "steward", patience=1.0)
        Alarm(self._board.new_trace(slot))
        import_modules(settings.listeners)
        log.listen(LISTENERS)
        outage = Outage(attention, LISTENERS, telling=True, patient=False)
        stores = Stores(settings.connection)
        settler = Settler(stores.queue, outage, LISTENERS, settings.connection.name)
        inherited = self._runtime.old_boards(self._board)
        queues = settings.queues
        bury = Bury(self._board, inherited, self._runtime, stores.queue, settler, queues)
        publish = Publish(settings.name, self._board, stores.control)
        renew = Renew([self._board, *inherited], stores.queue, settings.connection.retry_after)
        steward = Steward(
            settings.name,
            slot,
            self._board.header,
            urgent=[bury, StageDue(stores.queue, queues)],
            others=[
                *([renew] if settings.connection.renew else []),
                Watch(self._board.header, stores.control, LISTENERS, queues),
                publish,
            ],
            wait=lambda timeout: stores.queue.wait_for_change(queues, timeout),
            attention=attention,
            outage=outage,
        )
        steward.run()
        with suppress(StoreError):  # it is away: the notice runs out by itself
            publish.withdraw()
        slot.left = 1
        return LEFT


def boot(settings: PoolSettings) -> None:
    """Import the user's modules; what they dispatch goes where this pool's jobs come from. Raises ``BootFailure``."""
    client.configure(settings.connection)
    import_modules([*settings.modules, *settings.listeners])
    log.listen(LISTENERS)


def work(
    settings: PoolSettings,
    desk: Desk,
    attention: Attention,
    limits: Limits,
    board: Board | None = None,
    runtime: Runtime | None = None,
) -> StopReason:
    """Run one worker until it leaves; without a board it is alone and looks after itself."""
    alone = board is None
    stores = Stores(settings.connection)
    outage = Outage(attention, LISTENERS, telling=alone, meanwhile=desk.alive)
    settler = Settler(stores.queue, outage, LISTENERS, settings.connection.name)
    orders: Orders = StoreOrders(stores.control, settings.queues) if board is None else BoardOrders(board.header)
    worker = Worker(
        settings,
        stores.queue,
        orders,
        Attempts(settings, stores.queue, REGISTRY, LISTENERS, desk, settler, outage),
        settler,
        desk,
        attention,
        outage,
        limits,
        LISTENERS,
        take_mourned=lambda: mourning.take(runtime.path) if runtime else None,
        alone=alone,
    )
    try:
        reason = worker.run()
    except StoreDown:
        # Told to stop while the store is away: what is still in hand is the steward's to settle, or its lease ends.
        reason = StopReason.INTERRUPTED
    desk.leave()
    return reason
