"""Converters for single values from the text or number that stands for them in JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any
from uuid import UUID

from queuepool.payload.to_json import OwnType, as_json, own_type

Converter = Callable[[Any], Any]

_WORDS = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
#: for each type: the types it has in JSON, how it is read, and its name in errors; the first match counts
_SCALARS: tuple[tuple[type, tuple[type, ...], Callable[[Any, Any], object], str], ...] = (
    (datetime, (str,), lambda cls, text: cls.fromisoformat(text), "an ISO date and time"),
    (date, (str,), lambda cls, text: cls.fromisoformat(text), "an ISO date"),
    (time, (str,), lambda cls, text: cls.fromisoformat(text), "an ISO time"),
    (timedelta, (int, float), lambda cls, number: cls(seconds=number), "a number of seconds"),
    (Decimal, (str, int, float), lambda cls, number: cls(str(number)), "a decimal number, best as a text"),
    (UUID, (str,), lambda cls, text: cls(text), "a UUID"),
    (PurePath, (str,), lambda cls, text: cls(text), "a path"),
)


class Unreadable(TypeError):
    """A value that does not fit its annotation. Names the types and the place, not the value: it may be secret."""

    def __init__(self, expected: str, value: object) -> None:
        super().__init__(expected)
        self.found = "null" if value is None else _WORDS.get(type(value), type(value).__name__)
        self.expected = expected
        self.place = ""

    def __str__(self) -> str:
        return f"{self.place} is {self.found}, and not {self.expected}"


def reader_of(cls: type) -> Converter | None:
    """A converter for values of this type; ``None`` for JSON's own types and for unknown ones."""
    if own := own_type(cls):
        return partial(_converted, cls, own)
    if hasattr(cls, "model_validate"):  # a pydantic model
        return partial(_converted, cls, OwnType(as_json, cls.model_validate))
    if issubclass(cls, Enum):
        return partial(_enum_member, cls)
    for base, kinds, read, expected in _SCALARS:
        if issubclass(cls, base):
            return partial(_scalar, partial(read, cls), kinds, expected)
    return None


def is_applications(cls: type) -> bool:
    """Whether values of this type are read by code of the application's: a registered type, a pydantic model."""
    return own_type(cls) is not None or hasattr(cls, "model_validate")


def left_alone(value: Any) -> Any:
    """In place of the application's code."""
    return value


def key_of(hint: Any, at_door: bool) -> Converter | None:
    """A converter for the keys of an object, which are texts in JSON; ``None`` if they stay as they are.

    ``at_door`` as for ``converter_of``.
    """
    if hint in (int, float):
        return partial(_scalar, hint, (str,), "a number in a text")
    if not isinstance(hint, type):
        return None
    return left_alone if at_door and is_applications(hint) else reader_of(hint)


def _converted(cls: type, own: OwnType, value: Any) -> Any:
    try:
        return own.from_json(value)
    except Exception as error:  # application code: whatever it raises, the value does not fit
        raise Unreadable(f"what {cls.__qualname__} is made from", value) from error


def _scalar(read: Converter, kinds: tuple[type, ...], expected: str, value: Any) -> Any:
    try:
        if isinstance(value, kinds) and not isinstance(value, bool):
            return read(value)
    except (ValueError, ArithmeticError):
        pass  # reported below, without the value
    raise Unreadable(expected, value)


def _enum_member(cls: type[Enum], value: Any) -> Enum:
    try:
        if not isinstance(value, bool):  # true is 1 in Python
            return cls(value)
    except ValueError:
        pass  # no member has exactly this value, but JSON may have changed a member's
    for member in cls:  # such as a tuple or a Decimal
        if type(value) is type(encoded := _encoded(member.value)) and value == encoded:
            return member
    raise Unreadable(f"the value of a {cls.__qualname__}", value)


def _encoded(value: Any) -> object:
    """What the encoder writes for this value."""
    if isinstance(value, (tuple, list)):
        return [_encoded(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, dict)) else as_json(value)
