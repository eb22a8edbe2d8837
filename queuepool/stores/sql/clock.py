"""The database's clock, which alone decides what is due: wrong clocks on hosts do no harm."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Dialect,
    Integer,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.types import Float

_NOW = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
    # Not unix_timestamp(now(6)): in an application's time zone, the repeated hour in autumn would be ambiguous.
    "mysql": "(unix_timestamp() + microsecond(now(6)) / 1e6)",
    "mariadb": "(unix_timestamp() + microsecond(now(6)) / 1e6)",
}
#: added to make rounding down round up
_UP = 0.999999
#: Laravel writes times in UTC, which MySQL takes for times in its own zone
_UTC: ColumnElement[str] = literal("+00:00")
_ZONE: ColumnElement[str] = literal_column("@@global.time_zone")


def later(delay: float) -> float:
    """The parameter for ``Clock.after``, in seconds: a delay is rounded up, no delay means the current second."""
    return delay + _UP if delay > 0 else 0.0


class Clock:
    """SQL expressions for Unix seconds; ``fixed`` is '' for the database's clock, or a test's seconds as text."""

    def __init__(self, dialect: Dialect, fixed: str = "") -> None:
        self._name = dialect.name
        self._now: ColumnElement[Any] = (
            literal(float(fixed), Float) if fixed else type_coerce(literal_column(_NOW[dialect.name]), Float)
        )

    def now(self) -> ColumnElement[Any]:
        """The current second, with its fraction."""
        return self._now

    def down(self, later: Any = 0) -> ColumnElement[Any]:
        """The time ``later`` seconds from now, rounded down to a whole second."""
        moment = self._now + later
        # Not every SQLite has floor, but its cast truncates where the others' rounds.
        return cast(moment, Integer) if self._name == "sqlite" else func.floor(moment, type_=Integer)

    def up(self, later: Any = 0) -> ColumnElement[Any]:
        """The time ``later`` seconds from now, rounded up to a whole second."""
        return self.down(later + _UP)

    def after(self, name: str) -> ColumnElement[Any]:
        """The whole second for the parameter ``name``, whose value is from ``later``."""
        return self.down(bindparam(name, type_=Float))

    def as_timestamp(self, moment: ColumnElement[Any]) -> ColumnElement[Any]:
        """Unix seconds as the value of a timestamp column in UTC."""
        if self._name == "sqlite":
            return func.datetime(moment, "unixepoch")
        if self._name == "postgresql":
            return func.timezone("UTC", func.to_timestamp(moment))
        return func.convert_tz(func.from_unixtime(moment), _ZONE, _UTC)

    def as_seconds(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """A timestamp column in UTC as Unix seconds."""
        if self._name == "sqlite":
            return cast(func.strftime("%s", column), Integer)
        if self._name == "postgresql":
            return func.date_part("epoch", func.timezone("UTC", column))
        return func.unix_timestamp(func.convert_tz(column, _UTC, _ZONE))

    def past(self, ago: float = 0) -> ColumnElement[Any]:
        """The time ``ago`` seconds before now, rounded down; evaluated once, not for every row."""
        return select(self.down(-ago)).scalar_subquery()
