"""For how long nothing of a flow has begun or ended: its jobs may be lost, or wait for what never comes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from queuepool.board.fields import Header
from queuepool.stores.flows import FlowPace, Flows

#: seconds between two looks; the pause after a slow one, in multiples of its time; most flows that are followed
_PERIOD, _SHARE, _MOST = 60.0, 50.0, 1000


class StalledFlows:
    """Compares how far the flows are with the looks before. A pool that has run none never asks its store."""

    def __init__(self, flows: Flows, header: Header) -> None:
        self._flows = flows
        self._header = header
        #: each flow as it was when it had last moved, and when that was seen (monotonic)
        self._seen: dict[str, tuple[FlowPace, float]] = {}
        self._looked = self._look_at = 0.0

    def look(self, now: float) -> Mapping[str, tuple[float, str]]:
        """Seconds by the flow's id, with its name, as of the last look; ``now`` is monotonic. Raises ``StoreError``."""
        if self._header.flows_at and now >= self._look_at:
            self._look_at, began = now + _PERIOD, time.monotonic()
            found = self._flows.under_way(_MOST)
            self._seen = {one.id: self._moved(one, now) for one in found}
            self._looked = now
            self._look_at = now + max(_PERIOD, _SHARE * (time.monotonic() - began))
        return {one.id: (self._looked - since, one.name) for one, since in self._seen.values()}

    def _moved(self, one: FlowPace, now: float) -> tuple[FlowPace, float]:
        before = self._seen.get(one.id)
        return before if before and before[0].progress == one.progress else (one, now)
