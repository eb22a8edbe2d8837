"""A handler's arguments, converted from a payload's data as its annotations say."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queuepool.jobs.from_json import Converter, converter_of, hints_of, within
from queuepool.payload.php_values import PhpEnum, PhpObject

_log = logging.getLogger("queuepool")
_Parameter = inspect.Parameter


@dataclass(frozen=True, slots=True)
class Reader:
    """Converts the arguments of one handler; those without a converter stay as they are.

    A call returns positional and keyword arguments. Raises ``TypeError`` for a value that does not fit.
    """

    #: names of the positional parameters, in order
    places: Sequence[str]
    converters: Mapping[str, Converter]
    #: converters for ``*args`` and ``**kwargs``
    more: Converter | None
    others: Converter | None

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        positional = [
            self._read(name, self.converters.get(name), one) for name, one in zip(self.places, args, strict=False)
        ]
        positional += [self._read(str(at), self.more, args[at]) for at in range(len(self.places), len(args))]
        named = {name: self._read(name, self.converters.get(name, self.others), one) for name, one in kwargs.items()}
        return positional, named

    def _read(self, name: str, convert: Converter | None, value: Any) -> Any:
        if isinstance(value, (PhpObject, PhpEnum)):  # from an object job: its handler expects it
            return value
        return within(f"argument {name!r}", convert, value)


def door_reader_of(target: Any) -> Reader | None:
    """A reader that checks arguments before a push; it calls none of the application's code."""
    try:
        return _reader_with(target, hints_of(target), at_door=True)
    except Exception:  # noqa: BLE001 - annotations are user code; the worker reports what it cannot read
        return None


def reader_of(name: str, target: Any) -> Reader | None:
    """A reader for the arguments of this function or class; ``None`` if all of them stay as they are."""
    try:
        return _reader_of(name, target)
    except Exception as error:  # noqa: BLE001 - annotations are user code; a job can run without them
        _log.warning("%s: annotations cannot be evaluated (%r); arguments are passed as plain JSON values", name, error)
        return None


def _reader_of(name: str, target: Any) -> Reader | None:
    parameters, hints = inspect.signature(target).parameters, hints_of(target)
    for unknown in [one for one, it in parameters.items() if it.annotation is not it.empty and one not in hints]:
        why = f"the annotation of {unknown!r} cannot be resolved here"
        _log.warning("%s: %s; the argument is passed as a plain JSON value", name, why)
    return _reader_with(target, hints, at_door=False)


def _reader_with(target: Any, hints: Mapping[str, Any], *, at_door: bool) -> Reader | None:
    parameters = inspect.signature(target).parameters
    made = {one: convert for one in parameters if (convert := converter_of(hints.get(one), at_door=at_door))}
    if not made:
        return None
    kinds = {parameter.kind: one for one, parameter in parameters.items()}
    more, others = kinds.get(_Parameter.VAR_POSITIONAL, ""), kinds.get(_Parameter.VAR_KEYWORD, "")
    by_place = (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)
    places = [one for one, parameter in parameters.items() if parameter.kind in by_place]
    own = {one: convert for one, convert in made.items() if one not in (more, others)}
    return Reader(places, own, made.get(more), made.get(others))
