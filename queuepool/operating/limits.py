"""What an operator sees of limits, and does to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from queuepool.board.shown_pools import RunningJob
from queuepool.board.status import iso
from queuepool.operating.attempts import moment
from queuepool.payload.limits import NO_PART
from queuepool.search.found import FoundJob
from queuepool.settlement.endings import commands_of
from queuepool.stores.contract import ShelfJob
from queuepool.stores.factory import Stores
from queuepool.stores.limits import KeyRecord, LimitLine, LimitRecord, LimitSum, PlaceRecord, sums_of

#: keys whose longest waiting job a list names
MOST_NAMED = 100
#: what is known of the job that waits the longest, where none does
_NOBODY: Mapping[str, Any] = {"job": None, "name": None, "pushed": None}


def limit_rows(stores: Stores) -> Iterator[dict[str, Any]]:
    """A row for each key at which jobs hold places or wait, below one for each limit that has none of these."""
    named = 0
    for one in sums_of(stores.limits.all(), stores.limits.by_key()):
        for key in one.keys or [KeyRecord(one.limit.name, 0, 0, ())]:
            named += bool(key.parked)
            yield _row(one.limit, key) | longest(stores, key.parked if named <= MOST_NAMED else ())


def _row(limit: LimitRecord, key: KeyRecord) -> dict[str, Any]:
    number = limit.in_force
    return {
        "key": key.key, "limit": f"{number} in {limit.per:g} s" if limit.per else f"{number}",
        "by_hand": limit.by_hand is not None, "held": key.held, "granted": key.granted,
        "parked": sum(line.jobs for line in key.parked), "lines": len(key.parked),
        "next": line_words(key.parked[0]) if key.parked else None,
    }  # fmt: skip


def line_words(line: LimitLine) -> str:
    """The queue, and the partition if there are several."""
    return line.queue if line.part == NO_PART else f"{line.queue} {line.part}"


def longest(stores: Stores, lines: Sequence[LimitLine]) -> dict[str, Any]:
    """The job that waits the longest in these lines: its id, its name, and when it was pushed."""
    line = min(lines, key=lambda line: line.first, default=None)
    return {**_NOBODY, **(_waiter(stores, line) if line else {})}


def waiters(stores: Stores, lines: Sequence[LimitLine], most: int) -> list[dict[str, Any]]:
    """Those at the heads of these lines, the longest first."""
    heads = sorted(lines, key=lambda line: line.first)[:most]
    return [{"queue": line.queue, "part": part_of(line), **found} for line in heads if (found := _waiter(stores, line))]


def part_of(line: LimitLine) -> str | None:
    """Its value of ``fair``, if there is one."""
    return None if line.part == NO_PART else line.part


def _waiter(stores: Stores, line: LimitLine) -> dict[str, Any]:
    """Empty if it has gone on meanwhile."""
    raw = stores.limits.parked_job(line.queue, line.first)
    return _about(stores, line.queue, raw) if raw else {}


def _about(stores: Stores, queue: str, raw: bytes) -> dict[str, Any]:
    job = FoundJob.waiting(ShelfJob(raw, "ready"), queue, commands_of(stores.settings))
    return {"job": job.id, "name": job.name, "pushed": moment(job.pushed)}


def sum_row(stores: Stores, one: LimitSum) -> dict[str, Any]:
    """A limit with what is at all its keys."""
    limit = one.limit
    return {
        "limit": limit.name, "number": limit.in_force, "code": limit.number, "per": limit.per or None,
        "by_hand": limit.by_hand is not None, "keys": len(one.keys), "held": one.held, "granted": one.granted,
        "parked": one.parked, "is_at_least": one.is_at_least,
        "longest": longest(stores, [one.first] if one.first else []),
    }  # fmt: skip


def key_row(key: KeyRecord) -> dict[str, Any]:
    """A key of a limit."""
    return {
        "key": key.key, "held": key.held, "granted": key.granted, "parked": sum(line.jobs for line in key.parked),
        "lines": len(key.parked), "is_at_least": key.is_cut,
    }  # fmt: skip


def holder_rows(
    stores: Stores, places: Sequence[PlaceRecord], running: Mapping[str, RunningJob]
) -> Iterator[dict[str, Any]]:
    """Who holds these places; ``running``: the jobs that workers run, by their ids."""
    for place in places:
        about = _about(stores, place.queue, place.payload) if place.payload else _NOBODY
        by = running.get(about["job"] or "")
        yield {
            "key": place.key, "until": iso(place.until), "queue": place.queue or None, "job": about["job"],
            "name": about["name"], "host": by and by.shown.host, "pool": by and by.shown.pool,
            "worker": by and by.process.number, "pid": by and by.process.pid,
        }  # fmt: skip


class NumberSet(NamedTuple):
    """What was done, for the journal and in words."""

    verb: str
    subject: str
    words: str


def set_number_of(stores: Stores, name: str, number: int | None) -> NumberSet | None:
    """Set the number of a limit, or have it follow the code again (``None``); in force at once. ``None``: not known."""
    if not stores.limits.set(name, number):
        return None
    stores.limits.sweep(name)
    what = "follows the code again" if number is None else f"is now {number}"
    verb = "limits reset" if number is None else "limits set"
    return NumberSet(verb, f"limit {name} {what}", f"limit {name}: {what}")


def unknown(name: str) -> str:
    """Why nothing was set."""
    return f"there is no limit {name}: it is known once a job with it has started or was parked"
