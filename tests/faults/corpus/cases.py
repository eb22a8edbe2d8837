"""The cases of a corpus as parameters of a test, each marked with its entry of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest


def case(name: str, *values: object) -> Any:
    """A parameter set for the case ``B084 forks``; of the name alone, unless ``values`` are given."""
    entry, words = re.fullmatch(r"(?:(B\d{3}) )?(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    return pytest.param(*(values or [name]), id=words, marks=[pytest.mark.bad_input(entry)] if entry else [])


def cases(names: Iterable[str]) -> list[Any]:
    """A parameter set for each name."""
    return [case(name) for name in names]
