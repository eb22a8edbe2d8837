"""``@on_push``: functions that add top-level keys to every payload, like Laravel's ``createPayloadUsing``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from queuepool.errors import BadPayload
from queuepool.payload.envelope import OBJECT_JOB, RESERVED, dump

Hook = Callable[[str, str, Mapping[str, Any]], Mapping[str, object] | None]
H = TypeVar("H", bound=Hook)
#: returns the additional keys for a payload with these fields
Stamp = Callable[[Mapping[str, object]], Mapping[str, object]]
#: most bytes, as JSON, of all keys that the hooks add to a payload
MAX_BYTES = 8192
#: in order of registration; a later one's key wins
_HOOKS: list[Hook] = []


def on_push(hook: H) -> H:
    """Register a function that is called for each job that this process pushes, except by ``push_raw``.

    It gets the job's name, the queue, and the payload's fields so far, whose data is not yet encrypted. It returns
    further top-level keys with JSON values, or ``None``; the job reads them in ``current().extra``. They are signed
    with the rest. If it raises, the dispatch raises the same and nothing is pushed. The dispatch also raises
    ``TypeError`` if it returns anything else, and ``ValueError`` for a key of Laravel's or queuepool's, a value that
    JSON cannot hold, or more than 8 KiB from all hooks. Raises ``TypeError`` if it is not callable.
    """
    if not callable(hook):
        raise TypeError(f"@on_push takes a function, not {hook!r}")
    _HOOKS.append(hook)
    return hook


def stamper(queue: str) -> Stamp | None:
    """Returns the additional keys of payloads for this queue; ``None`` without hooks."""
    return partial(_keys, queue) if _HOOKS else None


def _keys(queue: str, fields: Mapping[str, object]) -> dict[str, object]:
    name = str(fields["displayName" if fields["job"] == OBJECT_JOB else "job"])
    found: dict[str, object] = {}
    for hook in _HOOKS:
        found |= _given(hook, name, queue, MappingProxyType({**fields, **found}))
    if found and (size := len(dump(found))) > MAX_BYTES:
        raise ValueError(f"@on_push: {', '.join(found)} take {size} bytes, at most {MAX_BYTES} are allowed in all")
    return found


def _given(hook: Hook, name: str, queue: str, fields: Mapping[str, object]) -> Mapping[str, object]:
    given, called = hook(name, queue, fields), f"@on_push {getattr(hook, '__qualname__', hook)}"
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{called} returned {type(given).__name__}: it must return a mapping or None")
    for key, value in given.items():
        _check(called, key, value)
    return given


def _check(called: str, key: object, value: object) -> None:
    if not isinstance(key, str) or not key:
        raise ValueError(f"{called}: {key!r} is not a key: a key must be a non-empty string")
    if key in RESERVED or key.startswith(("illuminate:", "qp")):
        raise ValueError(f"{called}: the key {key!r} is Laravel's or queuepool's own")
    try:
        dump({key: value})
    except BadPayload as error:
        raise ValueError(f"{called}: the value of {key!r}: {error}") from error
