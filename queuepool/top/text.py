"""Texts and numbers of a known width on a terminal: whatever a job has written, it fills its columns and no more."""

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
#: numbers from a board may be anything, so each has a longest form
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MOST_DAYS = 999
_GROUPED_BELOW = 10_000_000
_SIZES = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
NONE = "-"


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


def duration(seconds: float | None) -> str:
    """``3.3s``, ``42s``, ``12m05s``, ``3h07m``, ``12d04h``; ``-`` for ``None``."""
    if seconds is None:
        return NONE
    whole = int(min(max(seconds, 0.0), _MOST_DAYS * _DAY + 1))
    if whole < _MINUTE:
        return f"{max(seconds, 0.0):.1f}s" if seconds < 10 else f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR:02}h" if whole <= _MOST_DAYS * _DAY else f">{_MOST_DAYS}d"


def brief(seconds: float) -> str:
    """A duration that may be short: ``4ms``, ``0.25s``, then as ``duration``."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.2f}s" if seconds < 1 else duration(seconds)


def count(number: int) -> str:
    """``1,234,567``, from ten millions on ``12.3M``; ``-`` for what cannot be a count."""
    if not 0 <= number < 2**63:
        return NONE
    if number < _GROUPED_BELOW:
        return f"{number:,}"
    return next(f"{min(number / size, 9999):.1f}{unit}" for size, unit in _SIZES if number >= size)


def rate(each_second: float | None) -> str:
    """``0.4/s``, ``412/s``; ``-`` for ``None``."""
    if each_second is None:
        return NONE
    return f"{each_second:.1f}/s" if abs(each_second) < 100 else f"{count(int(abs(each_second)))}/s"


def change(each_second: float | None) -> str:
    """A rate with its sign: ``+4.0/s``, ``-120/s``, ``0/s``."""
    if each_second is None:
        return NONE
    if abs(each_second) < 0.05:
        return "0/s"
    return f"{'+' if each_second > 0 else '-'}{rate(abs(each_second))}"


def megabytes(number: int) -> str:
    """``43 MB``, ``1.5 GB``; ``-`` for what cannot be a size."""
    if not 0 <= number < 2**40:
        return NONE
    return f"{number} MB" if number < 10_000 else f"{number / 1024:.1f} GB"
