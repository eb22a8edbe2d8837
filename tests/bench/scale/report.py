"""The report of scale: a table for each thing that grows, the curves, and what they say of the logarithm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.bench.scale.growth import Table, costs, growth, said
from tests.bench.scale.sizes import IDLE, REST, VOLUME, Scale

#: by what grows
Tables = Mapping[str, Table]


def written(tables: Tables, scales: Sequence[Scale], about: Sequence[str], picture: str) -> str:
    """Markdown; of what was not measured, nothing."""
    parts = ["# At scale", _INTRODUCTION, "\n".join(f"- {line}" for line in about)]
    parts += [statement(tables, scales), f"![What a step costs]({picture})"]
    for scale in scales:
        if tables.get(scale.title):
            parts += [f"## {scale.title.capitalize()}", scale.text, _grid(scale, tables[scale.title])]
    return "\n\n".join(parts) + "\n"


def statement(tables: Tables, scales: Sequence[Scale]) -> str:
    """Whether a step grows faster than the logarithm of the queue: as the figures have it."""
    logged = {scale.title: tables[scale.title] for scale in scales if scale.by_log and tables.get(scale.title)}
    grown = [one for title, table in logged.items() for one in growth(title, table)]
    if not grown:
        return "Nothing was measured that grows with the queue."
    sizes = next(iter(logged.values()))
    return said(grown, min(sizes), max(sizes))


def panels(tables: Tables, scales: Sequence[Scale]) -> dict[str, dict[str, dict[int, float]]]:
    """What each step costs, as so many times what it costs at the smallest size."""
    return {
        f"Cost against {scale.title}": _curves(scale, tables[scale.title])
        for scale in scales
        if tables.get(scale.title)
    }


def _curves(scale: Scale, table: Table) -> dict[str, dict[int, float]]:
    columns = [column for column in table[min(table)] if column not in (IDLE, REST, VOLUME)]
    curves = {column.rpartition(",")[0]: costs(table, column) for column in columns}
    if scale.by_log:
        curves["logarithm"] = {size: math.log(size) / math.log(min(table)) for size in table}
    return curves


def _grid(scale: Scale, table: Table) -> str:
    head = [scale.unit, *table[min(table)]]
    rows = [[f"{size:,}", *(_number(figure) for figure in row.values())] for size, row in table.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---:" for _ in head], *rows])


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}" if figure >= 1 else f"{figure:.2f}"


_INTRODUCTION = """\
Written by `scripts/bench --scale`: queuepool on a server of its own, on a unix socket. Steps are medians of a hundred
round trips of one client, of the least disturbed of some such bursts; rates are medians of a pool of two (unless the
table says another number) that drains no-op jobs, given to it all at once by a rename of their queue, between a tenth
and nine tenths of them. The curves are costs (of a rate, the time of one job), each as so many times what it is at the
smallest size."""
