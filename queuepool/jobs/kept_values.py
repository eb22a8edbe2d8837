"""What a step or a cursor keeps, as text: names with their keys, and values as JSON."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from queuepool.errors import BadArguments
from queuepool.jobs.from_json import Converter, Unreadable, converter_of, hints_of, within
from queuepool.payload.kept_step import CURSOR, MOST_NAME, MOST_PLACE
from queuepool.payload.strict_json import as_json

#: keys whose text is the same in each attempt
_KEYS = (str, int, float, Decimal, UUID, date, time, timedelta, PurePath)


def full_name(name: str, key: object) -> str:
    """The name under which a step is kept. Raises ``ValueError``, and ``TypeError`` for a key without a fixed text."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a step needs a name, not {name!r}")
    if name.startswith(CURSOR):
        raise ValueError(f"the name {name!r} begins with {CURSOR}, as those of cursors do where they are kept")
    full = name if key is None else f"{name}:{_text_of(name, key)}"
    try:
        size = len(full.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the name {full!r} cannot be written as UTF-8") from None
    if size > MOST_NAME:
        raise ValueError(f"the name {full[:40]!r}... has {size} bytes with its key, at most {MOST_NAME}")
    return full


def _text_of(name: str, key: object) -> str:
    plain = key.value if isinstance(key, Enum) else key
    if not isinstance(plain, _KEYS):
        kind = type(key).__qualname__
        raise TypeError(f"step {name!r}: its key must be text, a number, a UUID, a date or a time, not of type {kind}")
    return f"{plain}"


def result_of(name: str, value: object) -> bytes:
    """What a step has returned, as JSON. Raises ``TypeError`` and ``ValueError``."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"step {name!r}: its function returns what is awaited: give it a coroutine function")
    return _json(f"the result of step {name!r}", value)


def place_of(name: str, key: object) -> bytes:
    """The key of a cursor's row, as JSON. Raises ``TypeError`` and ``ValueError``."""
    if key is None:
        raise ValueError(f"cursor {name!r}: the key of a row cannot be None, which means that no row is done")
    raw = _json(f"the key of cursor {name!r}", key)
    if len(raw) > MOST_PLACE:
        raise ValueError(f"cursor {name!r}: its key has {len(raw)} bytes as JSON, at most {MOST_PLACE}")
    return raw


def _json(what: str, value: object) -> bytes:
    """In ASCII."""
    try:
        return json.dumps(value, allow_nan=False, default=as_json, separators=(",", ":")).encode()
    except TypeError as error:
        raise TypeError(f"{what} cannot be kept: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} cannot be kept: {error}") from error


def returned(job_id: str, name: str, raw: bytes, function: Callable[..., Any]) -> Any:
    """What the step of this name returns, as its function is annotated. Raises ``BadArguments``."""
    hint = function if isinstance(function, type) else hints_of(function).get("return")
    whose = f"{getattr(function, '__qualname__', function)} returns"
    return _value(job_id, name, raw, converter_of(hint), whose)


def row_key(job_id: str, name: str, raw: bytes, rows_after: Callable[..., Any]) -> Any:
    """The key of the last row that is done, as the argument is annotated. Raises ``BadArguments``."""
    return _value(job_id, name, raw, converter_of(_hint_of_first(rows_after)), "rows_after takes")


def position(job_id: str, name: str, raw: bytes) -> int:
    """How many rows are done. Raises ``BadArguments``."""
    count = _value(job_id, name, raw, None, "a cursor without a key needs")
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        return count
    raise BadArguments(f"step {name!r}", f"what is kept is not a number of rows: {_remedy(job_id, name)}")


def _hint_of_first(function: Callable[..., Any]) -> Any:
    """The annotation of the first argument that is not bound yet; ``None`` if there is none."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (ValueError, TypeError):  # of a function in C
        return None
    first = next(iter(parameters.values()), None)
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        return None
    return hints_of(function).get(first.name)


def _value(job_id: str, name: str, raw: bytes, convert: Converter | None, whose: str) -> Any:
    """``whose``: who says what it should be."""
    try:
        return within("what is kept", convert, json.loads(raw))
    except (Unreadable, ValueError) as problem:
        raise BadArguments(f"step {name!r}", f"{problem}, which {whose}: {_remedy(job_id, name)}") from problem


def _remedy(job_id: str, name: str) -> str:
    return f"`queuepool step forget {job_id} {name}` lets it run again"
