"""References in PHP's serialized data: a value that occurs again is written as the number of its first occurrence."""

from __future__ import annotations

from typing import NamedTuple

from queuepool.payload.php_values import PhpEnum, PhpObject, PhpValue


class Extent(NamedTuple):
    """What a walk through a value meets: values and bytes in it, and levels below it.

    Where the value occurs again, it is met again, so references are charged with it.
    """

    values: int
    size: int
    levels: int


class Numbered(NamedTuple):
    """A value that has been read to its end."""

    value: PhpValue
    extent: Extent


class References:
    """The values of one text by their numbers.

    A value takes its number, counted from 1, before the values in it. So does ``r:``, an object that occurs again;
    ``R:``, a variable that two names share, takes none. Keys take none.
    Source: ext/standard/var_unserializer.re and var.c, php_add_var_hash (PHP 8.2).
    """

    def __init__(self) -> None:
        #: ``None``: not yet read to its end
        self._numbered: list[Numbered | None] = []

    def begin(self) -> int:
        """Take a number for the value that begins; returns its place for ``end``."""
        self._numbered.append(None)
        return len(self._numbered) - 1

    def end(self, place: int, value: PhpValue, extent: Extent) -> None:
        """Say what the value has become."""
        self._numbered[place] = Numbered(value, extent)

    def resolve(self, kind: str, number: int) -> Numbered:
        """The value that ``r:`` or ``R:`` means. Raises ``LookupError``, which says why it means none.

        A value that contains itself is none: who walks through it never ends.
        """
        if not 0 < number <= len(self._numbered):
            raise LookupError("a reference to no value")
        found = self._numbered[number - 1]
        if found is None:
            raise LookupError("a reference to a value that contains it")
        if kind == "R":
            return found
        if not isinstance(found.value, (PhpObject, PhpEnum)):
            raise LookupError("an object reference to no object")
        self._numbered.append(found)
        return found
