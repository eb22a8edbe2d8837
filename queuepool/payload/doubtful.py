"""What JSON can write, and a worker would not read: keys that become one, and what is nested too deep."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from queuepool.errors import BadPayload, NotSendable
from queuepool.payload.strict_json import MAX_DEPTH, read_object

_PLAIN = frozenset((str, int, float, bool, type(None)))
_WORDS: Mapping[str, str] = MappingProxyType({
    "duplicate-key": "two keys of a dict are one in JSON, as 1 and '1' are",
    "too-deep": f"it is nested deeper than {MAX_DEPTH}",
})  # fmt: skip


def check_readable(value: object, raw: bytes) -> None:
    """Read the JSON of this value as a worker will, unless it is plain. Raises ``NotSendable``.

    A look at the keys of plain dicts and lists costs a tenth of their encoding, to read them as much as that.
    """
    try:
        if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH and _is_plain(value):
            return
    except RecursionError:  # for Python's limit: a worker reads deeper
        pass
    try:
        read_object(raw)
    except BadPayload as error:
        raise NotSendable(_WORDS.get(error.reason, f"a worker cannot read its JSON: {error.reason}")) from error


def _is_plain(value: object) -> bool:
    """Whether it is of JSON's own types, with keys that are texts; whatever has other types is not."""
    kind = type(value)
    if kind is dict:
        for key, inner in value.items():  # type: ignore[attr-defined]
            if type(key) is not str or (type(inner) not in _PLAIN and not _is_plain(inner)):
                return False
        return True
    if kind is list or kind is tuple:
        for inner in value:  # type: ignore[attr-defined]  # noqa: SIM110 - a generator would take half of the depth
            if type(inner) not in _PLAIN and not _is_plain(inner):
                return False
        return True
    return kind in _PLAIN
