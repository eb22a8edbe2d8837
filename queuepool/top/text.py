"""Text of a known width on a terminal: whatever a job has written on the board, it fills its columns and no more."""

from __future__ import annotations

from unicodedata import category, combining, east_asian_width, normalize

from queuepool.unix.escape import escaped

#: characters of a text that are looked at; no field of the board is longer
_LONGEST = 3000
#: variation selectors: some terminals draw the character before them twice as wide
_SELECTORS = range(0xFE00, 0xFE10)
#: vowels and final consonants of Hangul, drawn into the syllable before them
_JOINED = (*range(0x1160, 0x1200), *range(0xD7B0, 0xD800))
_CUT = "~"


def plain(text: str, encoding: str = "utf-8") -> str:
    """The text without characters that could move the cursor, or that ``encoding`` does not have: these are escaped."""
    if text.isascii() and text.isprintable():
        return text[:_LONGEST]
    shown = "".join(map(_shown, normalize("NFC", escaped(text[:_LONGEST]))))
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _shown(letter: str) -> str:
    if ord(letter) in _SELECTORS:
        return ""
    return letter if letter.isprintable() else ascii(letter)[1:-1]


def width(text: str) -> int:
    """How many columns a text from ``plain`` takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(letter: str) -> int:
    if combining(letter) or category(letter) in ("Mn", "Me") or ord(letter) in _JOINED:
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """A text from ``plain`` in at most ``columns`` columns; ``~`` at its end stands for the rest."""
    if len(text) <= columns and text.isascii():
        return text
    if width(text) <= columns:
        return _few_marks(text)
    return f"{_begin(text, columns - 1)}{_CUT}" if columns > 0 else ""


def _begin(text: str, columns: int) -> str:
    taken, used = "", 0
    for letter in text:
        used += _width(letter)
        if used > columns:
            break
        taken += letter
    return _few_marks(taken)


def _few_marks(text: str) -> str:
    """At most two marks on each letter, and none without one: piled up, they would cover the lines above."""
    kept, marks = "", 2
    for letter in text:
        marks = 0 if _width(letter) else marks + 1
        kept += letter if marks <= 2 else ""
    return kept


def fitted(text: str, columns: int, *, to_the_right: bool = False) -> str:
    """A text from ``plain``, cut or filled with spaces to exactly ``columns`` columns."""
    shown = cut(text, columns)
    gap = " " * (columns - width(shown))
    return gap + shown if to_the_right else shown + gap


def wrapped(text: str, columns: int) -> list[str]:
    """A text from ``plain`` in lines of at most ``columns`` columns, broken anywhere."""
    size = max(columns if text.isascii() else columns // 2, 1)  # letters may be two columns wide
    return [text[start : start + size] for start in range(0, max(len(text), 1), size)]
