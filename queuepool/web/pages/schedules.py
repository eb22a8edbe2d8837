"""Schedules: when they are due, how their last runs ended, what stands in their way."""

from __future__ import annotations

from typing import Any

from queuepool.config.settings import ConnectionSettings, ScheduleSettings
from queuepool.jobs.client import Queue
from queuepool.operating.schedule_runs import in_force, schedules_on
from queuepool.steward.schedule import declared
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.guard import Refusal
from queuepool.web.shown import kind_of, without_data

Facts = dict[str, Any]
#: most schedules of one connection that are shown
_MOST = 200


def schedules(desk: Desk, asked: Asked) -> Facts:
    """Those of the configuration, and those that jobs of pools on this host declare."""
    gathered, notes = Gathered(), list[str]()
    links = desk.chosen(asked.text("connection"))
    found = gathered.each(links, lambda link, opened: _rows(desk, asked, link, opened, notes))
    rows = [row for several in found for row in several]
    return {"schedules": rows, "remarks": notes, **gathered.facts()}


def _rows(desk: Desk, asked: Asked, link: StoreLink, opened: Queue, notes: list[str]) -> list[Facts]:
    several = settings_on(desk, link.settings)
    if len(several) > _MOST:
        notes.append(f"{len(several) - _MOST} more schedules of connection {link.name} are not shown")
    found = schedules_on(desk.choice, opened, several[:_MOST], notes.append)
    told = str if asked.data == "yes" else kind_of
    rows = ({"connection": link.name, **one.facts(), "words": list(one.words(told))} for one in found)
    return [without_data(row, asked) for row in rows]


def settings_on(desk: Desk, connection: ConnectionSettings) -> list[ScheduleSettings]:
    """The schedules whose jobs are pushed to this connection, each once."""
    found: dict[str, ScheduleSettings] = {}
    for pool in desk.config.pools:
        if pool.connection == connection:
            every = [*pool.schedules, *declared(pool, in_force(pool) or ())]
            found |= {one.name: one for one in every if one.name not in found}
    return list(found.values())


def named(desk: Desk, asked: Asked) -> tuple[StoreLink, ScheduleSettings]:
    """The schedule of the path. Raises ``Refusal``."""
    link, name = desk.link(asked.parts["connection"]), asked.parts["name"]
    for one in settings_on(desk, link.settings):
        if one.name == name:
            return link, one
    raise Refusal(404, "there is no such schedule: is its pool running here?")
