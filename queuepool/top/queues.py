"""The table of queues: how much waits, for how long, and whether it becomes more."""

from __future__ import annotations

from typing import NamedTuple

from queuepool.board.counts import NO_WAITS, WAIT_BOUNDS, Histogram, QueueFacts
from queuepool.top.layout import Column, Row, Style
from queuepool.top.reading import Reading
from queuepool.top.text import plain
from queuepool.top.units import NONE, brief, change, count, duration

#: most queues that are shown: a job may have written anything on the board
_MOST = 5000
#: seconds for which a first delayed job may be due, and seconds after which the measured figures are old
_OVERDUE, _OLD = 5.0, 30.0
COLUMNS = (
    Column("QUEUE", least=8),
    Column("READY", is_number=True, is_extra=True),
    Column("DELAYED", is_number=True, is_extra=True, drop=2),
    Column("RESERVED", is_number=True, is_extra=True, drop=3),
    Column("OLDEST", is_number=True, is_extra=True),
    Column("CHANGE", is_number=True, is_extra=True, drop=1),
    Column("EMPTY IN", is_number=True, is_extra=True, drop=4),
    Column("WAIT P95", is_number=True, is_extra=True, drop=5),
    Column("QUARANTINED", is_number=True, is_extra=True, drop=6),
    Column("", drop=1, is_extra=True),
)


class Queue(NamedTuple):
    """One queue. ``growth`` is in ready jobs a second, ``None`` if unknown; ``wait`` is of first attempts of late."""

    name: str
    facts: QueueFacts
    is_paused: bool
    growth: float | None
    wait: Histogram
    age: float


def queues(reading: Reading) -> list[Queue]:
    """The pool's queues, highest priority first, and all others that its steward has measured."""
    paused = reading.local.overview.paused if reading.local else ()
    served = reading.local.about.queues if reading.local and reading.local.about else ()
    names = dict.fromkeys([*served, *reading.counts.queues, *paused])
    waits = reading.pace.waits()
    return [_queue(reading, name, name in paused, waits.get(name, NO_WAITS)) for name in list(names)[:_MOST]]


def _queue(reading: Reading, name: str, is_paused: bool, wait: Histogram) -> Queue:
    facts = reading.counts.queues.get(name, QueueFacts())
    growth = (reading.pace.growth or {}).get(name)
    age = max(reading.seen_at - facts.measured_at, 0.0)
    return Queue(name, facts, is_paused or facts.paused, growth, wait, age)


def row(queue: Queue, encoding: str) -> Row:
    """The queue as a row; without figures where none were measured."""
    facts, name = queue.facts, plain(queue.name, encoding)
    remark, style = _remark(queue)
    if not facts.measured_at:
        return Row([name, *[NONE] * 8, remark], style, queue.name)
    sizes = [f"{count(facts.ready)}{'+' if facts.is_at_least else ''}", count(facts.delayed), count(facts.reserved)]
    wait = brief(queue.wait.quantile(0.95, WAIT_BOUNDS)) if queue.wait.observations else NONE
    speed = [change(queue.growth), _empty_in(queue), wait, count(facts.quarantined)]
    return Row([name, *sizes, duration(facts.oldest), *speed, remark], style, queue.name)


def _empty_in(queue: Queue) -> str:
    """When nothing is ready any more, if it goes on like this."""
    if not queue.facts.ready or queue.growth is None or queue.growth > -0.05:
        return NONE
    return duration(queue.facts.ready / -queue.growth)


def _remark(queue: Queue) -> tuple[str, Style]:
    if queue.is_paused:
        return "paused", Style.WARNING
    if not queue.facts.measured_at:
        return "not measured", Style.FAINT
    if queue.age > _OLD:
        return f"measured {duration(queue.age)} ago", Style.WARNING
    if queue.facts.overdue > _OVERDUE:
        return f"delayed jobs late: {duration(queue.facts.overdue)}", Style.BAD
    return "", Style.PLAIN if queue.facts.ready or queue.facts.reserved else Style.FAINT
