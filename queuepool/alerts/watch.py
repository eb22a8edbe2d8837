"""The chore that raises and clears alerts. It has its own thread, which a silent store may delay."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from math import inf

from queuepool.alerts.facts import AlertFacts, Lost, Own, UnservedQueues, lost_in
from queuepool.alerts.rules import COUNTED, AlertStates, readings
from queuepool.alerts.sending import Notices, Outbox, Refusals
from queuepool.board import open_alerts
from queuepool.board.blame import Blame, Thread
from queuepool.board.board import Board
from queuepool.board.counts import counts_of
from queuepool.board.open_alerts import OpenAlert
from queuepool.config.alerts import AlertSettings
from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreError
from queuepool.events import AlertCleared, AlertRaised
from queuepool.events.listeners import Listeners
from queuepool.steward.side_stores import Emitter, EventQueue, SideStores, SideThread
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.factory import Stores

#: seconds between two looks; and between two looks for the thread's events
_PERIOD, _TICK = 10.0, 1.0
_log = logging.getLogger("queuepool")


class Alerts:
    """The alerts of one pool, for the steward's main thread; the watch has its own thread and connections.

    ``cookie`` marks the processes that send notices.
    """

    def __init__(
        self,
        pool: PoolSettings,
        limits: AlertSettings,
        board: Board,
        cookie: str,
        listeners: Listeners,
        blame: Blame,
    ) -> None:
        if not pool.metrics:
            _log.warning(
                "alerts: metrics = no, so only running jobs, pauses, boots, lost pools and the stores are watched"
            )
        events, stores = EventQueue(), Stores(replace(pool.connection, block_for=0.0))
        facts = AlertFacts(pool.name, board, counts_of, open_alerts.read(board))
        outbox = Outbox(limits, pool.name, cookie, events)
        watch = AlertWatch(pool.name, limits, board, stores, facts, outbox, events, pool.queues)
        self._thread = SideThread([watch], SideStores(events), events, listeners, blame, Thread.ALERTS, tick=_TICK)

    def run(self, now: float) -> float:
        return self._thread.run(now)


class AlertWatch:
    """Takes a look at intervals, and tells the board, the listeners and the operator what has changed."""

    def __init__(
        self,
        pool: str,
        limits: AlertSettings,
        board: Board,
        stores: Stores,
        facts: AlertFacts,
        outbox: Outbox,
        emitter: Emitter,
        queues: Sequence[str] = (),
    ) -> None:
        host = socket.gethostname()
        self._own = Own(f"{host}:{pool}", board.name.instance)
        self._limits = limits
        self._board = board
        self._control = stores.control
        self._facts = facts
        self._outbox = outbox
        self._emitter = emitter
        self._notices = Notices(stores.values, outbox, pool, host, limits.repeat)
        # The alerts of the previous steward.
        self._states = AlertStates(open_alerts.read(board))
        self._shown = self._states.alerts
        self._kept_back = 0
        self._refused = Refusals("lost pools go unnoticed")
        self._unserved = UnservedQueues(queues, stores)
        self._not_searched = Refusals("queues that no pool serves go unnoticed")
        self._look_at = 0.0

    def run(self, now: float) -> float:
        """Look if it is time, and continue sending notices; returns the seconds until the next run."""
        if now >= self._look_at:
            self._look_at = now + _PERIOD
            self._look(time.time(), now)
        pause = self._outbox.step()
        return max(self._look_at - now, 0.0) if pause is None else pause

    def _look(self, now: float, clock: float) -> None:
        """Take one look; ``now`` is in Unix seconds, ``clock`` monotonic."""
        facts, unknown = self._facts.look(self._lost(), self._unserved_queues(clock))
        incomplete = () if facts.recent.is_whole else COUNTED
        changes = self._states.update(readings(facts, self._limits), unknown, now, incomplete)
        for alert in changes.raised:
            self._emitter.emit(AlertRaised(*_facts_of(alert)))
        for alert in changes.cleared:
            self._emitter.emit(AlertCleared(*_facts_of(alert)))
        if changes.kept_back > self._kept_back:
            _log.error("%d more alerts are not raised: %d already are", changes.kept_back, len(self._states.alerts))
        self._kept_back = changes.kept_back
        if self._outbox.is_used:
            self._notices.begin(is_away=bool(self._board.header.store_lost))
            for alert in changes.cleared:
                self._notices.send_cleared(alert, now)
            for alert in self._states.alerts:
                self._states.put(self._notices.send_if_due(alert, now))
        self._show()

    def _show(self) -> None:
        if self._states.alerts != self._shown:
            with suppress(OSError):  # no room on the disk: the next look tries again
                open_alerts.write(self._board, self._states.alerts)
                self._shown = self._states.alerts

    def _lost(self) -> Lost | None:
        """For how long other pools have published nothing; ``None`` if that is unknown, or not watched."""
        if not self._limits.lost or self._board.header.store_lost:
            return None
        try:
            notices = self._control.pools(NOTICE_KEPT)
            if self._own.since == inf:
                self._own = self._own._replace(since=max((notice["at"] for notice in notices), default=0.0))
            return lost_in(notices, self._own, self._limits.lost)
        except StoreError as error:
            self._refused.note(error)
            return None

    def _unserved_queues(self, clock: float) -> Mapping[str, float] | None:
        """For how long unserved queues have had the same next job; ``None`` as above."""
        if not self._limits.unserved or self._board.header.store_lost:
            return None
        try:
            return self._unserved.look(clock)
        except StoreError as error:
            self._not_searched.note(error)
            return None


def _facts_of(alert: OpenAlert) -> tuple[str, str, float, float, datetime, str]:
    since = datetime.fromtimestamp(alert.since, UTC)
    return alert.kind, alert.subject, alert.value, alert.limit, since, alert.detail
