"""Looks after limits, in pools that run jobs with some: hands on the places that come free by themselves."""

from __future__ import annotations

from queuepool.board.fields import Header
from queuepool.errors import TableMissing
from queuepool.stores.limits import JobLimits

#: seconds between looks at least, and at most
_SOON, _PERIOD = 0.02, 1.0


class LookAtLimits:
    """A pool without limits never asks its store."""

    def __init__(self, limits: JobLimits, header: Header) -> None:
        self._limits = limits
        self._header = header

    def run(self, now: float) -> float:
        """As of every chore."""
        if not self._header.limits_at:
            return _PERIOD
        self._limits.in_use = True
        try:
            due = self._limits.sweep()
        except TableMissing:  # the database was made before there were limits
            return _PERIOD
        return _PERIOD if due is None else min(max(due, _SOON), _PERIOD)
