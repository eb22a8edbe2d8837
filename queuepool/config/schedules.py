"""Schedules from their sections: ``[schedule:NAME]`` is one, ``[schedule]`` has their defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator

from queuepool.config.entries import Parsed, Part, Problem
from queuepool.config.settings import ConnectionSettings, ScheduleSettings
from queuepool.config.timetable import cron, interval

#: pairs of which one is needed, and only one is allowed
_EITHER = (("cron", "every"), ("job", "object"))
#: what the defaults cannot hold
_OWN = ("cron", "every", "job", "object", "data")


def rule_of(raw: str) -> tuple[str, int]:
    """A cron expression, or an interval in seconds, from one text; the other one is empty. Raises ``ValueError``."""
    return ("", interval(raw)) if re.fullmatch(r"[0-9.]+[smhd]?", raw) else (cron(raw), 0)


def schedule(part: Part, connection: ConnectionSettings) -> ScheduleSettings:
    """The settings of a schedule; with problems, they are no use."""
    return ScheduleSettings(name=part.name, **{**part.fields(), "connection": connection})


def problems_of(part: Part, link: str, links: Collection[str], used: Collection[str]) -> Iterator[Problem]:
    """What is wrong with a schedule beyond its single values.

    ``link`` names its connection, ``links`` all that there are, ``used`` those of the pools.
    """
    given = part.fields()
    for one, other in _EITHER:
        if not part.is_sound(one, other):
            continue
        if given.get(one) and given.get(other):
            yield Problem(part.place_of(other), f"contradicts {one}: say one of them")
        elif not given.get(one) and not given.get(other):
            yield Problem(part.place, f"has neither {one} nor {other}")
    if given.get("object") and not isinstance(json.loads(given.get("data") or "{}"), dict):
        yield Problem(part.place_of("data"), "is not a JSON object, which an object's properties are")
    if link not in links and part.is_sound("connection"):
        yield Problem(part.place_of("connection"), f"there is no connection {link!r}, only: {', '.join(links)}")
    elif link not in used and part.is_sound("connection"):
        yield Problem(part.place_of("connection"), f"no pool uses connection {link!r}, so nothing would push the job")


def misplaced(stated: Iterable[Parsed]) -> Iterator[Problem]:
    """What the defaults say and only a schedule can."""
    for one in stated:
        if one.entry.section == "schedule" and one.entry.key in _OWN and one.value:
            yield Problem(one.entry.place, "belongs in [schedule:NAME]; [schedule] has the defaults of all")
