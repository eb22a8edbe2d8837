"""Values in a text from a store, where anything may be; each raises ``ValueError`` for what is none."""

from __future__ import annotations

from math import isfinite
from typing import Any

_MAX_NAME, _MAX_COUNT = 200, 2**53


def name_in(value: Any) -> str:
    """The name of a job or a queue."""
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise ValueError("not a name")
    return value


def count_in(value: Any) -> int:
    """A number of things."""
    if type(value) is not int or not 0 <= value < _MAX_COUNT:
        raise ValueError("not a count")
    return value


def seconds_in(value: Any) -> float:
    """A time, or a duration."""
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise ValueError("not a time")
    return float(value)
