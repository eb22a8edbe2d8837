"""Converters from a payload's JSON to the types of annotations; plain JSON types need none."""

from __future__ import annotations

import inspect
import sys
import typing
from collections import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from pathlib import PurePath
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Union
from uuid import UUID

from queuepool.payload.strict_json import OwnType, as_json, own_type

_LISTS: dict[Any, type] = {set: set, abc.Set: set, abc.MutableSet: set, frozenset: frozenset, tuple: tuple}
_KEPT_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable)
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)


def converter_of(hint: Any, *, at_door: bool = False) -> Converter | None:
    """A converter from JSON to a value of this annotation; ``None`` if the value stays as it is.

    ``at_door``: for a check before a push, which calls none of the application's code (no ``from_json``, validation or
    ``__init__``): that is for the worker.
    """
    hint = _bare(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType):
        return _one_of(inner, at_door)
    cls = origin or hint
    if not isinstance(cls, type) or cls is Any:
        return None
    if (read := reader_of(cls)) is not None:
        return left_alone if at_door and is_applications(cls) else read
    if is_dataclass(cls) or typing.is_typeddict(cls):
        return partial(_record, cls, at_door)
    return _of_container(cls, inner, at_door)


def _bare(hint: Any) -> Any:
    """The annotation without the wrappers that only type checkers use."""
    if isinstance(hint, InitVar):
        return _bare(hint.type)
    if typing.get_origin(hint) in (typing.Annotated, typing.Final, typing.ClassVar):
        return _bare(typing.get_args(hint)[0])
    meant = None if isinstance(hint, type) else getattr(hint, "__supertype__", getattr(hint, "__value__", None))
    return hint if meant is None else _bare(meant)  # a NewType, or an alias (type Name = ...)


def _of_container(cls: type, inner: Sequence[Any], at_door: bool) -> Converter | None:
    of = partial(converter_of, at_door=at_door)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        hints = hints_of(cls)
        return partial(_fixed, lambda items: cls(*items), [of(hints.get(name)) for name in cls._fields])
    if cls is tuple and inner and inner[-1] is not Ellipsis:
        return partial(_fixed, tuple, [*map(of, inner)])
    if cls in _OBJECTS:
        key, item = (key_of(inner[0], at_door), of(inner[1])) if inner else (None, None)
        return partial(_mapping, key, item) if key or item else None
    item = of(inner[0]) if inner else None
    if cls in _LISTS:
        return partial(_list, _LISTS[cls], item)
    return partial(_list, list, item) if cls in _KEPT_LISTS and item else None


def _one_of(members: Sequence[Any], at_door: bool) -> Converter | None:
    """A converter that takes the first member that fits, in the annotation's order."""
    rest = [(member, converter_of(member, at_door=at_door)) for member in members if member is not NoneType]
    if not any(convert for _, convert in rest):
        return None
    return partial(_first, rest, NoneType in members)


def _first(members: Sequence[tuple[Any, Converter | None]], optional: bool, value: Any) -> Any:
    if value is None and optional:
        return None
    for member, convert in members:
        if convert is None and _is_one(member, value):
            return value
        try:
            if convert:
                return convert(value)
        except Unreadable:
            if len(members) == 1:
                raise
    raise Unreadable(" or ".join(getattr(member, "__name__", str(member)) for member, _ in members), value)


def _is_one(plain: Any, value: object) -> bool:
    cls = typing.get_origin(plain) or plain
    if not isinstance(cls, type) or cls is Any:  # such as a Literal or a TypeVar
        return cls is not typing.Literal or value in typing.get_args(plain)
    return isinstance(value, (int, float) if cls is float else cls) and (cls is bool or not isinstance(value, bool))


def _record(cls: type, at_door: bool, value: Any) -> Any:
    if not isinstance(value, dict):
        raise Unreadable(f"an object for {cls.__qualname__}", value)
    convert = _fields(cls, at_door)
    made = {name: within(f".{name}", convert.get(name), item) for name, item in value.items()}
    try:
        return _takes(cls, made) if at_door else cls(**made)
    except TypeError as error:  # it names fields, not values
        raise Unreadable(f"one for {cls.__qualname__} ({error})", value) from error
    except ValueError as error:
        raise Unreadable(f"one that {cls.__qualname__} accepts", value) from error


