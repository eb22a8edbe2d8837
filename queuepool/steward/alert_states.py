"""When an alert is raised and when it is cleared: twice at its limit, and below four fifths of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from queuepool.board.open_alerts import MAX_ALERTS, MAX_OF_ONE, OpenAlert
from queuepool.steward.alert_rules import OF_ALL, Reading

#: the part of a limit below which an alert is cleared: a value that swings about the limit changes nothing
_CLEARED = 0.8
_Key = tuple[str, str]


class Changes(NamedTuple):
    """What a look has changed; ``kept_back``: alerts for which there is no room."""

    raised: Sequence[OpenAlert]
    cleared: Sequence[OpenAlert]
    kept_back: int = 0


class AlertStates:
    """The alerts that are raised, ``alerts`` by an earlier steward, and what was at its limit in the last look."""

    def __init__(self, alerts: Iterable[OpenAlert] = ()) -> None:
        self._open = {(one.kind, one.subject): one for one in alerts}
        self._inherited = set(self._open)
        #: since when, in Unix seconds
        self._suspects: dict[_Key, float] = {}

    @property
    def alerts(self) -> list[OpenAlert]:
        """Those that are raised, by kind and subject."""
        return [self._open[key] for key in sorted(self._open)]

    def put(self, alert: OpenAlert) -> None:
        """Replace an alert that is raised."""
        self._open[alert.kind, alert.subject] = alert

    def update(
        self, readings: Iterable[Reading], unknown: Collection[str], now: float, incomplete: Collection[str] = ()
    ) -> Changes:
        """Take the readings of a look at ``now`` (Unix seconds); of ``unknown`` kinds nothing changes.

        Of ``incomplete`` kinds, what an earlier steward has raised stays: that one had counted for longer. What has no
        reading any more is at 0.
        """
        found = {(one.kind, one.subject): one for one in readings if one.kind not in unknown}
        kept = {key for key in self._inherited if key[0] in incomplete}
        cleared = self._clear(found, unknown, kept)
        reached = {key: one for key, one in found.items() if key not in self._open and one.value >= one.limit}
        confirmed = [one for key, one in reached.items() if key in self._suspects]
        worst_first = sorted(confirmed, key=lambda one: one.value / one.limit, reverse=True)
        raised = [self._raise(one) for one in worst_first if self._has_room(one)]
        waiting = {key: since for key, since in self._suspects.items() if key[0] in unknown}
        self._suspects = waiting | {key: self._suspects.get(key, now) for key in reached}
        return Changes(raised, cleared, len(confirmed) - len(raised))

    def _clear(
        self, found: Mapping[_Key, Reading], unknown: Collection[str], kept: Collection[_Key]
    ) -> list[OpenAlert]:
        """Those that are over, with their last value; the others get their present one."""
        cleared = []
        for key, alert in list(self._open.items()):
            if alert.kind in unknown or key in kept:
                continue
            value = found[key].value if key in found else 0.0
            self._open[key] = alert = alert._replace(value=value)
            if value < _CLEARED * alert.limit:
                cleared.append(self._open.pop(key))
        return cleared

    def _has_room(self, one: Reading) -> bool:
        """However many queues there are trouble with, that the store is away must be said."""
        return len(self._open) < (MAX_ALERTS if one.kind in OF_ALL else MAX_OF_ONE)

    def _raise(self, one: Reading) -> OpenAlert:
        key = one.kind, one.subject
        about = one.kind, one.subject, one.value, one.limit
        self._open[key] = OpenAlert(*about, since=self._suspects[key], detail=one.detail)
        return self._open[key]
