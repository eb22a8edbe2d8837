"""A job's tags: words in its payload, as Horizon writes them and searches for them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

#: where a payload has them
TAGS = "tags"
#: most tags of a job, and most characters of one
_MOST, _LONGEST = 32, 128


def tags_in(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags of a payload with these fields, as far as they are texts and not too many; long ones are cut."""
    found = fields.get(TAGS)
    # PHP writes a list with a gap as an object.
    listed = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return tuple(tag[:_LONGEST] for tag in islice(listed, _MOST) if isinstance(tag, str))


def checked_tags(value: object) -> tuple[str, ...]:
    """The tags that a payload is to have. Raises ``ValueError``."""
    if not isinstance(value, (list, tuple)) or len(value) > _MOST:
        raise ValueError(f"tags cannot be {value!r}: they are a list of at most {_MOST} texts")
    for tag in value:
        if not isinstance(tag, str) or not 0 < len(tag) <= _LONGEST or not tag.isprintable():
            raise ValueError(f"tags: {tag!r} is not a text of 1 to {_LONGEST} printable characters")
    return tuple(value)
