"""Looks after limits, in pools that run jobs with some: hands on the places that come free by themselves."""

from __future__ import annotations

from queuepool.board.fields import Header
from queuepool.errors import StoreDenied, TableMissing
from queuepool.stores.limits import JobLimits

#: seconds between looks at least; at most while jobs with limits start; and afterwards, as others may park some
_SOON, _OFTEN, _PERIOD = 0.02, 0.2, 1.0
#: seconds for which they are called to start
_LATELY = 60.0


class LookAtLimits:
    """A pool without limits asks its store once: jobs may be parked at limits that its code no longer has."""

    def __init__(self, limits: JobLimits, header: Header) -> None:
        self._limits = limits
        self._header = header
        self._is_new = True

    def run(self, now: float) -> float:
        """As of every chore."""
        marked = self._header.limits_at
        if not (marked or self._is_new):
            return _PERIOD
        self._limits.in_use = marked > 0  # first: whatever comes of the look, places must last as long as leases
        try:
            due = self._limits.sweep()
        except StoreDenied as error:
            # A table is missing in a database from before there were limits, or nothing is granted where none is used.
            if marked and not isinstance(error, TableMissing):
                raise
            self._is_new = False
            return _PERIOD
        self._is_new = False
        if not marked and due is not None:
            self._header.limits_at = now
        self._limits.in_use = self._header.limits_at > 0
        longest = _OFTEN if now < marked + _LATELY or due is not None else _PERIOD
        return longest if due is None else min(max(due, _SOON), longest)
