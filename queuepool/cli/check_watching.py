"""``check`` of what alerts, the history and metrics need: rights on the store, and the program that gets notices."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from queuepool.config.settings import PoolSettings
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Finding, Grade, refusal

#: seconds after which a key that could not be released expires
_LIFETIME = 2.0
#: lifetime in seconds of a text that has expired when it is written
_OVER = -60.0
Attempt = tuple[str, Callable[[], object]]


def inspect_rights(stores: Stores, pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether the store permits what these pools, all of one connection, do beside their jobs."""
    for name, ask in _attempts(stores, pools):
        if words := refusal(ask):
            yield Finding(Grade.FAIL, f"connection {stores.settings.name}", f"{name} is refused: {words}")


def inspect_programs(pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether the program of ``[alerts] exec`` can be run by this user."""
    for name in dict.fromkeys(pool.alerts.program[0] for pool in pools if pool.alerts and pool.alerts.program):
        problem = _problem_of(Path(name))
        yield Finding(Grade.FAIL if problem else Grade.OK, f"alerts exec {name}", problem or "it can be run")


def inspect_logs(pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether this user can write to the pools' log files, which are not made here."""
    for path in dict.fromkeys(pool.log for pool in pools if pool.log):
        place = path if path.exists() else path.parent
        if not place.exists():
            yield Finding(Grade.FAIL, f"log {path}", f"there is no directory {place}")
        elif not os.access(place, os.W_OK):
            yield Finding(Grade.FAIL, f"log {path}", f"{place} cannot be written to by uid {os.geteuid()}")


def _attempts(stores: Stores, pools: Sequence[PoolSettings]) -> Iterator[Attempt]:
    """What is tried, by name. Writes only under a name of our own, and leaves nothing."""
    own = f"check-{secrets.token_hex(6)}"
    if any(pool.metrics for pool in pools):
        queues = dict.fromkeys(queue for pool in pools for queue in pool.queues)
        yield from ((f"measuring queue {queue}", partial(stores.queue.measure, queue)) for queue in queues)
    if any(pool.metrics and pool.history for pool in pools):
        yield "keeping the history", partial(stores.values.keep_history, "1m", 0, own, "", _OVER)
        yield "clearing the history", stores.values.sweep_history
    if any(pool.alerts for pool in pools):
        yield "reading the pools' notices for alerts", stores.control.pools
        yield "taking the key of an alert", partial(stores.values.claim_alert, own, own, _LIFETIME)
        yield "releasing the key of an alert", partial(stores.values.release_alert, own, own)


def _problem_of(program: Path) -> str:
    try:
        if not program.exists():
            return "there is no such file"
        if not program.is_file():
            return "is not a file"
    except OSError as error:
        return f"cannot be examined: {error.strerror}"
    return "" if os.access(program, os.X_OK) else f"cannot be run by uid {os.geteuid()}: chmod +x it"
