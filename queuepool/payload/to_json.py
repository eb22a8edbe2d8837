"""Writes values that JSON does not know as plain text and numbers, which PHP reads too, without their type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

T = TypeVar("T")


class OwnType(NamedTuple):
    """How an application's type is written to a payload and read from it."""

    to_json: Callable[[Any], object]
    from_json: Callable[[Any], object]


_own: dict[type, OwnType] = {}


def register_type(cls: type[T], *, to_json: Callable[[T], object], from_json: Callable[[Any], T]) -> None:
    """Allow values of your own type as arguments of jobs.

    ``to_json`` returns what the payload holds. In the worker, ``from_json`` turns that back into a value for an
    argument that is annotated with this type. Call this where the type is defined: producers and workers both need it.
    """
    _own[cls] = OwnType(to_json, from_json)


def own_type(cls: type) -> OwnType | None:
    """The registration of this type or of its nearest base; ``None`` if there is none."""
    return next((_own[base] for base in cls.__mro__ if base in _own), None) if _own else None


def as_json(value: Any) -> object:
    """A JSON value for one that ``json`` does not know. Raises ``TypeError`` if there is none."""
    own = own_type(type(value))
    if own:
        return own.to_json(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    if hasattr(value, "model_dump"):  # pydantic's, without importing it
        return value.model_dump(mode="json")
    return _of_the_library(value)


def _of_the_library(value: Any) -> object:
    from decimal import Decimal  # imported here: not needed at every start

    match value:
        case Enum():
            return value.value
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return _seconds_of(value)
        case Decimal() | UUID() | PurePath():
            return str(value)
        case set() | frozenset():
            return list(value)
        case Mapping():
            return dict(value)
    raise TypeError(f"no JSON for {_named(type(value))}{_hint(value)}")


def _seconds_of(value: timedelta) -> float:
    """Raises ``TypeError`` for the largest ``timedelta``, whose seconds as a float are beyond its range."""
    seconds = value.total_seconds()
    try:
        timedelta(seconds=seconds)
    except OverflowError:
        raise TypeError("a timedelta of 2.7 million years has no exact number of seconds") from None
    return int(seconds) if seconds.is_integer() else seconds


def _named(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _hint(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ": send text (base64), or where to find the bytes"
    return ": tell queuepool.register_type how to send it" if type(value).__module__ != "builtins" else ""
