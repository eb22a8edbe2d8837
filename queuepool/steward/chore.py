"""The interface of the steward's chores."""

from __future__ import annotations

import logging
from typing import Protocol

#: seconds for which a steward skips a chore that earlier stewards have died of
SKIP_TIME = 60.0
_log = logging.getLogger("queuepool")


class Chore(Protocol):
    """One periodic duty of the steward. If it raises ``StoreDown``, it is retried once the store is back."""

    def run(self, now: float) -> float:
        """Do what is due at ``now`` (monotonic seconds); returns the seconds until the next run."""


def name_of(chore: Chore) -> str:
    """By which it is blamed."""
    return type(chore).__name__


def report_skipped(chore: Chore) -> None:
    """Log that it is skipped."""
    _log.error("%s is set aside for %gs: stewards have died of it", name_of(chore), SKIP_TIME)
