"""How often jobs may run in a test."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """``tries``: the pool's default, 0 = no limit; ``most``: attempts in all."""

    tries: int
    most: int

    def check(self) -> None:
        """Raise ``ValueError`` for what is no count."""
        for name, value, least in (("tries", self.tries, 0), ("most", self.most, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} cannot be {value!r}: it is a whole number from {least}")
