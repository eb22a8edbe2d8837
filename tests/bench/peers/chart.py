"""A bar chart, drawn as SVG."""

from __future__ import annotations

from html import escape

_WIDTH, _LABEL, _BAR, _ROW, _TITLE = 720, 170, 400, 22, 40


def drawn(panels: dict[str, dict[str, float]]) -> str:
    """One panel for each title: a bar for each name, the longest for the greatest value of its panel."""
    parts, top = [], 0
    for title, values in panels.items():
        parts.append(_panel(title, values, top))
        top += _TITLE + _ROW * len(values) + 10
    style = "text{font:13px sans-serif;fill:#333}.title{font-weight:bold}.bar{fill:#9ab}.ours{fill:#c30}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}">'
    return "\n".join(
        [head, f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>\n"]
    )


def _panel(title: str, values: dict[str, float], top: int) -> str:
    lines = [f'<text class="title" x="10" y="{top + 24}">{escape(title)}</text>']
    greatest = max(values.values(), default=1.0)
    for row, (name, value) in enumerate(sorted(values.items(), key=lambda item: -item[1])):
        lines.append(_bar(name, value, value / greatest, top + _TITLE + row * _ROW))
    return "\n".join(lines)


def _bar(name: str, value: float, share: float, y: int) -> str:
    length = max(1.0, _BAR * share)
    kind = "ours" if name == "queuepool" else "bar"
    return (
        f'<text x="{_LABEL - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
        f'<rect class="{kind}" x="{_LABEL}" y="{y + 2}" width="{length:.1f}" height="{_ROW - 6}"/>'
        f'<text x="{_LABEL + length + 6:.1f}" y="{y + 14}">{value:,.0f}</text>'
    )
