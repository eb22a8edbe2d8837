"""Assembles a steward from settings and a board."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from queuepool.board.blame import Blame, Thread
from queuepool.board.board import Board, Slot
from queuepool.board.cancelling import wake_all
from queuepool.board.fields import Header
from queuepool.board.marks import flow_marker
from queuepool.board.pauses import Pauses
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.config.urls import is_cluster
from queuepool.errors import StoreError
from queuepool.events import FlowEvent, StewardStopping, StoreLost
from queuepool.events.listeners import LISTENERS
from queuepool.history.rollup import KeepHistory
from queuepool.settlement.attempts import attempt_records
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.settlement.verdict import RanBy
from queuepool.steward.attempts import RecordLost, TrimAttempts
from queuepool.steward.flows import LookAtFlows, MeasureFlows, OnceThereAreFlows
from queuepool.steward.leases import GiveBack, LostReplies, Reassert, Renew, StageDue
from queuepool.steward.limits import LookAtLimits, MeasureLimits
from queuepool.steward.loop import Chore, Steward
from queuepool.steward.measure import Measure, PoolMeters, PublishMeters
from queuepool.steward.obey import Obey
from queuepool.steward.orphaned_boards import OrphanedBoards, OrphanGuard
from queuepool.steward.publish import PoolNotice, Publish, ReportRunning, WatchPools
from queuepool.steward.reload_on_change import ReloadOnChange
from queuepool.steward.schedule import FireSchedules, SchedulesOfPool
from queuepool.steward.settle_dead import SettleDead
from queuepool.steward.side_stores import EventQueue, FailureRecorder, RecordFailures, SideStores, SideThread
from queuepool.steward.tell_actions import TellActions
from queuepool.steward.watch_store import WatchControl, WatchRoom
from queuepool.stores.factory import REPLY_TIMEOUT, Stores, follow_primary
from queuepool.unix.signals import WorkerSignals

if TYPE_CHECKING:
    from queuepool.steward.horizon import ShowInHorizon

#: seconds before a lease's end at which an orphan is killed: a silent store may delay the steward by that much
_GUARDS_MARGIN = 5.0
#: seconds of the longest pause between two tries to reach a store that is away: workers come later, and one may begin a
#: job of ours if the server, which may have been promoted, does not know that we have it
_BEFORE_WORKERS = 0.2


class StewardProcess:
    """The steward, its store and its chores."""

    def __init__(self, settings: PoolSettings, board: Board, runtime: RuntimeDir, signals: WorkerSignals) -> None:
        self._settings = settings
        self._board = board
        self._runtime = runtime
        self._signals = signals
        # The steward must not wait long for a silent store: it must kill orphans before their leases end.
        reply_timeout = min(REPLY_TIMEOUT, settings.connection.retry_after / 8)
        self._stores = Stores(replace(settings.connection, block_for=0.0), reply_timeout=reply_timeout)
        self._outage = Outage(signals, LISTENERS, announces=True, retries=False, max_pause=_BEFORE_WORKERS)
        self._blame = Blame(board.header)
        self._orphaned_boards = OrphanedBoards(board, runtime, self._blame)
        margin = min(_GUARDS_MARGIN, settings.connection.retry_after / 3)
        self._guard = OrphanGuard(self._orphaned_boards, settings.grace, margin)
        by = RanBy(os.getpid(), 0, 0)  # each settlement here names another process
        records = attempt_records(settings, by, self._stores.attempts)
        self._settler = Settler(
            self._stores.queue, self._outage, LISTENERS, settings.connection, settings.track, records
        )
        self._meters = board.meters if settings.metrics else None
        self._pool_meters = PoolMeters(self._meters, settings.queues) if self._meters else None
        measured = self._pool_meters.measured if self._pool_meters else {}
        notice = PoolNotice(settings, board, runtime.path, measured, self._stores.queue.now)
        self._publish = Publish(notice, board, self._stores.control, self._stores.values)
        self._history = self._history_chores()
        self._horizon = self._horizon_chores()
        self._watching = [
            *self._control_chores(),
            *self._operators_chores(notice),
            SchedulesOfPool(settings, board, self._watch, self._firing),
        ]

    def run(self, slot: Slot) -> None:
        """Run until a stop signal; after the master's death, until the last job is settled."""
        steward = self._loop = self._steward(slot)
        follow_primary(self._settings.connection, self._board.header, partial(wake_all, self._board))
        steward.run()
        self._obey.finish()
        is_orphaned = self._orphaned_boards.is_orphaned()
        with suppress(StoreError):  # the store is away: the notice expires by itself
            if not is_orphaned:  # else the notice stays, so that other pools see that this one is lost
                self._publish.withdraw()
            for chore in self._history:
                chore.write()
            for shown in self._horizon:
                shown.leave()
        if is_orphaned:
            self._outlive(steward)
        LISTENERS.emit(StewardStopping())

    def _steward(self, slot: Slot) -> Steward:
        settings, queue = self._settings, self._stores.queue
        self._alerts = self._alerts_of(slot)
        return Steward(
            settings.name,
            slot,
            self._board.header,
            urgent=self._urgent(),
            others=self._others(),
            wait=lambda timeout: queue.wait_for_change(settings.queues, timeout),
            signals=self._signals,
            outage=self._outage,
            blame=self._blame,
            prompt=[self._watch, *self._told],
            between=[self._limits],
        )

    def _others(self) -> list[Chore]:
        watching = [self._report_running(), *self._watching, self._publish]
        room = WatchRoom(self._board.header, self._stores.queue)  # after those that write, as it relies on them
        self._settler.mark_flows = flow_marker(self._board.header)
        flows = LookAtFlows(self._stores.flows, self._board.header, self._settler)
        return [
            *self._lease_chores(),
            *watching,
            room,
            flows,
            self._limits,
            *self._measure(),
            *self._history,
            *self._horizon,
            *self._attempts_chores(),
        ]

    def _outlive(self, steward: Steward) -> None:
        """Outlive the master, whose death the kernel has signalled: workers finish their jobs and need a steward."""
        self._signals.stop = False
        steward.drop([*self._alerts, *self._watching, self._publish, *self._history, *self._horizon])
        board = self._orphaned_boards.own
        self._guard.run(time.monotonic())  # it notes which workers there are, before a job writes over their slots
        steward.run(until=lambda: board.is_settled and not self._guard.orphans())
        if board.is_settled:
            board.unlink()  # here too: a silent store may have ended the last round before it came to that
        self._runtime.remove_leftovers()

    def _alerts_of(self, slot: Slot) -> list[Chore]:
        """The chore that raises alerts, where they are configured."""
        settings = self._settings
        if settings.alerts is None:
            return []
        from queuepool.alerts.watch import Alerts  # imported here: few pools have alerts

        cookie = str(self._board.mark(slot))
        return [Alerts(settings, settings.alerts, self._board, cookie, LISTENERS, self._blame)]

    def _urgent(self) -> list[Chore]:
        settings, queue = self._settings, self._stores.queue
        return [
            *([PublishMeters(self._board, self._meters)] if self._meters else []),
            *([ReloadOnChange(self._board)] if settings.reload else []),
            # First those that need no store: the others may have to wait for theirs.
            self._guard,
            *self._alerts,
            *self._reassert(),
            SettleDead(
                self._orphaned_boards,
                self._runtime,
                queue,
                self._settler,
                self._lost_replies(),
                self._blame,
                settings.grace,
                self._stores.ask_again,
                lambda: self._loop.look_between(),
            ),
            StageDue(queue, settings.queues),
        ]

    @cached_property
    def _limits(self) -> LookAtLimits:
        return LookAtLimits(self._stores.limits, self._board.header)

    def _lease_chores(self) -> list[Chore]:
        connection = self._settings.connection
        renew = [self._renew] if connection.renew else []
        return [*renew, GiveBack(self._orphaned_boards, self._settler, self._lost_replies())]

    @cached_property
    def _renew(self) -> Renew:
        connection = self._settings.connection
        return Renew(self._orphaned_boards, self._stores.queue, connection.retry_after, self._limits.notice)

    def _reassert(self) -> list[Chore]:
        if not (said := self._stores.reassertion):
            return []
        return [Reassert(self._stores.queue, self._renew, said.follow, said.reassert, self._signals.wake)]

    def _measure(self) -> list[Chore]:
        """The chore that measures, where metrics are published, and the one that scales by that."""
        if self._pool_meters is None:
            return []
        meters, stores, header = self._pool_meters, self._stores, self._board.header

        def note_outage(event: StoreLost) -> None:
            if not header.store_lost:  # else an earlier steward has counted it
                meters.note_outage()

        LISTENERS.add(StoreLost, note_outage)
        LISTENERS.add(FlowEvent, lambda event: meters.count_flow(event.state))
        flows = self._measure_flows(meters)
        is_elsewhere = self._settings.connection.failed_url  # whose silence must not stop this process
        count = stores.failed.count if not is_elsewhere else lambda: 0
        parked = partial(self._parked, header)
        limits = MeasureLimits(stores.limits, header, meters, stores.queue.now)
        if not self._settings.scales:
            return [Measure(meters, stores.queue, count, count_parked=parked), flows, limits]
        from queuepool.steward import neighbours, scale  # imported here: few pools scale by themselves

        measure = Measure(meters, stores.queue, count, period=scale.PERIOD, count_parked=parked)
        instance, queues = self._board.name.instance, self._settings.queues
        known = neighbours.KnowNeighbours(instance, queues, stores.control.pools, stores.queue.now)
        return [measure, flows, limits, known, scale.WishForWorkers(self._settings, self._board, LISTENERS, known)]

    def _measure_flows(self, meters: PoolMeters) -> Chore:
        """In a thread with its own connections: a store that counts for long delays only that."""
        events, own = EventQueue(), Stores(replace(self._settings.connection, block_for=0.0))
        header = self._board.header
        chores = [MeasureFlows(own.flows, header, meters)]
        thread = SideThread(chores, SideStores(events), events, LISTENERS, self._blame, Thread.FLOWS, tick=1.0)
        return OnceThereAreFlows(thread, header)

    def _parked(self, header: Header, queue: str) -> int:
        """How many jobs of the queue wait for places of limits; asked only where some have limits."""
        return self._stores.limits.parked(queue) if header.limits_at and self._stores.limits.in_use else 0

    def _report_running(self) -> Chore:
        return ReportRunning(self._orphaned_boards, self._stores.queue, self._stores.values, self._settler.states)

    def _lost_replies(self) -> LostReplies:
        settings = self._settings
        return LostReplies(self._stores.queue, self._settler, settings.queues, settings.connection.retry_after)

    def _control_chores(self) -> list[Chore]:
        """The chores of the control and failed stores; if those are separate, in a thread with its own connections."""
        connection, header, queues = self._settings.connection, self._board.header, self._settings.queues
        pauses = Pauses(self._board)
        if not (connection.control_url or connection.maintenance_url or connection.failed_url):
            side_stores = SideStores(LISTENERS)
            self._watch = WatchControl(header, self._stores.control, LISTENERS, queues, side_stores, pauses)
            return [self._watch]
        events, own = EventQueue(), Stores(replace(connection, block_for=0.0))
        side_stores = SideStores(events, header)
        self._watch = WatchControl(header, own.control, events, queues, side_stores, pauses)
        chores: list[Chore] = [self._watch]
        if own.forwarder:
            chores.append(RecordFailures(self._board, FailureRecorder(own.forwarder, events, side_stores)))
        return [SideThread(chores, side_stores, events, LISTENERS, self._blame, Thread.ASIDE)]

    def _operators_chores(self, notice: PoolNotice) -> list[Chore]:
        """The chores by which operators on other hosts, and other pools, reach this one."""
        stores, journal = self._stores, self._stores.journal
        self._obey = Obey(
            self._settings,
            notice.host,
            self._board,
            stores.commands,
            journal,
            stores.queue.now,
            lambda: self._watch.last.news,
            LISTENERS,
        )
        #: those that look at what the control keys have told
        self._told: list[Chore] = [self._obey, TellActions(journal, lambda: self._watch.last.news, LISTENERS)]
        keep = self._settings.keep_done
        lost = [RecordLost(stores.attempts, keep)] if keep else []
        return [*self._told, WatchPools(notice.instance, stores.control, stores.values, LISTENERS, *lost)]

    def _history_chores(self) -> list[KeepHistory]:
        settings, stores = self._settings, self._stores
        if not (settings.history and settings.metrics):
            return []
        return [KeepHistory(settings.name, self._board, stores.values, stores.queue.now, settings.history)]

    def _horizon_chores(self) -> list[ShowInHorizon]:
        settings = self._settings
        if not settings.horizon:
            return []
        from queuepool.steward.horizon import ShowInHorizon  # imported here: few pools are shown there
        from queuepool.steward.horizon_jobs import EndedJobs

        keys, is_shared = self._stores.horizon(settings.horizon), not is_cluster(settings.connection.url)
        return [ShowInHorizon(settings, self._board, keys, EndedJobs(settings, self._stores), is_shared=is_shared)]

    def _attempts_chores(self) -> list[Chore]:
        settings = self._settings
        if not settings.keep_done:
            return []
        return [TrimAttempts(self._stores.attempts, settings.queues)]

    def _firing(self, pool: PoolSettings) -> Chore:
        """The chore that pushes the jobs of the pool's schedules."""
        return FireSchedules(pool, self._stores.values, self._stores.queue.now, lambda: self._watch.last, LISTENERS)
