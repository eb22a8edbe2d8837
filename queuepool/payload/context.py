"""Laravel's context in a payload: values that follow a request into its jobs, each serialized by PHP on its own.

    "illuminate:log:context": {"data": {NAME: serialize(VALUE)}, "hidden": {NAME: serialize(VALUE)}}

Source: Log/Context/Repository.php, dehydrate (11.x to 13.x).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from queuepool.payload.php_unserialize import PhpDataRefused, PhpValue, parse

#: serialized values by name, in the parts ``data`` and ``hidden``
Texts: TypeAlias = "dict[str, dict[str, str]]"

#: of a job's own unique lock. A job that it dispatches must not have them, since it would release that lock.
#: Source: Foundation/Bus/PendingDispatch.php, addUniqueJobInformationToContext (11.39, 13.24)
_OWN = frozenset(("laravel_unique_job_cache_store", "laravel_unique_job_key", "laravel_unique_job_lock_owner"))


class Context:
    """A payload's context, as received; its values are read when they are asked for."""

    def __init__(self, received: object) -> None:
        self._received = received

    @property
    def data(self) -> dict[str, PhpValue]:
        """The values that Laravel also writes into its log."""
        return values_of(self._received, "data")

    @property
    def hidden(self) -> dict[str, PhpValue]:
        """The values that it does not log."""
        return values_of(self._received, "hidden")


def values_of(context: object, part: str) -> dict[str, PhpValue]:
    """The values of one part of a context, ``data`` or ``hidden``; those that cannot be read are left out."""
    found: dict[str, PhpValue] = {}
    for name, text in _texts_of(context, part).items():
        try:
            found[name] = parse(text)
        except PhpDataRefused:
            continue
    return found


def passed_on(context: object) -> Texts:
    """The parts of a job's context that the jobs which it dispatches get too, as they stand."""
    hidden = _texts_of(context, "hidden")
    return {"data": _texts_of(context, "data"), "hidden": {key: hidden[key] for key in hidden.keys() - _OWN}}


def _texts_of(context: object, part: str) -> dict[str, str]:
    texts = context.get(part) if isinstance(context, Mapping) else None
    return {name: text for name, text in texts.items() if isinstance(text, str)} if isinstance(texts, dict) else {}
