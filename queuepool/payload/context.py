"""Laravel's context in a payload: values that follow a request into its jobs, each serialized by PHP on its own.

    "illuminate:log:context": {"data": {NAME: serialize(VALUE)}, "hidden": {NAME: serialize(VALUE)}}

Source: Log/Context/Repository.php, dehydrate (11.x to 13.x).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TypeAlias

from queuepool.payload.php_values import PhpDataRefused, PhpValue

#: serialized values by name, in the parts ``data`` and ``hidden``
Texts: TypeAlias = "dict[str, dict[str, str]]"


#: most values of a context that the log shows, to keep its lines short
MOST_LOGGED = 64


class Context:
    """A payload's context, as received; its values are decoded on demand."""

    def __init__(self, received: object) -> None:
        self._received = received

    @property
    def data(self) -> dict[str, PhpValue]:
        """The values that Laravel also writes into its log."""
        return values_of(self._received, "data")

    @property
    def hidden(self) -> dict[str, PhpValue]:
        """The values that Laravel does not log."""
        return values_of(self._received, "hidden")


def values_of(context: object, part: str, most: int | None = None) -> dict[str, PhpValue]:
    """The values of one part of a context, ``data`` or ``hidden``, except those that cannot be read.

    ``most``: read only so many, the first ones.
    """
    from queuepool.payload.php_unserialize import parse  # imported here: programs that only push need no reader

    found: dict[str, PhpValue] = {}
    for name, text in islice(_texts_of(context, part).items(), most):
        try:
            found[name] = parse(text)
        except PhpDataRefused:
            continue
    return found


def texts_of(context: object) -> Texts:
    """Both parts as received, without what is not a serialized value."""
    return {part: _texts_of(context, part) for part in ("data", "hidden")}


def _texts_of(context: object, part: str) -> dict[str, str]:
    texts = context.get(part) if isinstance(context, Mapping) else None
    return {name: text for name, text in texts.items() if isinstance(text, str)} if isinstance(texts, dict) else {}
