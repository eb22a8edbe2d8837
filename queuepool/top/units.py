"""Numbers for people, in few columns. Those from a board may be anything, so each has a longest form."""

from __future__ import annotations

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MOST_DAYS = 999
_GROUPED_BELOW = 10_000_000
_SIZES = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
NONE = "-"


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
