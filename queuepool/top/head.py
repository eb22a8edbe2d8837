"""The lines above the tables: the pool, what is wrong with it, how busy it is, how fast it goes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from queuepool.board.health import NOT_RUNNING, STUCK, Health
from queuepool.board.overview import PoolOverview
from queuepool.board.status import LocalPool, iso
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
    if reading.local is None:
        return
    if reading.runs:
        yield from _troubles(reading.health, place)
    else:
        yield line(f"as last seen {iso(reading.seen_at)}:", Style.WARNING)
    yield _workers(reading.local.overview, reading.counts.failed_jobs, place.columns)
    yield _speed(reading.local.overview, reading.pace.rates)
    yield line(plain(_origin(reading.local), place.encoding), Style.FAINT)


def _troubles(health: Health, place: Place) -> Iterator[Line]:
    """At most on a quarter of the lines: the tables must be seen, too."""
    found = [plain(f"! {trouble.text}", place.encoding) for trouble in health.troubles]
    most = max(place.lines // 4, 1) if place.lines else len(found)
    for each in found[:most]:
        yield line(each, Style.WARNING)
    if left := len(found[most:]):
        yield line(f"! and {left} more: see queuepool status", Style.WARNING)


def _title(reading: Reading, now: float, place: Place) -> Line:
    name, about = plain(f"queuepool {reading.pool}", place.encoding), _about(reading.running, now)
    state = Span(reading.state, _STATES.get(reading.state, Style.WARNING))
    spans = [Span(f"{name}  ", Style.STRONG), state, Span(about)]
    clock = iso(now)
    gap = place.columns - sum(width(span.text) for span in spans) - len(clock)
    return [*spans, Span(f"{' ' * gap}{clock}", Style.FAINT)] if gap > 1 else spans


def _about(running: LocalPool | None, now: float) -> str:
    if running is None:
        return ""
    pool = running.overview
    try:
        up = now - datetime.fromisoformat(pool.since).timestamp()
    except ValueError:  # empty: the board has been overwritten
        up = None
    return f"  up {duration(up)}  master {pool.master}  generation {count(pool.generation)}"


def _workers(pool: PoolOverview, failed_jobs: int, columns: int) -> Line:
    """How many of the workers are busy, in numbers and as a bar where there is room for one."""
    wanted, busy = max(pool.workers, 0), pool.busy
    memory = sum(max(process.memory or 0, 0) for process in pool.processes)
    kept = f", failed jobs kept: {count(failed_jobs)}" if failed_jobs else ""
    text = f"{count(busy)} of {count(wanted)} workers busy, {megabytes(memory)}{kept}  "
    room = max(min(_BAR, columns - len(text) - 2), 0)
    full = round(room * min(busy / wanted, 1.0)) if wanted else 0
    style = Style.WARNING if busy >= wanted else Style.GOOD
    return [Span(f"{text}["), Span("|" * full, style), Span(f"{' ' * (room - full)}]")]


def _speed(pool: PoolOverview, rates: tuple[float, float, float] | None) -> Line:
    done, failed, released = rates or (None, None, None)
    return [
        Span(f"done {count(pool.done)} ({rate(done)})  "),
        Span(f"failed {count(pool.failed)} ({rate(failed)})", Style.WARNING if failed else Style.PLAIN),
        Span(f"  released {count(pool.released)} ({rate(released)})"),
    ]


def _origin(local: LocalPool) -> str:
    found = local.about
    words = {"store": found.store, "configuration": found.configuration, "user": found.user} if found else {}
    return "  ".join(f"{key} {value}" for key, value in words.items() if value)
