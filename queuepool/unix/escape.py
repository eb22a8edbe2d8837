"""Text for one line of a log or of a terminal: it may come from a payload, or be too long."""

from __future__ import annotations

from collections.abc import Sequence

#: what could break a line, command a terminal or deceive its reader: control characters, Unicode's own line ends,
#: direction marks and invisible characters (except the two joiners that scripts and emoji need)
_UNSAFE = [
    *range(32), *range(127, 160), 0x61C, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x2070),
    0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080),
]  # fmt: skip
_ESCAPES = {code: repr(chr(code))[1:-1] for code in _UNSAFE}


def escaped(text: str) -> str:
    """The text as one line that is safe for a terminal: each unsafe character becomes its Python escape."""
    return text.translate(_ESCAPES)


def counted(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: at most so many of the names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
