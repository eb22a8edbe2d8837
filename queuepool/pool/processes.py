"""The first thing a forked child does: from a slot and settings to a running worker or steward."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import FileIO

from queuepool import log
from queuepool.board import boot_report
from queuepool.board.blame import Blame
from queuepool.board.board import Board, Slot
from queuepool.board.runtime_dir import Runtime
from queuepool.config.settings import PoolSettings
from queuepool.errors import BootFailure, StoreError
from queuepool.events import Event
from queuepool.events.listeners import LISTENERS
from queuepool.jobs import client
from queuepool.log.captured import capture
from queuepool.pool import announce
from queuepool.pool.worker_process import limits_of, warn_of_jobs, work
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.steward.chore import Chore
from queuepool.steward.give_back import HandBack
from queuepool.steward.guard import Guard
from queuepool.steward.loop import Steward
from queuepool.steward.lost_replies import Unheard
from queuepool.steward.orphaned_boards import Wards
from queuepool.steward.publish import Publish
from queuepool.steward.record_failures import RecordFailures
from queuepool.steward.renew import Renew
from queuepool.steward.settle_dead import Bury
from queuepool.steward.side_stores import FailureRecorder, SideStores, Told
from queuepool.steward.side_thread import Beside
from queuepool.steward.stage import StageDue
from queuepool.steward.watch_control import Watch
from queuepool.stores.factory import PATIENCE, Stores
from queuepool.unix import proc
from queuepool.unix import stray_processes as strays
from queuepool.unix.signals import Alarm, Attention
from queuepool.worker.boot import import_jobs, import_modules
from queuepool.worker.limits import BOOT, LEFT
from queuepool.worker.slot_writer import Desk
from queuepool.worker.template import Template

#: seconds beyond its waits that a round without a job may take; seconds before its lease ends at which an orphan is
#: killed: so long may its steward wait for a silent store and rest
_STALL, _GUARDS_MARGIN = 30.0, 5.0


class Roles:
    """What the master forks: each method runs one process of the pool and gives its exit code."""

    def __init__(self, settings: PoolSettings, board: Board, runtime: Runtime, served: Collection[str] = ()) -> None:
        self._settings = settings
        self._board = board
        self._runtime = runtime
        self._served = served

    def worker(self, slot: Slot, paused: bool) -> int:
        attention = Attention(paused=paused)
        attention.listen()
        slot = self._mapped(slot)
        alarm = Alarm(trace := self._enter(slot, f"worker {slot.number}"))
        return self._work(slot, attention, alarm) if self._has_booted(slot, attention, alarm, trace) else BOOT

    def template(self, slot: Slot, paused: bool) -> int:
        """Imports what the workers need, and forks them."""
        # Whatever its modules have done to signals: it has nothing to finish.
        proc.end_with_parent(self._board.master[0], signal.SIGKILL)
        attention = Attention()
        attention.listen()
        slot = self._mapped(slot)
        alarm = Alarm(trace := self._enter(slot, "template"))
        if not self._has_booted(slot, attention, alarm, trace):
            return BOOT
        if not attention.stop:
            Template(self._settings.name, self._board, slot, self._copied_worker).run()
        slot.left = 1
        return LEFT

    def _copied_worker(self, slot: Slot) -> int:
        """A worker that a template has forked: the modules are there."""
        attention = Attention()
        attention.listen()
        alarm = Alarm(self._enter(slot, f"worker {slot.number}"))
        return self._work(slot, attention, alarm)

    def _mapped(self, slot: Slot) -> Slot:
        """Its place, in its own memory: jobs run here, which must not find a file of the pool's open."""
        self._board = self._board.mapped()
        self._runtime.let_go()
        return self._board.slots[slot.index]

    def _enter(self, slot: Slot, role: str) -> FileIO:
        """Make the process known; gives its trace file."""
        proc.show(f"queuepool: {role} [{self._settings.name}] starting")
        log.setup(self._settings, role.replace(" ", "="), patience=1.0)
        capture()
        strays.mark(self._board, slot)
        return self._board.new_trace(slot)

    def _has_booted(self, slot: Slot, attention: Attention, alarm: Alarm, trace: FileIO) -> bool:
        """In its time, or not at all."""
        timeout = self._settings.boot_timeout
        slot.deadline = time.monotonic() + timeout if timeout else 0.0
        alarm.arm(timeout)
        try:
            boot(self._settings, attention, alarm)
        except BootFailure as failure:
            boot_report.leave(failure, trace)
            return False
        alarm.disarm()
        announce.jobs_of_generation(self._board.header, slot)
        return True

    def _work(self, slot: Slot, attention: Attention, alarm: Alarm) -> int:
        settings = self._settings
        waits = settings.connection.block_for + settings.sleep + settings.rest
        desk = Desk(slot, settings.name, alarm, attention, stall=waits + _STALL)
        desk.alive()
        limits = limits_of(settings, desk)
        warn_of_jobs(settings, desk, self._served)
        return work(settings, desk, attention, limits, self._board, self._runtime).code

    def steward(self, slot: Slot, paused: bool) -> int:
        attention = Attention()
        attention.listen()
        self._runtime.let_go()
        settings = self._settings
        proc.show(f"queuepool: steward [{settings.name}] starting")
        log.setup(settings, "steward", patience=1.0)
        capture()
        alarm = Alarm(trace := self._board.new_trace(slot))
        if not self._has_listeners(slot, trace):
            return BOOT
        _hear_again(attention, alarm)
        log.adopt(settings)
        log.listen(LISTENERS)
        # Whoever looks after leases must not wait long for a silent store: it must kill before they end.
        patience = min(PATIENCE, settings.connection.retry_after / 8)
        outage = Outage(attention, LISTENERS, telling=True, patient=False, longest=patience)
        stores = Stores(replace(settings.connection, block_for=0.0), patience=patience)
        blame = Blame(self._board.header)
        wards = Wards(self._board, self._runtime, blame)
        urgent, renew, hand_back, watch, publish = self._chores(stores, wards, outage, blame)
        steward = Steward(
            settings.name,
            slot,
            self._board.header,
            urgent=urgent,
            others=[*([renew] if settings.connection.renew else []), hand_back, *watch, publish],
            wait=lambda timeout: stores.queue.wait_for_change(settings.queues, timeout),
            attention=attention,
            outage=outage,
            blame=blame,
        )
        steward.run()
        with suppress(StoreError):  # it is away: the notice runs out by itself
            publish.withdraw()
        if wards.is_orphaned():
            self._outlive(steward, attention, wards, [*watch, publish])
        slot.left = 1
        return LEFT

    def _has_listeners(self, slot: Slot, trace: FileIO) -> bool:
        """A steward imports these alone; the master ends one that takes too long."""
        timeout = self._settings.boot_timeout
        slot.deadline = time.monotonic() + timeout if timeout else 0.0
        try:
            import_modules(self._settings.listeners)
        except BootFailure as failure:
            boot_report.leave(failure, trace)
            return False
        return True

    def _outlive(self, steward: Steward, attention: Attention, wards: Wards, unneeded: Sequence[Chore]) -> None:
        """The kernel told everybody that the master is dead. The workers finish their jobs, and need a steward."""
        attention.stop = False
        steward.drop(unneeded)
        steward.run(until=lambda: wards.own.is_settled)
        self._runtime.clear_away()

    def _chores(
        self, stores: Stores, wards: Wards, outage: Outage, blame: Blame
    ) -> tuple[list[Chore], Renew, HandBack, list[Chore], Publish]:
        settings = self._settings
        retry_after = settings.connection.retry_after
        settler = Settler(stores.queue, outage, LISTENERS, settings.connection.name)
        unheard = partial(Unheard, stores.queue, settler, settings.queues, retry_after)
        return (
            [
                # First, for it needs no store, and the others may have to wait for theirs.
                Guard(wards, settings.grace, margin=min(_GUARDS_MARGIN, retry_after / 3)),
                Bury(wards, self._runtime, stores.queue, settler, unheard(), blame),
                StageDue(stores.queue, settings.queues),
            ],
            Renew(wards, stores.queue, retry_after),
            HandBack(wards, settler, unheard()),
            self._watching(stores),
            Publish(settings.name, self._board, stores.control),
        )

    def _watching(self, stores: Stores) -> list[Chore]:
        """The control keys; and, in a thread with connections of its own, whatever is in stores elsewhere."""
        connection, header = self._settings.connection, self._board.header
        if not (connection.control_url or connection.failed_url):
            return [Watch(header, stores.control, LISTENERS, self._settings.queues, SideStores(LISTENERS))]
        told, own = Told(), Stores(replace(connection, block_for=0.0))
        sides = SideStores(told, header)
        chores: list[Chore] = [Watch(header, own.control, told, self._settings.queues, sides)]
        if own.forwarder:
            chores.append(RecordFailures(self._board, FailureRecorder(own.forwarder, told, sides)))
        return [Beside(chores, sides, told, LISTENERS)]


def boot(settings: PoolSettings, attention: Attention, alarm: Alarm, unlogged: Collection[type[Event]] = ()) -> None:
    """Import the user's modules; what they dispatch goes where this pool's jobs come from. Raises ``BootFailure``."""
    client.configure(settings.connection)
    import_jobs(settings.modules, settings.listeners)
    _hear_again(attention, alarm)
    log.adopt(settings)
    log.listen(LISTENERS, unlogged)


def _hear_again(attention: Attention, alarm: Alarm) -> None:
    """Whatever the modules did to signals: else no stop and no deadline would be obeyed."""
    attention.listen()
    alarm.prepare()
