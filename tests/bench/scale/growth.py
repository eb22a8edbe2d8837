"""How much dearer a step became, and whether that is more than the logarithm of what is there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

#: what a busy machine may add
_NOISE = 1.25
#: by size, and at each size by column
Table = Mapping[int, Mapping[str, float]]


class Growth(NamedTuple):
    """Of one column of one table, from its smallest size to its largest: the step's, and the logarithm's."""

    what: str
    times: float
    log: float

    @property
    def is_too_fast(self) -> bool:
        return self.times > self.log * _NOISE


def costs(table: Table, column: str) -> dict[int, float]:
    """What a step takes at each size, as so many times what it takes at the smallest; a rate is jobs in a time."""
    figures = {size: row[column] for size, row in table.items()}
    if column.endswith("/s"):
        figures = {size: 1 / rate for size, rate in figures.items()}
    first = figures[min(figures)]
    return {size: figure / first for size, figure in figures.items()}


def growth(title: str, table: Table) -> list[Growth]:
    least, most = min(table), max(table)
    log = math.log(most) / math.log(least)
    return [Growth(f"{title}: {column}", costs(table, column)[most], log) for column in table[least]]


def said(all_growth: list[Growth], least: int, most: int) -> str:
    """A statement that the figures make."""
    fast = [one for one in all_growth if one.is_too_fast]
    worst = max(all_growth, key=lambda one: one.times)
    facts = (
        f"from {least:,} to {most:,}, its logarithm grows {worst.log:.2f} times; "
        f"what grows most is {worst.what}, {worst.times:.2f} times"
    )
    if not fast:
        return f"No step grows faster than the logarithm of the queue: {facts}."
    listed = "; ".join(f"{one.what} {one.times:.2f} times" for one in fast)
    return (
        f"**Some steps grow faster than the logarithm of the queue**: {facts}. "
        f"By more than {_NOISE - 1:.0%} faster: {listed}."
    )
