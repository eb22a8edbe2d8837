"""Pushes to a temporary store, each reported when it is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from queuepool.payload.ending import Lock, StateRecord
from queuepool.stores.contract import Pushes


class Reporting:
    """``report`` is called after a push, but not for one whose lock is held."""

    def __init__(self, pushes: Pushes, report: Callable[[], object]) -> None:
        self._pushes = pushes
        self._report = report

    def push(self, queue: str, payloads: Sequence[bytes], delay: float = 0.0) -> None:
        self._pushes.push(queue, payloads, delay)
        self._report()

    def push_unique(self, queue: str, payload: bytes, delay: float, lock: Lock) -> bool:
        return self._reported(self._pushes.push_unique(queue, payload, delay, lock))

    def push_tracked(
        self,
        queue: str,
        payloads: Sequence[bytes],
        delay: float,
        states: Sequence[StateRecord],
        lock: Lock | None = None,
    ) -> bool:
        return self._reported(self._pushes.push_tracked(queue, payloads, delay, states, lock))

    def _reported(self, is_pushed: bool) -> bool:
        if is_pushed:
            self._report()
        return is_pushed
