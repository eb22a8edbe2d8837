"""Several hosts with our supervisor on one queue, which know of each other what their notices say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from typing import Any

from queuepool.board.overview import JobRow, PoolOverview, ProcessRow, ScalingRow
from queuepool.steward.demand import QueueTotals, Scaler
from queuepool.steward.neighbours import KnowNeighbours
from queuepool.steward.wish import Aims
from queuepool.stores.contract import NOTICE_LASTS
from tests.bench.autoscale.world import Arrival, Sight, World

#: seconds between two notices of a host, and between the first two
_PERIOD, _FIRST = 5.0, 1.0
_QUEUE = "default"
_BUSY = ProcessRow(role="worker", state="busy", jobs=(JobRow(name="job", id="1", queue=_QUEUE),))
_IDLE, _STARTING = ProcessRow(role="worker", state="idle"), ProcessRow(role="worker", state="starting")


class Notices:
    """What the hosts have published: the latest of each, until it has lapsed."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[str, Any]] = {}

    def publish(self, notice: dict[str, Any]) -> None:
        self._latest[notice["id"]] = notice

    def read(self, now: float) -> list[dict[str, Any]]:
        return [notice for notice in self._latest.values() if now - notice["at"] <= NOTICE_LASTS]


class OneOfSeveral:
    """As a steward and its master do it, with our defaults. ``room``: so many workers have memory on its host."""

    def __init__(self, name: str, notices: Notices, aims: Aims, room: float) -> None:
        self._name = name
        self._notices = notices
        self._aims = aims
        self._room = room
        self._scaler = Scaler(60.0, owner=name)
        self._now = 0.0
        self._known = KnowNeighbours(name, [_QUEUE], lambda: notices.read(self._now), lambda: self._now)
        self._publish_at = self._read_at = 0.0
        self._is_new = True
        self._held: str | None = None

    def decide(self, sight: Sight) -> int:
        self._now = sight.now
        self._exchange(sight)
        queue = QueueTotals(
            sight.ready,
            sight.running + sight.elsewhere,
            sight.running,
            sight.oldest,
            sight.ended,
            sight.run,
            others=self._known.bids(_QUEUE, sight.now),
        )
        turn, workers = self._known.turn(sight.now), sight.workers
        wish = self._scaler.look(sight.now, {_QUEUE: queue}, workers, sight.starting, self._aims, turn).workers
        self._held = "memory" if wish > max(self._room, workers) else None
        return min(wish, int(max(min(self._room, wish), workers)))

    def _exchange(self, sight: Sight) -> None:
        if sight.now >= self._publish_at:
            self._publish_at = sight.now + (_FIRST if self._is_new else _PERIOD)
            self._is_new = False
            self._notices.publish(self._notice(sight))
        if sight.now >= self._read_at:
            self._read_at = sight.now + min(self._known.run(sight.now), _PERIOD)  # also on a busy machine

    def _notice(self, sight: Sight) -> dict[str, Any]:
        ready = sight.workers - sight.starting
        rows = [_BUSY] * sight.running + [_IDLE] * max(ready - sight.running, 0) + [_STARTING] * sight.starting
        scaling = ScalingRow(fewest=self._aims.fewest, most=self._aims.most, held=self._held)
        shown = PoolOverview(
            pool="pool", state="running", workers=sight.workers, scaling=scaling, processes=rows
        ).to_json()
        about = {"host": self._name, "id": self._name, "queues": [_QUEUE], "concurrency": 1, "at": sight.now}
        return dict(json.loads(json.dumps({**shown, **about})))


def on_hosts(
    load: Sequence[Arrival],
    hosts: int,
    aims: Aims,
    *,
    until: float,
    boot: float = 0.5,
    rooms: Sequence[float] = (),
    dies_at: float = inf,
) -> World:
    """The load, run on so many hosts, each of which begins with the fewest workers."""
    notices = Notices()
    known = [*rooms, *[inf] * (hosts - len(rooms))]
    several = [OneOfSeveral(f"host{number}", notices, aims, room) for number, room in enumerate(known)]
    world = World(load, *several, begins_with=aims.fewest, boot=boot, dies_at=dies_at)
    world.run(until)
    return world
