"""What ``bulk`` is given, and copies of arguments for awaited pushes.

A single call in place of a list is refused: its keys or letters would be taken for calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

#: types that can be iterated over but stand for one call
_ONE = (str, bytes, bytearray, Mapping)


class Several(NamedTuple):
    """What one ``bulk`` takes: a list of what is ``wanted``; ``fits`` checks an item."""

    bulk: str
    wanted: str
    fits: Callable[[Any], bool]

    def listed(self, given: Iterable[Any]) -> list[Any]:
        """What was given, as a list of unchecked items: quick, as it runs on the event loop. Raises ``TypeError``."""
        if isinstance(given, _ONE) or not hasattr(given, "__iter__"):
            raise TypeError(f"{self.bulk} takes a list of {self.wanted}, not {type(given).__name__}")
        return list(given)

    def checked(self, given: Iterable[Any]) -> list[Any]:
        """The list, each item checked. Raises ``TypeError``."""
        items = self.listed(given)
        for at, item in enumerate(items):
            if not self.fits(item):
                raise TypeError(
                    f"{self.bulk} takes a list of {self.wanted}, but [{at}] is of type {type(item).__name__}"
                )
        return items


def calls_of(name: str) -> Several:
    """The calls of the job function of this name."""
    return Several(f"{name}: bulk", "dicts or lists of arguments", _is_call)


def objects_of(name: str, kind: type) -> Several:
    """The objects of this ``Job`` class."""
    return Several(f"{name}: bulk", f"{kind.__qualname__} objects", lambda job: isinstance(job, kind))


def as_in_json(call: Any) -> object:
    """One of a job's calls as its worker will read it: JSON turns a tuple into a list."""
    if call is None or isinstance(call, (dict, list)):
        return call
    return dict(call) if isinstance(call, Mapping) else list(call)


def _is_call(call: object) -> bool:
    return call is None or isinstance(call, (dict, list, tuple, Mapping))


# Copies of arguments, so that an awaited push stores them as they were when it began.

#: the types of most values; other values are copied one by one
_PLAIN = frozenset((str, int, float, bool, type(None)))


def captured(value: Any) -> Any:
    """A copy of nested lists, dicts, tuples and sets; objects of other types are shared with the caller.

    It runs on the event loop and takes about 0.4 µs a value: long texts are not copied.
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
