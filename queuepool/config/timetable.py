"""When a schedule is due: by a cron expression in a time zone, or every so many seconds.

Times are whole Unix seconds. Only this module uses cronsim, which is imported for the first cron expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from queuepool.config import values

if TYPE_CHECKING:
    from cronsim import CronSim

#: seconds: a time that no clock reaches
NEVER = 2**53
_HOUR, _YEAR = 3600, 366 * 86400
#: the library's words for a wrong day, or one that the months do not have
_BAD_DAY = "Bad day-of-month"


class Timetable(Protocol):
    """The due times of one schedule."""

    def next_after(self, moment: float) -> int:
        """The first due time after ``moment``; ``NEVER`` if there is none within 50 years."""

    def latest(self, after: float, until: float) -> int | None:
        """The last due time that is later than ``after`` and not later than ``until``; ``None`` if there is none."""

    def local(self, due: int) -> datetime:
        """The due time in the schedule's time zone."""


@dataclass(frozen=True)
class Every:
    """Every ``seconds`` on a grid that begins with the Unix epoch, and so is the same on all hosts."""

    seconds: int

    def next_after(self, moment: float) -> int:
        return (int(moment // self.seconds) + 1) * self.seconds

    def latest(self, after: float, until: float) -> int | None:
        due = int(until // self.seconds) * self.seconds
        return due if due > after else None

    def local(self, due: int) -> datetime:
        return datetime.fromtimestamp(due, UTC)


@dataclass(frozen=True)
class Cron:
    """A cron expression of five fields. Where clocks change, it follows Debian's cron.

    A fixed time that is skipped is due right after the gap, one that comes twice is due the first time. With a ``*`` as
    the first character of the minutes or hours, a schedule goes by elapsed time instead.
    """

    expression: str
    zone: tzinfo = UTC

    def next_after(self, moment: float) -> int:
        for found in self._from(moment):
            # In the second pass of a repeated hour, the library also gives times of the first pass.
            if (due := int(found.timestamp())) > moment:
                return due
        return NEVER

    def latest(self, after: float, until: float) -> int | None:
        due = self.next_after(after)
        if due > until:
            return None
        end = int(until)
        while due < end:  # no time is due after ``end``: halve what lies in between
            middle = (due + end) // 2
            found = self.next_after(middle)
            if found <= until:
                due = found
            else:
                end = middle
        return due

    def local(self, due: int) -> datetime:
        return datetime.fromtimestamp(due, self.zone)

    def changes(self, since: float) -> Iterator[tuple[datetime, str]]:
        """Due times of the next year that clock changes move or would repeat, each with what happens."""
        sample = next(iter(self._from(since)), None)
        if sample is None or not self._is_fixed:
            return
        for change, seconds in _clock_changes(self.zone, int(since)):
            for due in self._between(change - max(-seconds, 0) - 1, change):
                if seconds < 0 and due < change:
                    yield self.local(due), "comes twice and runs the first time"
                elif seconds > 0 and not self._matches(due):
                    yield self.local(due), "runs instead of a time that is skipped"

    def _between(self, after: int, until: int) -> Iterator[int]:
        while (after := self.next_after(after)) <= until:
            yield after

    @property
    def _is_fixed(self) -> bool:
        minutes, hours, *_ = self.expression.split()
        return not minutes.startswith("*") and not hours.startswith("*")

    def _matches(self, due: int) -> bool:
        local = self.local(due)
        return local.minute in self._fields.minutes and local.hour in self._fields.hours

    @cached_property
    def _fields(self) -> CronSim:
        return _cronsim(self.expression, datetime(2024, 1, 1))

    def _from(self, moment: float) -> Iterator[datetime]:
        return _cronsim(self.expression, datetime.fromtimestamp(int(moment // 1), self.zone))


def timetable_of(cron: str, every: int, timezone: str) -> Timetable:
    """The timetable of these settings, of which ``cron`` or ``every`` is set."""
    return Cron(cron, zone(timezone)) if cron else Every(every)


def due_after(timetable: Timetable, moment: float) -> Iterator[int]:
    """The due times after ``moment``, in order."""
    at = timetable.next_after(moment)
    while at != NEVER:
        yield at
        at = timetable.next_after(at)


def cron(raw: str) -> str:
    """A cron expression; may be empty. Raises ``ValueError`` for one that is wrong or never comes due."""
    if raw and len(raw.split()) != 5:
        raise ValueError(f"{raw[:40]!r} is not a cron expression of five fields like 0 3 * * *")
    if raw:
        _check_comes_due(raw)
    return raw


def interval(raw: str) -> int:
    """Whole seconds from 1 up; may be empty."""
    seconds = values.seconds(raw) if raw else 0.0
    if raw and (seconds < 1 or seconds % 1):
        raise ValueError(f"{values.shown(raw)} is not a number of whole seconds from 1 up")
    return int(seconds)


def rule_of(raw: str) -> tuple[str, int]:
    """A cron expression, or an interval in seconds, from one text; the other one is empty. Raises ``ValueError``."""
    return ("", interval(raw)) if re.fullmatch(r"[0-9.]+[smhd]?", raw) else (cron(raw), 0)


def time_zone(raw: str) -> str:
    """The name of a time zone in the IANA database."""
    zone(raw)
    return raw


def zone(name: str) -> tzinfo:
    """A time zone by its name in the IANA database. Raises ``ValueError``."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones  # only for schedules

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        known = available_timezones()
    if not known:
        raise ValueError(f"{name[:40]!r}: this system has no time zones: pip install tzdata")
    close = next((one for one in known if one.lower() == name.lower()), "")
    hint = f"; did you mean {close}?" if close else ""
    raise ValueError(f"{name[:40]!r} is not a time zone like Europe/Berlin{hint}")


def _check_comes_due(raw: str) -> None:
    problem = _problem_of(raw)
    minute, hour, day, _, weekday = raw.split()
    if problem == _BAD_DAY and not _problem_of(f"{minute} {hour} {day} * {weekday}"):
        raise ValueError(f"{raw!r} never comes due: no such day in these months")
    if problem:
        raise ValueError(f"{raw!r} is not a cron expression: {problem[:1].lower()}{problem[1:]}")
    if next(_cronsim(raw, datetime(2024, 1, 1)), None) is None:
        raise ValueError(f"{raw!r} never comes due")


def _problem_of(raw: str) -> str:
    from cronsim import CronSimError

    try:
        _cronsim(raw, datetime(2024, 1, 1))
    except CronSimError as error:
        return str(error)
    return ""


def _cronsim(expression: str, since: datetime) -> CronSim:
    from cronsim import CronSim  # imported here: most programs have no schedule

    return CronSim(expression, since)


def _clock_changes(zone: tzinfo, since: int) -> Iterator[tuple[int, int]]:
    """Unix times of the next year at which the zone's clocks change, and by how many seconds (above 0: forward)."""
    for start in range(since, since + _YEAR, _HOUR):
        by = int((_offset(zone, start + _HOUR) - _offset(zone, start)).total_seconds())
        if by:
            yield _change_in(zone, start), by


def _change_in(zone: tzinfo, start: int) -> int:
    """The second at which the offset changes, within an hour of ``start``."""
    low, high = start, start + _HOUR
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == _offset(zone, start) else (low, middle)
    return high


def _offset(zone: tzinfo, moment: int) -> timedelta:
    return datetime.fromtimestamp(moment, zone).utcoffset() or timedelta()
