"""Type hints of a job's function or class, with string annotations resolved."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any


def hints_of(target: Any) -> dict[str, Any]:
    """Hints by name, without those that cannot be resolved, such as names that only a type checker imports."""
    try:
        return typing.get_type_hints(target if isinstance(target, type) else _function_of(target))
    except Exception:  # noqa: BLE001 - an annotation can be any code; resolve one by one
        return {name: hint for names, known in _written(target) for name, hint in _resolved(names, known)}


def _written(target: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Unresolved annotations, each with the names that they may use; a class comes after its bases."""
    if not isinstance(target, type):
        function = _function_of(target)
        yield _annotations(function), getattr(function, "__globals__", {})
        return
    for base in reversed(target.__mro__):
        yield _annotations(base), vars(sys.modules.get(base.__module__, SimpleNamespace()))


def _function_of(target: Any) -> Any:
    """The function that a call runs in the end, under decorators and partials."""
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
