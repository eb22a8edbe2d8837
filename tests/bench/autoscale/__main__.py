"""Write the table into docs/autoscaling.md; it takes half a minute, and no server."""

from __future__ import annotations

from tests.bench.autoscale.report import MARKER, table
from tests.bench.rig import ROOT
from tests.bench.words import say


def main() -> None:
    page = ROOT / "docs/autoscaling.md"
    head = page.read_text().partition(MARKER)[0]
    lines = table()
    page.write_text(f"{head}{MARKER}\n\n" + "\n".join(lines) + "\n")
    for line in lines:
        say(line)


if __name__ == "__main__":
    main()
