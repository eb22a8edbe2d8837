"""Small faults at random places of the package, one in each layer: does the default run of the tests catch them?

Each is planted into a copy of the checkout, where the tests run until one of them fails.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.unit.test_architecture import LAYERS

ROOT = Path(__file__).parents[2]
#: the cheapest first; with all of them it is the default run
TURNS = (
    ["tests/unit"],
    ["tests/stores", "tests/testing", "tests/metrics"],
    ["tests/cli", "tests/contrib", "tests/faults", "tests/security", "tests/web"],
    ["tests/pool", "tests/laravel", "tests/model", "tests/chaos", "tests/bench", "tests/support", "tests/incidents"],
)
OPPOSITES = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Is: "is not",
    ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` at this place of a file becomes ``new``."""

    path: Path
    line: int
    start: int
    end: int
    new: str

    @property
    def lines(self) -> list[bytes]:
        return (ROOT / self.path).read_bytes().splitlines(keepends=True)

    def __str__(self) -> str:
        old = self.lines[self.line - 1]
        return f"{self.path}:{self.line}: {old[self.start : self.end].decode()} -> {self.new}"

    def write(self, folder: Path) -> None:
        lines = self.lines
        old = lines[self.line - 1]
        lines[self.line - 1] = old[: self.start] + self.new.encode() + old[self.end :]
        (folder / self.path).write_bytes(b"".join(lines))


@cache
def mutants_of(path: Path) -> list[Mutant]:
    return [*_mutants_of(path)]


def _mutants_of(path: Path) -> Iterator[Mutant]:
    """Every comparison turned round, ``and`` and ``or`` exchanged, and ``not`` dropped, in one line each."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if not isinstance(node, ast.expr) or node.lineno != node.end_lineno or node.end_col_offset is None:
            continue
        if new := _mutated(node):
            yield Mutant(path, node.lineno, node.col_offset, node.end_col_offset, f"({new})")


def _mutated(node: ast.expr) -> str:
    match node:
        case ast.Compare(left, [op], [right]):
            return f"{ast.unparse(left)} {OPPOSITES[type(op)]} {ast.unparse(right)}"
        case ast.BoolOp(op, values):
            return (" or " if isinstance(op, ast.And) else " and ").join(f"({ast.unparse(one)})" for one in values)
        case ast.UnaryOp(ast.Not(), operand):
            return ast.unparse(operand)
    return ""


def chosen(seed: int) -> list[Mutant]:
    """One of each layer of the architecture."""
    dice = random.Random(seed)
    found = []
    for layer in LAYERS:
        places = [path for name in layer.split() for path in _files(name)]
        if mutants := [mutant for path in places for mutant in mutants_of(path)]:
            found.append(dice.choice(mutants))
    return found


def _files(package: str) -> list[Path]:
    at = ROOT / "queuepool" / package
    files = sorted(at.rglob("*.py")) if at.is_dir() else [at.with_suffix(".py")]
    return [file.relative_to(ROOT) for file in files]


def catcher_of(mutant: Mutant) -> str:
    """The test that fails first; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="queuepool-mutant-") as folder:
        place = Path(folder) / "tree"
        shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".venv*", ".git", "build", "dist", ".*_cache"))
        mutant.write(place)
        return next(filter(None, (_failure(place, turn) for turn in TURNS)), "")


def _failure(place: Path, folders: list[str]) -> str:
    """The first test of these folders that fails in this copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-n", "4", "--dist", "loadfile", *folders]
    env = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=1800)
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0].partition(" - ")[0] if failed else done.stdout[-200:] + done.stderr[-200:]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="only say which they are")
    given = parser.parse_args()
    survivors = 0
    for mutant in chosen(given.seed):
        catcher = "" if given.list else catcher_of(mutant) or "SURVIVED"
        survivors += catcher == "SURVIVED"
        print(f"{mutant}\n    {catcher}", flush=True)
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
