"""A handler's arguments, according to its annotations: checked before a push, and converted from a payload's data."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queuepool.errors import BadPayload
from queuepool.jobs.from_json import Converter, converter_of, hints_of, within
from queuepool.jobs.registry import REGISTRY, Handler, Read, arguments_of
from queuepool.payload.envelope import dump
from queuepool.payload.php_values import PhpEnum, PhpObject

#: annotations that need no conversion
_PLAIN = (str, int, float, bool, type(None), object, Any, list, dict)
#: by the job's name: its function or class, and the reader of its arguments, if it needs one
_known: dict[str, tuple[Any, Read | None]] = {}
_log = logging.getLogger("queuepool")
_Parameter = inspect.Parameter


def check_values(name: str, data: object) -> None:
    """Raise ``TypeError`` for data that the annotations of this job do not accept, if the job is known here.

    None of the application's code is called: only the worker finds out what a registered type or a model accepts. Jobs
    without such annotations cost nothing.
    """
    handler = REGISTRY.known(name)
    read = _checker_of(handler) if handler else None
    if read is None:
        return
    try:
        args, kwargs = arguments_of(json.loads(dump({"data": data}))["data"])
    except BadPayload:
        return  # the push reports which argument it is
    try:
        read(args, kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _checker_of(handler: Handler) -> Read | None:
    target, read = _known.get(handler.name, (None, None))
    if target is not handler.target:
        target, read = _known[handler.name] = handler.target, _made(handler.target)
    return read


def _made(target: Any) -> Read | None:
    if all(hint in _PLAIN for hint in hints_of(target).values()):
        return None
    return door_reader_of(target)


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
