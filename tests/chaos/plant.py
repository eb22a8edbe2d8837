"""A mutant: a fault written into a copy of the package, and short runs that must show it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from tests.chaos.plan import Plan
from tests.chaos.world import ROOT

QUICK = Plan(
    seconds=2.0, workers=2, remote=0, naps=20.0, nap=(0.05, 0.2), delayed=0.0, hostile=0.0, backlog=600, bulk=200,
    drain=4.0, settle=0.0, phase=(30.0, 30.0), only=("kill_workers",), seed=7, long=0.1,
    alerts=False, graphs=0.0, limits=0.0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plant:
    """``edits``: file, what stands there, what is to stand there instead."""

    rule: str
    edits: tuple[tuple[str, str, str], ...]
    plan: Plan = QUICK

    def write(self, folder: Path) -> Path:
        """A copy of the package with the fault in it; gives what goes to the head of the path."""
        # With its bytecode, which each process would have to make again; another process may be writing some.
        ignored = shutil.ignore_patterns("*.pyc.*", "*-pytest-*.pyc")
        shutil.copytree(ROOT / "queuepool", folder / "queuepool", ignore=ignored)
        assert not self.misfits
        for name, old, new in self.edits:
            path = folder / "queuepool" / name
            path.write_text(path.read_text().replace(old, new))
        return folder

    @property
    def misfits(self) -> list[tuple[str, str]]:
        """The edits, as file and text, whose place in the code is not there once."""
        return [(name, old) for name, old, _ in self.edits if 1 != (ROOT / "queuepool" / name).read_text().count(old)]


PEACE = replace(QUICK, only=("wrong_type",), with_kills=0.0, naps=0.0)
QUIET = replace(PEACE, rate=40.0, backlog=5, bulk=5, drain=8.0)
