"""The chore that raises and clears alerts. It has its own thread, which a silent store may delay.

Their facts are from the meters, the board, other pools' notices and unserved queues.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from math import inf
from typing import Any, NamedTuple

from queuepool.alerts.rules import COUNTED, MEASURED, AlertStates, AlertWindow, LookFacts, readings
from queuepool.alerts.sending import Notices, Outbox, Refusals
from queuepool.alerts.stalled import StalledFlows
from queuepool.board import open_alerts, pauses
from queuepool.board.blame import Blame, Thread
from queuepool.board.board import Board, Role, State
from queuepool.board.counts import PoolCounts, counts_of
from queuepool.board.health import health_of
from queuepool.board.open_alerts import OpenAlert
from queuepool.board.overview import PoolOverview, ran_in
from queuepool.board.status import overview
from queuepool.config.alerts import AlertSettings
from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDown, StoreError
from queuepool.events import AlertCleared, AlertRaised
from queuepool.events.listeners import Listeners
from queuepool.steward.side_stores import Emitter, EventQueue, SideStores, SideThread
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.control import names_of, newest_of, served_in
from queuepool.stores.factory import Stores

#: seconds between two looks; and between two looks for the thread's events
_PERIOD, _TICK = 10.0, 1.0
_log = logging.getLogger("queuepool")
#: seconds after which a measurement is out of date
_STALE = 300.0
#: most jobs of a lost pool that an alert names
_MOST_NAMED = 3
_PAUSE = "pause of queue {}"
#: most pauses with an alert each; more get one together
_MOST_PAUSES = 10
#: the stores that may be away, with the beginning of their field in the header
_STORES = {"store": "store", "failed store": "failed_store", "control store": "control_store"}
#: for looks for unserved queues: seconds between two; pause after a slow one, in multiples of its time; most queues in
#: one, the others take turns
_UNSERVED_PERIOD, _SHARE, _MOST_QUEUES = 60.0, 50.0, 50


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
        reach = partial(stores.values.get, [stores.settings.restart_key])  # as any pool may
        self._notices = Notices(stores.values, reach, outbox, pool, host, limits.repeat)
        # The alerts of the previous steward.
        self._states = AlertStates(open_alerts.read(board))
        self._shown = self._states.alerts
        self._kept_back = 0
        self._refused = Refusals("lost pools go unnoticed")
        self._unserved = UnservedQueues(queues, stores)
        self._not_searched = Refusals("queues that no pool serves go unnoticed")
        self._stalled = StalledFlows(stores.flows, board.header, self._shown)
        self._not_followed = Refusals("flows that do not move go unnoticed")
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
        facts, unknown = self._facts.look(self._lost(), self._unserved_queues(clock), self._stalled_flows(clock))
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

    def _stalled_flows(self, clock: float) -> Mapping[str, tuple[float, str]] | None:
        """For how long nothing of each flow has begun or ended, and its name; ``None`` as above."""
        if not self._limits.stalled or self._board.header.store_lost:
            return None
        try:
            return self._stalled.look(clock)
        except StoreError as error:
            self._not_followed.note(error)
            return None


def _facts_of(alert: OpenAlert) -> tuple[str, str, float, float, datetime, str]:
    since = datetime.fromtimestamp(alert.since, UTC)
    return alert.kind, alert.subject, alert.value, alert.limit, since, alert.detail


class Lost(NamedTuple):
    """For how many seconds each other pool (``HOST:POOL``) has published nothing, and what it last ran."""

    silent: Mapping[str, float]
    ran: Mapping[str, str]


class AlertFacts:
    """One pool's facts at each look. ``read`` reads its meters; ``raised``: the alerts of the previous steward."""

    def __init__(
        self, pool: str, board: Board, read: Callable[[Board], PoolCounts], raised: Sequence[OpenAlert] = ()
    ) -> None:
        self._pool = pool
        self._board = board
        self._read = read
        self._window = AlertWindow()
        self._unbooted, self._paused = Lasting("boot", raised), Lasting("paused", raised)

    def look(
        self, lost: Lost | None, unserved: Mapping[str, float] | None, stalled: Mapping[str, tuple[float, str]] | None
    ) -> tuple[LookFacts, frozenset[str]]:
        """The facts, and the kinds of alerts of which nothing is known; ``None`` = not known."""
        counts, header, now = self._read(self._board), self._board.header, time.time()
        recent = self._window.add(time.monotonic(), counts)
        stores = {name: getattr(header, f"{field}_lost") for name, field in _STORES.items()}
        shown = overview(self._pool, self._board)
        asked = {"lost": lost, "unserved": unserved, "stalled": stalled}
        unknown = MEASURED if header.store_lost or _is_stale(counts, now) else frozenset[str]()
        unknown |= {kind for kind, found in asked.items() if found is None}
        silent, ran = lost or Lost({}, {})
        facts = LookFacts(
            self._pool,
            counts,
            recent,
            _running(self._board, now),
            away=_ages(stores, now),
            full=_ages({"store": header.store_full}, now),
            unbooted=self._unbooted.note([self._pool] if health_of(shown).has("boot") else [], now),
            paused=_few(self._paused.note(_pauses(shown), now) | _known_pauses(self._board, shown, now)),
            silent=silent,
            ran=ran,
            unserved=unserved or {},
            stalled=stalled or {},
            is_served=header.state != State.PAUSED and not header.down,
        )
        return facts, unknown


