"""Jobs with a soft timeout: their first attempts sleep past it, catch it, end with it, or come nowhere near it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from queuepool import SoftTimeout, current
from tests.chaos.ledger import Ledger

#: seconds
SOFT_TIMEOUT = 0.1
#: seconds before and after it at which a job ends that ends with it
ABOUT = 0.002


def act(mode: str, attempt: int, ledger: Ledger, began: float) -> None:
    """Act out the mode and write how the attempt ended. Raises ``SoftTimeout`` for one that did not finish.

    ``began``: a moment before the handler's start (monotonic).
    """
    is_done = False
    try:
        SOFT[mode](attempt)
        ledger.attempt("finish", current().id, attempt)
        is_done = True
    except SoftTimeout:
        note(ledger, attempt, began)
        if not is_done:
            ledger.attempt("die", current().id, attempt)
            raise


def note(ledger: Ledger, attempt: int, began: float) -> None:
    """Write that it came now."""
    after = round(time.monotonic() - began, 4)
    ledger.write("soft", id=current().id, a=attempt, since=round(began * 1e9), after=after)


def _sleep_past(attempt: int) -> None:
    if attempt == 1:
        time.sleep(60)


def _catch(attempt: int) -> None:
    try:
        _sleep_past(attempt)
    except SoftTimeout:
        time.sleep(SOFT_TIMEOUT * 1.5)  # a second one would be wrong


def _end_with(attempt: int) -> None:
    time.sleep(SOFT_TIMEOUT + random.uniform(-ABOUT, ABOUT) if attempt == 1 else 0.0)


def _end_long_before(attempt: int) -> None:
    return


#: whose first attempts only the soft timeout ends
PAST = "soft_past"
SOFT: dict[str, Callable[[int], None]] = {
    PAST: _sleep_past,
    "soft_caught": _catch,
    "soft_tie": _end_with,
    "soft_unreached": _end_long_before,
}
