"""Draws the bars of the documentation's front page from the first table of docs/benchmarks.md: scripts/docs runs it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bench.peers.chart import drawn

DOCS = Path(__file__).parents[3] / "docs"
#: the column that is drawn
COLUMN = "no-op, 2 workers (jobs/s)"


def front() -> str:
    """The chart: a bar for each queue that was measured."""
    table = re.split(r"(?m)^## Drained jobs a second$", (DOCS / "benchmarks.md").read_text())[1].split("\n\n")[2]
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    at = heads.index(COLUMN)
    values = {row[0]: float(row[at].partition(" ")[0].replace(",", "")) for row in rows}
    return drawn({f"Drained jobs a second: {COLUMN.removesuffix(' (jobs/s)')}, Redis": values})


if __name__ == "__main__":
    (DOCS / "front.svg").write_text(front())
