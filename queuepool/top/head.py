"""The lines above the tables: the pool, what is wrong with it, how busy it is, how fast it goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from queuepool.board.health import NOT_RUNNING, STUCK, health_of
from queuepool.board.status import iso
from queuepool.top.layout import Line, Place, Span, Style, line
from queuepool.top.reading import Reading
from queuepool.top.text import plain, width
from queuepool.top.units import count, duration, megabytes, rate

_BAR = 30
_STATES = {"running": Style.GOOD, NOT_RUNNING: Style.BAD, STUCK: Style.BAD, "failing": Style.BAD}


def head(reading: Reading, now: float, place: Place) -> Iterator[Line]:
    """What stands above the tables; ``now`` is Unix time."""
    yield _title(reading, now, place)
    if reading.problem:
        yield line(plain(reading.problem, place.encoding), Style.BAD)
    if "processes" not in reading.facts:
        return
    if reading.facts["state"] == NOT_RUNNING:
        yield line(f"as last seen {iso(reading.seen_at)}:", Style.WARNING)
    else:
        yield from _troubles(reading.facts, place)
    yield _workers(reading, place.columns)
    yield _speed(reading)
    yield line(plain(_origin(reading.facts), place.encoding), Style.FAINT)


def _troubles(facts: Mapping[str, Any], place: Place) -> Iterator[Line]:
    """At most on a quarter of the lines: the tables must be seen, too."""
    found = [plain(f"! {trouble.text}", place.encoding) for trouble in health_of(facts).troubles]
    most = max(place.lines // 4, 1) if place.lines else len(found)
    for each in found[:most]:
        yield line(each, Style.WARNING)
    if left := len(found[most:]):
        yield line(f"! and {left} more: see queuepool status", Style.WARNING)


def _title(reading: Reading, now: float, place: Place) -> Line:
    facts, state = reading.facts, reading.facts["state"]
    name = plain(f"queuepool {reading.pool}", place.encoding)
    spans = [Span(f"{name}  ", Style.STRONG), Span(state, _STATES.get(state, Style.WARNING)), Span(_about(facts, now))]
    clock = iso(now)
    gap = place.columns - sum(width(span.text) for span in spans) - len(clock)
    return [*spans, Span(f"{' ' * gap}{clock}", Style.FAINT)] if gap > 1 else spans


def _about(facts: Mapping[str, Any], now: float) -> str:
    if facts["state"] == NOT_RUNNING:
        return ""
    try:
        up = now - datetime.fromisoformat(facts["since"]).timestamp()
    except ValueError:  # empty: the board has been overwritten
        up = None
    return f"  up {duration(up)}  master {facts['master']}  generation {count(facts['generation'])}"


def _workers(reading: Reading, columns: int) -> Line:
    """How many of the workers are busy, in numbers and as a bar where there is room for one."""
    facts = reading.facts
    wanted, busy = max(facts["workers"], 0), facts["busy"]
    memory = sum(max(process.get("memory", 0), 0) for process in facts["processes"])
    kept = f", failed jobs kept: {count(reading.counts.failed_jobs)}" if reading.counts.failed_jobs else ""
    text = f"{count(busy)} of {count(wanted)} workers busy, {megabytes(memory)}{kept}  "
    room = max(min(_BAR, columns - len(text) - 2), 0)
    full = round(room * min(busy / wanted, 1.0)) if wanted else 0
    style = Style.WARNING if busy >= wanted else Style.GOOD
    return [Span(f"{text}["), Span("|" * full, style), Span(f"{' ' * (room - full)}]")]


def _speed(reading: Reading) -> Line:
    rates = reading.pace.rates or (None, None, None)
    words = ("done", "failed", "released")
    parts = [f"{word} {count(reading.facts[word])} ({rate(each)})" for word, each in zip(words, rates, strict=True)]
    return [Span(f"{parts[0]}  "), Span(parts[1], Style.WARNING if rates[1] else Style.PLAIN), Span(f"  {parts[2]}")]


def _origin(facts: Mapping[str, Any]) -> str:
    words = {"store": facts.get("store"), "configuration": facts.get("configuration"), "user": facts.get("user")}
    return "  ".join(f"{key} {value}" for key, value in words.items() if value)
