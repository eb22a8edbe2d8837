"""No test imports most of these modules: only who measures would miss a name that was moved."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("queuepool", "tests")


@cache
def words_of(module: str) -> set[str]:
    """What a module says; of a package also the names of its modules."""
    place = ROOT / module.replace(".", "/")
    if not place.is_dir():
        return {*re.findall(r"\w+", place.with_suffix(".py").read_text())}
    return {*re.findall(r"\w+", (place / "__init__.py").read_text()), *(file.stem for file in place.iterdir())}


def taken() -> Iterator[tuple[str, str, str]]:
    """The file of a benchmark, and a name that it takes from one of our modules."""
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in OURS:
                yield from ((path.name, node.module, alias.name) for alias in node.names)


def test_what_a_benchmark_imports_is_there():
    assert [] == [(file, module, name) for file, module, name in taken() if name not in words_of(module)]