def _takes(cls: type, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields, if they can make an object of this class. Raises ``TypeError`` if not."""
    if is_dataclass(cls):
        _signature(cls).bind(**fields)
    return fields


_signature = cache(inspect.signature)


@cache
def _fields(cls: type, at_door: bool) -> Mapping[str, Converter | None]:
    """Resolved at the first value, since a class may refer to itself."""
    return {name: converter_of(hint, at_door=at_door) for name, hint in hints_of(cls).items()}


def _list(make: Callable[[Any], Any], item: Converter | None, value: Any) -> Any:
    return make(within(f"[{at}]", item, one) for at, one in enumerate(_items(value)))


def _fixed(make: Callable[[Any], Any], items: Sequence[Converter | None], value: Any) -> Any:
    given = _items(value)
    if len(given) != len(items):
        raise Unreadable(f"one of {len(items)} items", value)
    return make([within(f"[{at}]", item, one) for at, (item, one) in enumerate(zip(items, given, strict=True))])


def _items(value: Any) -> list[Any]:
    if value == {}:  # Laravel's Lua script turns an empty list into this
        return []
    if not isinstance(value, list):
        raise Unreadable("a list", value)
    return value


def _mapping(key: Converter | None, item: Converter | None, value: Any) -> dict[Any, Any]:
    if value == []:  # PHP's empty array
        return {}
    if not isinstance(value, dict):
        raise Unreadable("an object", value)
    return {within(f".{name}", key, name): within(f".{name}", item, one) for name, one in value.items()}


def within(place: str, convert: Converter | None, value: Any) -> Any:
    """The converted value. Prepends ``place`` to the place that an ``Unreadable`` names."""
    try:
        return convert(value) if convert else value
    except Unreadable as problem:
        problem.place = place + problem.place
        raise


# Type hints of a job's function or class, with string annotations resolved.


def hints_of(target: Any) -> dict[str, Any]:
    """Hints by name, without those that cannot be resolved, such as names that only a type checker imports."""
    try:
        return typing.get_type_hints(target if isinstance(target, type) else _function_of(target))
    except Exception:  # noqa: BLE001 - an annotation can be any code; resolve one by one
        return {name: hint for names, known in _written(target) for name, hint in _resolved(names, known)}


def _written(target: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Unresolved annotations, each with the names they may refer to; a class comes after its bases."""
    if not isinstance(target, type):
        function = _function_of(target)
        yield _annotations(function), getattr(function, "__globals__", {})
        return
    for base in reversed(target.__mro__):
        yield _annotations(base), vars(sys.modules.get(base.__module__, SimpleNamespace()))


def _function_of(target: Any) -> Any:
    """The function that a call finally runs, beneath decorators and partials."""
    target = inspect.unwrap(target.func if isinstance(target, partial) else target)
    return target if inspect.isroutine(target) else type(target).__call__


def _annotations(owner: Any) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):  # 3.14 evaluates annotations lazily
        import annotationlib

        return annotationlib.get_annotations(owner, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(owner)


def _resolved(annotations: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, hint in annotations.items():
        try:
            yield name, typing.get_type_hints(SimpleNamespace(__annotations__={name: hint}), dict(known))[name]
        except Exception:  # noqa: BLE001 - as above
            continue


# Converters for single values from the text or number that stands for them in JSON.

Converter = Callable[[Any], Any]
_WORDS = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
#: for each type: the types it has in JSON, how it is read, and its name in errors; the first match counts
_SCALARS: tuple[tuple[type, tuple[type, ...], Callable[[Any, Any], object], str], ...] = (
    (datetime, (str,), lambda cls, text: cls.fromisoformat(text), "an ISO date and time"),
    (date, (str,), lambda cls, text: cls.fromisoformat(text), "an ISO date"),
    (time, (str,), lambda cls, text: cls.fromisoformat(text), "an ISO time"),
    (timedelta, (int, float), lambda cls, number: cls(seconds=number), "a number of seconds"),
    (Decimal, (str, int, float), lambda cls, number: cls(str(number)), "a decimal number, preferably a string"),
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
        return f"{self.place} is {self.found}, not {self.expected}"


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
    """Whether the application's code reads values of this type: a registered type, a pydantic model."""
    return own_type(cls) is not None or hasattr(cls, "model_validate")


def left_alone(value: Any) -> Any:
    """The value itself, in place of the application's code."""
    return value


def key_of(hint: Any, at_door: bool) -> Converter | None:
    """A converter for the keys of an object, which are texts in JSON; ``None`` if they stay as they are.

    ``at_door`` as for ``converter_of``.
    """
    if hint in (int, float):
        return partial(_scalar, hint, (str,), "a number in a string")
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
        pass  # no member has exactly this value, but one may look different in JSON
    for member in cls:  # such as one whose value is a tuple or a Decimal
        if type(value) is type(encoded := _encoded(member.value)) and value == encoded:
            return member
    raise Unreadable(f"the value of a {cls.__qualname__}", value)


def _encoded(value: Any) -> object:
    """What the encoder writes for this value."""
    if isinstance(value, (tuple, list)):
        return [_encoded(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, dict)) else as_json(value)
