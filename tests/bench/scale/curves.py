"""Growth curves, drawn as SVG: both axes by their logarithm, so that a straight line is a power."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

#: a curve: what it costs at each size, as so many times what it costs at the smallest
Curve = Mapping[int, float]
_WIDTH, _HEIGHT, _LEFT, _ACROSS, _TOP = 720, 250, 60, 380, 40
_COLOURS = ["#c30", "#369", "#593", "#a6a", "#c90", "#666", "#0aa"]
_STYLE = "text{font:12px sans-serif;fill:#333}.title{font-weight:bold}polyline{fill:none;stroke-width:2}"


def drawn(panels: Mapping[str, Mapping[str, Curve]]) -> str:
    """One panel for each title: a line for each name."""
    parts = [_panel(title, curves, number * _HEIGHT) for number, (title, curves) in enumerate(panels.items())]
    size = f'viewBox="0 0 {_WIDTH} {len(parts) * _HEIGHT}" width="{_WIDTH}" height="{len(parts) * _HEIGHT}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', f"<style>{_STYLE}</style>"]
    return "\n".join([*head, '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>\n"])


def _panel(title: str, curves: Mapping[str, Curve], top: int) -> str:
    sizes = sorted({size for curve in curves.values() for size in curve})
    values = [value for curve in curves.values() for value in curve.values()]
    across = _Axis(sizes[0], sizes[-1], _LEFT, _LEFT + _ACROSS)
    bottom = top + _HEIGHT - 30
    up = _Axis(min(values), max(*values, 2 * min(values)), bottom, top + _TOP)
    lines = [f'<text class="title" x="10" y="{top + 24}">{escape(title)}</text>', *_scale(across, up, sizes, bottom)]
    for number, (name, curve) in enumerate(curves.items()):
        lines.append(_line(name, curve, across, up, number, top))
    return "\n".join(lines)


def _scale(across: _Axis, up: _Axis, sizes: list[int], bottom: int) -> list[str]:
    ticks = [
        f'<text x="{across.at(size):.0f}" y="{bottom + 18}" text-anchor="middle">{size:,}</text>' for size in sizes
    ]
    marks = [f'<text x="{_LEFT - 12}" y="{up.at(end) + 4:.0f}" text-anchor="end">{end:.3g}×</text>' for end in up.ends]
    return [
        *ticks,
        *marks,
        f'<path d="M{_LEFT} {up.at(up.ends[1]):.0f}V{bottom}H{_LEFT + _ACROSS}" fill="none" stroke="#999"/>',
    ]


def _line(name: str, curve: Curve, across: _Axis, up: _Axis, number: int, top: int) -> str:
    colour, y = _COLOURS[number % len(_COLOURS)], top + _TOP + 18 * number
    points = " ".join(f"{across.at(size):.1f},{up.at(value):.1f}" for size, value in sorted(curve.items()))
    dashed = ' stroke-dasharray="4 4"' if name == "logarithm" else ""
    return (
        f'<polyline points="{points}" stroke="{colour}"{dashed}/>'
        f'<text x="{_LEFT + _ACROSS + 14}" y="{y + 4}" style="fill:{colour}">{escape(name)}</text>'
    )


class _Axis:
    """From one value to another, by the logarithm, on so many points of the picture."""

    def __init__(self, least: float, most: float, start: int, end: int) -> None:
        self.ends = (least, most)
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        least, most = self.ends
        return self._start + (self._end - self._start) * math.log(value / least) / math.log(most / least)
