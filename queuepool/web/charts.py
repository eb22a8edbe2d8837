"""Charts as plain numbers, which templates draw as SVG: no script, and every value also in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Facts = dict[str, Any]
#: the drawing's size, in its own units, and the room for its labels
WIDTH, HEIGHT = 720.0, 120.0
#: what is stacked, from the ground up, by what a bucket calls it
_STACKED = ("done", "released", "failed")
#: the events that are marked: a worker that is replaced after so many jobs explains nothing
_MARKED = ("restart", "store_lost", "crash", "killed", "timeout", "memory")


def throughput(buckets: Sequence[Mapping[str, Any]]) -> Facts:
    """How many attempts ended, by how they ended: a bar for each bucket. (``lost`` ones are among the others.)"""
    most = max((sum(one[kind] for kind in _STACKED) for one in buckets), default=0)
    bars = [bar for at, one in enumerate(buckets) for bar in _stack(at, len(buckets), one, most)]
    return {"kind": "bars", "title": "Attempts that ended", "bars": bars, "top": most, **_frame(buckets)}


def line(buckets: Sequence[Mapping[str, Any]], title: str, values: Sequence[float | None], unit: str) -> Facts:
    """One value over time; it is broken where there is none."""
    most = max((value for value in values if value is not None), default=0.0)
    parts, points = list[list[str]](), list[str]()
    for at, value in enumerate(values):
        if value is None:
            parts, points = [*parts, points], []
        else:
            points.append(f"{_x(at + 0.5, len(values)):.1f},{_y(value, most):.1f}")
    strokes = [" ".join(one * 2 if len(one) == 1 else one) for one in (*parts, points) if one]
    return {"kind": "line", "title": title, "strokes": strokes, "top": most, "unit": unit, **_frame(buckets)}


def _stack(at: int, count: int, bucket: Mapping[str, Any], most: int) -> list[Facts]:
    found, below, left, right = list[Facts](), 0, _x(at, count), _x(at + 1, count)
    for kind in _STACKED:
        if value := bucket[kind]:
            top, bottom = _y(below + value, most), _y(below, most)
            place = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{max(right - left - 0.6, 0.6):.1f}"}
            found.append({**place, "height": f"{bottom - top:.1f}", "kind": kind, "value": value, "at": bucket["at"]})
            below += value
    return found


def _frame(buckets: Sequence[Mapping[str, Any]]) -> Facts:
    ends = {"from": buckets[0]["at"], "to": buckets[-1]["at"]} if buckets else {"from": None, "to": None}
    return {"width": WIDTH, "height": HEIGHT, **ends, "marks": _marks(buckets)}


def _marks(buckets: Sequence[Mapping[str, Any]]) -> list[Facts]:
    """Where something happened that explains the rest."""
    known = [
        (at, bucket["at"], [one for one in _MARKED if one in bucket["events"]]) for at, bucket in enumerate(buckets)
    ]
    return [
        {"x": f"{_x(at + 0.5, len(buckets)):.1f}", "words": ", ".join(events), "at": moment}
        for at, moment, events in known
        if events
    ]


def _x(at: float, count: int) -> float:
    return WIDTH * at / max(count, 1)


def _y(value: float, most: float) -> float:
    return HEIGHT - HEIGHT * value / most if most else HEIGHT
