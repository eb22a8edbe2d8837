"""Write the tables into docs/autoscaling.md; it takes two minutes, and no server."""

from __future__ import annotations

from tests.bench.autoscale.report import HOSTS, MARKER, table, table_of_hosts
from tests.bench.rig import ROOT
from tests.bench.words import say


def main() -> None:
    page = ROOT / "docs/autoscaling.md"
    head = page.read_text().partition(MARKER)[0]
    lines = [*table(), "", HOSTS, "", *table_of_hosts()]
    page.write_text(f"{head}{MARKER}\n\n" + "\n".join(lines) + "\n")
    for line in lines:
        say(line)


if __name__ == "__main__":
    main()
