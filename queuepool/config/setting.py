"""How a setting is declared, once, by its field: its default, its parser, and its flag with unit and help.

The keys of the file, the variables of the environment, the flags, ``conf/pool.ini`` and the reference derive from it.
The comment ``#:`` above the field is its text in the last two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from queuepool.config.values import Parser

T = TypeVar("T")
_SAID = "setting"


class Setting(NamedTuple):
    """The declaration of one key; ``name`` is that of its field."""

    default: object
    parse: Parser
    #: what stands for a value in the help of its flag; empty for a switch
    unit: str = ""
    #: the help of its flag; empty: it has no flag
    help: str = ""
    key: str = ""
    name: str = ""
    #: its default as a user would write it, if that does not follow from its value
    written: str | None = None
    forms: tuple[str, ...] = ()
    is_masters: bool = False

    @property
    def default_text(self) -> str:
        """The default as a user would write it; empty if there is none."""
        return _written(self.default) if self.written is None else self.written

    @property
    def flag(self) -> tuple[str, ...]:
        """The spellings of its flag; empty without one."""
        plain = f"--{self.key.replace('_', '-')}"
        derived = plain if self.unit else f"{plain}/{plain.replace('--', '--no-', 1)}"
        return (self.forms or (derived,)) if self.help else ()


def setting(
    default: T,
    parse: Callable[[str], T],
    unit: str = "",
    help: str = "",
    *,
    key: str = "",
    written: str | None = None,
    forms: tuple[str, ...] = (),
    is_masters: bool = False,
    is_secret: bool = False,
    is_compared: bool = True,
) -> T:
    """A field of a section's settings, with its declaration.

    ``help``: that of its flag, without which it has none; ``unit``: what its help calls the value; ``forms``: the
    flag's spellings if they do not follow from the key. ``key``: if it is not the field's name. ``written``: the
    default as a user would write it. ``is_masters``: a lone worker has no such flag. ``is_secret``: not in its repr.
    """
    said = Setting(default, parse, unit, help, key, "", written, forms, is_masters)
    return field(default=default, repr=not is_secret, compare=is_compared, metadata={_SAID: said})


def linked(make: Callable[[], T], parse: Parser, written: str) -> T:
    """A field whose key holds the name of a section; by default ``make`` returns that section's settings."""
    said = Setting(written, parse)
    return field(default_factory=make, metadata={_SAID: said})


def settings_of(section: Any) -> Mapping[str, Setting]:
    """The settings of a section by key, in the order of its fields."""
    found = [(one.name, one.metadata[_SAID]) for one in fields(section) if _SAID in one.metadata]
    return MappingProxyType({
        said.key or name: said._replace(key=said.key or name, name=name) for name, said in found
    })  # fmt: skip


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, (int, float)) else str(value or "")
