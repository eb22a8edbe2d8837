"""Stewards that settle schedules on one real store, with a clock that the test sets and replies that it loses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDenied, StoreDown
from queuepool.events import Event
from queuepool.payload.envelope import decode
from queuepool.steward.schedule import FireSchedules, ScheduledJob
from queuepool.stores.contract import Control
from queuepool.stores.factory import Stores
from queuepool.stores.values import Due, Fired, Mark


class Wire:
    """The way to the store: requests may be lost, replies may be lost, and what is on its way may arrive much later."""

    def __init__(self, stores: Stores) -> None:
        self._schedules = stores.values
        self.fault = ""
        self.under_way: list[Due] = []

    def begin(self, rules: dict[str, str], now: int) -> dict[str, Mark]:
        return self._sent(lambda: self._schedules.begin(rules, now))

    def fire(self, due: Due) -> Fired | None:
        if self.fault == "late":
            self.under_way.append(due)
            raise StoreDown("it is on its way")
        return self._sent(lambda: self._schedules.fire(due))

    def note(self, book: str, text: str, most: int, lifetime: float) -> None:
        self._sent(lambda: self._schedules.note(book, text, most, lifetime))

    def deliver(self) -> None:
        """What was on its way arrives."""
        for due in self.under_way:
            self._schedules.fire(due)
        self.under_way.clear()

    def _sent(self, call: Callable[[], Any]) -> Any:
        if self.fault in ("request", "late"):
            raise StoreDown("the request is lost")
        answer = call()
        if self.fault == "reply":
            raise StoreDown("the reply is lost")
        return answer


class Stewards:
    """Several stewards of one pool, which live and die independently."""

    def __init__(self, stores: Stores, pool: PoolSettings, now: int, count: int = 3) -> None:
        self.stores = stores
        self.pool = pool
        self.wire = Wire(stores)
        self.now = float(now)
        self.control = Control()
        self.events: list[Event] = []
        self._all = [self._new() for _ in range(count)]
        self._pools = [pool] * count

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def run(self, number: int = 0) -> float | None:
        """One round of a steward: the seconds until its next; ``None`` if the store did not answer.

        Raises ``StoreError`` for what the store refuses.
        """
        try:
            return self._all[number].run(0.0)
        except StoreDenied:
            raise
        except StoreDown:
            return None

    def job(self, number: int) -> ScheduledJob:
        """The first schedule, as this steward knows it."""
        return ScheduledJob(self._pools[number].schedules[0])

    def replace(self, number: int) -> None:
        """A steward is killed, and its successor begins with what the store knows."""
        self._all[number] = self._new()
        self._pools[number] = self.pool

    def pushed(self, queue: str = "default") -> list[int]:
        """The times for which jobs were pushed, in their order."""
        payloads = map(decode, self.stores.queue.first(queue, 10_000))
        return [int(datetime.fromisoformat(payload.fields["scheduledFor"]).timestamp()) for payload in payloads]

    def _new(self) -> FireSchedules:
        return FireSchedules(self.pool, self.wire, lambda: self.now, lambda: self.control, self)
