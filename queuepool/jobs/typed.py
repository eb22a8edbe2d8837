"""Checks arguments before a push, as a worker will read them by the handler's annotations."""

from __future__ import annotations

import json
from typing import Any

from queuepool.errors import BadPayload
from queuepool.jobs.from_json import hints_of
from queuepool.jobs.registry import REGISTRY, Handler, Read, arguments_of
from queuepool.payload.envelope import dump

#: annotations that need no conversion, so nothing is imported for them
_PLAIN = (str, int, float, bool, type(None), object, Any, list, dict)
#: by the job's name: its function or class, and the reader of its arguments, if it needs one
_known: dict[str, tuple[Any, Read | None]] = {}


def check_values(name: str, data: object) -> None:
    """Raise ``TypeError`` for data that the annotations of this job do not accept, if the job is known here.

    None of the application's code is called: only the worker finds out what a registered type or a model accepts. Jobs
    without such annotations cost nothing.
    """
    handler = REGISTRY.known(name)
    read = _reader_of(handler) if handler else None
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


def _reader_of(handler: Handler) -> Read | None:
    target, read = _known.get(handler.name, (None, None))
    if target is not handler.target:
        target, read = _known[handler.name] = handler.target, _made(handler.target)
    return read


def _made(target: Any) -> Read | None:
    if all(hint in _PLAIN for hint in hints_of(target).values()):
        return None
    from queuepool.jobs.arguments import door_reader_of  # imported here: slow, and many jobs need no more than JSON

    return door_reader_of(target)