class Lasting:
    """For how long each thing of a kind has lasted, as far as the looks go back.

    Alerts that an earlier steward has ``raised`` continue.
    """

    def __init__(self, kind: str, raised: Sequence[OpenAlert]) -> None:
        self._since = {one.subject: one.since - one.limit for one in raised if one.kind == kind}

    def note(self, present: Iterable[str], now: float) -> dict[str, float]:
        """Take what is there at ``now`` (Unix seconds); returns for how many seconds each has lasted."""
        self._since = {name: self._since.get(name, now) for name in present}
        return _ages(self._since, now)


def _ages(since: Mapping[str, float], now: float) -> dict[str, float]:
    return {name: max(now - at, 0.0) for name, at in since.items() if at}


def _few(paused: dict[str, float]) -> dict[str, float]:
    """The pauses; if there are many, only the longest, for all: a hundred alerts would crowd out the others."""
    return paused if len(paused) <= _MOST_PAUSES else {"pause of many queues": max(paused.values())}


def _known_pauses(board: Board, pool: PoolOverview, now: float) -> dict[str, float]:
    """For how many seconds queues have been paused, where the board knows it better than the looks."""
    known = {queue: one.since for queue, one in pauses.read(board).items() if queue in pool.paused}
    return _ages({_PAUSE.format(queue): since for queue, since in known.items()}, now)


def _pauses(pool: PoolOverview) -> Iterator[str]:
    """What is paused now, in words."""
    yield from map(_PAUSE.format, pool.paused)
    if pool.state == State.PAUSED.name.lower():
        yield f"pause of pool {pool.pool}"
    if pool.maintenance:
        yield "maintenance mode"


def _is_stale(counts: PoolCounts, now: float) -> bool:
    return max((queue.measured_at for queue in counts.queues.values()), default=0.0) < now - _STALE


def _running(board: Board, now: float) -> dict[str, float]:
    """For how long the longest running job of each name has run."""
    found: dict[str, float] = {}
    for one in (one for slot in board.of(Role.WORKER) for one in slot.running() if one.since):
        found[one.job] = max(now - one.since, found.get(one.job, 0.0))
    return found


class Own(NamedTuple):
    """The pool that looks: ``HOST:POOL``, its instance, and when it first looked, by the store's clock."""

    name: str
    instance: str = ""
    since: float = inf

    def is_or_was(self, host: str, pool: str, instance: str, at: float) -> bool:
        """Whether this notice is its own, or that of an earlier instance.

        One of its name that has published since is another pool, on a host of the same name.
        """
        return f"{host}:{pool}" == self.name and (instance == self.instance or at <= self.since)


def lost_in(notices: list[dict[str, Any]], own: Own, limit: float) -> Lost:
    """How long other pools have been silent by these notices, and what those ran that reach ``limit`` seconds."""
    found = newest_of(notices)
    newest = max((notice["at"] for notice in found.values()), default=0.0)  # serves as the present time
    last = {name: found[key] for key, name in names_of(found).items() if not own.is_or_was(*key, found[key]["at"])}
    silent = {name: newest - notice["at"] for name, notice in last.items()}
    ran = {name: ran_in(last[name], _MOST_NAMED) for name, seconds in silent.items() if seconds >= limit}
    return Lost(silent, ran)


class _Seen(NamedTuple):
    """A queue's next job, and when it was first and last seen there (monotonic)."""

    digest: bytes
    since: float
    at: float


class UnservedQueues:
    """For how long the next job of each queue that no pool serves has stayed in its place.

    The whole store is searched, but seldom. Whether a Laravel worker serves a queue cannot be seen, but a worker would
    take the next job. So what counts is how long the same job has been the next one, not how old it is.
    """

    def __init__(self, queues: Sequence[str], stores: Stores) -> None:
        self._own = {*queues, stores.settings.outcomes}
        self._stores = stores
        self._seen: dict[str, _Seen] = {}
        self._found: Mapping[str, float] | None = None
        self._look_at = 0.0

    def look(self, now: float) -> Mapping[str, float] | None:
        """Seconds by queue, as of the last look; ``None`` if unknown. ``now`` is monotonic.

        Raises ``StoreError``.
        """
        if now >= self._look_at:
            self._look_at, self._found = now + _UNSERVED_PERIOD, None
            began = time.monotonic()
            names = self._unserved()
            self._found = None if names is None else self._waits(names, now)
            self._look_at = now + max(_UNSERVED_PERIOD, _SHARE * (time.monotonic() - began))
        return self._found

    def _unserved(self) -> list[str] | None:
        """The queues with jobs, not paused, that no pool serves; ``None`` if a pool does not publish its own."""
        served = served_in(self._stores.control.pools())
        if served is None:
            return None
        names = [name for name in self._stores.queue.queues() if name not in served and name not in self._own]
        paused = self._stores.control.read(names).paused if names else frozenset[str]()
        return [name for name in names if name not in paused]

    def _waits(self, names: Sequence[str], now: float) -> dict[str, float]:
        """For how long each queue had had the same next job when it was last looked at."""
        turn = sorted(names, key=lambda name: self._seen[name].at if name in self._seen else 0.0)[:_MOST_QUEUES]
        self._seen = {name: self._seen[name] for name in names if name in self._seen and name not in turn} | {
            name: _Seen(digest, self._since(name, digest, now), now) for name, digest in self._heads(turn)
        }
        return {name: seen.at - seen.since for name, seen in self._seen.items()}

    def _since(self, name: str, digest: bytes, now: float) -> float:
        before = self._seen.get(name)
        return before.since if before and before.digest == digest else now

    def _heads(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """A digest of the next job of each that has one."""
        for name in names:
            try:
                first = self._stores.queue.first(name, 1)
            except StoreDown:
                raise
            except StoreError:  # a key of the wrong type, so not a queue
                continue
            if first:
                yield name, blake2b(first[0], digest_size=16).digest()
