"""The record of a failed job in its plainest form, for a failed store that refuses it as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queuepool.stores.sql.encoding import ASCII, storable, storable_json

#: characters that also the oldest of Laravel's tables hold: of a name, and of a text
_MOST_OF_NAME, _MOST_OF_TEXT = 191, 30_000


def plainer(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record in ASCII, with a short text of its error; its payload says the same, whole, as it may be retried."""
    names = {name: storable(str(record[name]), ASCII)[:_MOST_OF_NAME] for name in ("id", "connection", "queue")}
    exception = storable(record["exception"], ASCII)
    if len(exception) > _MOST_OF_TEXT:
        exception = f"{exception[: _MOST_OF_TEXT // 2]}\n[...]\n{exception[-_MOST_OF_TEXT // 2 :]}"
    return {**record, **names, "exception": exception, "payload": storable_json(record["payload"], ASCII)}
