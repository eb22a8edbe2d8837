"""Graphs of flows as plain numbers, which a template draws as SVG: no script, and a table beside it has the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from queuepool.operating.flow_graph import FlowBox, FlowGraph
from queuepool.operating.flows import PUSHED, WORDS
from queuepool.payload.members import MemberOf

Facts = dict[str, Any]
#: of a box, in the drawing's own units; the room from one to the next; and that at the edge
WIDTH, HEIGHT, _BESIDE, _BELOW, _EDGE = 220, 46, 60, 18, 6
#: most characters of a job's name in a box
_MOST_NAME = 29
#: what the lines of each rule mean
_LINES = {"s": "after", "f": "if it fails", "a": "in any case", "added": "added"}


def drawn(flow_id: str, graph: FlowGraph) -> Facts:
    """A column for each step from the beginning, and in it the boxes one below the other."""
    rows = Counter[int]()
    places = list[tuple[int, int]]()
    for box in graph.boxes:
        places.append((_EDGE + box.layer * (WIDTH + _BESIDE), _EDGE + rows[box.layer] * (HEIGHT + _BELOW)))
        rows[box.layer] += 1
    boxes = [_box(flow_id, box, place) for box, place in zip(graph.boxes, places, strict=True)]
    lines = [{"rule": _LINES[rule], "path": _path(places, start, end)} for start, end, rule in graph.lines]
    width = max((x for x, _ in places), default=0) + WIDTH + _EDGE
    height = max((y for _, y in places), default=0) + HEIGHT + _EDGE
    size = {"width": width, "height": height, "box_width": WIDTH, "box_height": HEIGHT}
    return {**size, "boxes": boxes, "lines": lines, "left_out": graph.left_out}


def _box(flow_id: str, box: FlowBox, place: tuple[int, int]) -> Facts:
    count, state = box.letters.total(), WORDS.get(box.letter, box.letter)
    is_one = count == 1
    return {
        "x": place[0], "y": place[1], "state": state, "name": box.name, "label": _label(box, count),
        "number": box.number if is_one else None, "members": count, "words": state if is_one else _words(box, WORDS),
        "brief": state if is_one else _words(box, box.letter),
        "job": MemberOf(flow_id, box.number).job_id if is_one and box.letter in PUSHED else None,
    }  # fmt: skip


def _label(box: FlowBox, count: int) -> str:
    name = box.name or (f"member {box.number}" if count == 1 else "several jobs")
    short = name if len(name) <= _MOST_NAME else f"…{name[1 - _MOST_NAME :]}"  # what tells them apart is at the end
    return short if count == 1 else f"{count} × {short[-_MOST_NAME + 8 :]}"


def _words(box: FlowBox, letters: Iterable[str]) -> str:
    """How many are done, and how many have any of these letters, as the progress of a flow says it."""
    others = [f"{box.letters[letter]} {WORDS[letter]}" for letter in letters if letter != "d" and box.letters[letter]]
    return ", ".join([f"{box.letters['d']} of {box.letters.total()} done", *others])


def _path(places: Sequence[tuple[int, int]], start: int, end: int) -> str:
    """A curve from the right side of one box to the left side of another, which is in a later column."""
    (x, y), (to_x, to_y) = places[start], places[end]
    x, y, to_y, bend = x + WIDTH, y + HEIGHT // 2, to_y + HEIGHT // 2, _BESIDE // 2
    return f"M{x},{y} C{x + bend},{y} {to_x - bend},{to_y} {to_x},{to_y}"
