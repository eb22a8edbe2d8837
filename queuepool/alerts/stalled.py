"""For how long nothing of a flow has begun or ended: its jobs may be lost, or wait for what never comes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import inf

from queuepool.board.fields import Header
from queuepool.board.open_alerts import OpenAlert
from queuepool.stores.flows import FlowPace, Flows

#: seconds between two looks; the pause after a slow one, in multiples of its time; most flows that are followed
_PERIOD, _SHARE, _MOST = 60.0, 50.0, 1000


class StalledFlows:
    """Compares how far the flows are with the looks before. A pool that knows of none never asks its store.

    Alerts that an earlier steward has ``raised`` continue until the flow moves.
    """

    def __init__(self, flows: Flows, header: Header, raised: Sequence[OpenAlert] = ()) -> None:
        self._flows = flows
        self._header = header
        #: each flow as it was when it had last moved, and when that was seen (monotonic)
        self._seen: dict[str, tuple[FlowPace, float]] = {}
        #: since when (Unix seconds) those have not moved of which there was an alert, until the first look
        self._raised = {one.subject: one.since - one.limit for one in raised if one.kind == "stalled"}
        self._looked = self._look_at = 0.0

    def look(self, now: float) -> Mapping[str, tuple[float, str]] | None:
        """Seconds by the flow's id, with its name, as of the last look; ``None`` if it is not known what was raised.

        ``now`` is monotonic. Raises ``StoreError``.
        """
        if (self._header.flows_at or self._raised or self._seen) and now >= self._look_at:
            self._look_at, began = now + _PERIOD, time.monotonic()
            found = self._flows.under_way(_MOST)
            self._seen = {one.id: self._moved(one, now) for one in found}
            self._looked, self._raised = now, {}
            self._look_at = now + max(_PERIOD, _SHARE * (time.monotonic() - began))
        if self._raised:
            return None
        return {one.id: (self._looked - since, one.name) for one, since in self._seen.values()}

    def _moved(self, one: FlowPace, now: float) -> tuple[FlowPace, float]:
        if before := self._seen.get(one.id):
            return before if before[0].progress == one.progress else (one, now)
        return one, now - max(time.time() - self._raised.get(one.id, inf), 0.0)
