"""Flows: all of them, and one as a graph, with its members in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.operating.flow_graph import graph_of
from queuepool.operating.flows import WORDS, flow_head, listed, member_row
from queuepool.search.filters import Word
from queuepool.stores.flows import STATES, FlowFilter, FlowPlace, MemberRecord, numbered
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.graphs import drawn
from queuepool.web.guard import Refusal
from queuepool.web.pages.failed import named_or_first
from queuepool.web.shown import flow_without_data

Facts = dict[str, Any]
#: seconds in which flows are counted for a list
_WITHIN = 1.0
#: followers of a member that the table names
_MOST_THEN = 10
#: most members, and times that they follow others, of a flow that is drawn: more would take seconds
_MOST_DRAWN, _MOST_LINES = 20_000, 100_000


def flows(desk: Desk, asked: Asked) -> Facts:
    """The flows of one connection that fit, the latest first."""
    link, gathered = named_or_first(desk, asked), Gathered()
    state = _known(asked, STATES)
    nothing: Facts = {"flows": [], "next": None}
    facts = gathered.one(link, lambda opened: _flows(desk, asked, opened, state), nothing)
    about = {"connection": link.name, "connections": list(desk.links), "state": state, "states": list(STATES)}
    return {**about, **facts, **gathered.facts()}


def _flows(desk: Desk, asked: Asked, opened: Queue, state: str) -> Facts:
    name, of = asked.text("flow"), ("flows", opened.settings.name)
    if name and not asked.may_find("flow"):
        raise Refusal(403, "flow: this would find what is not shown to you")
    place = desk.places.found(asked.cursor(), *of).partition(" ")
    after = FlowPlace(float(place[0]), place[2]) if place[0] else None
    rows, last = listed(opened.stores, FlowFilter(state, name), asked.rows(), after, _WITHIN)
    shown = [flow_without_data(row, asked) for row in rows]
    return {"flows": shown, "next": desk.places.keep(f"{last.created!r} {last.id}", *of) if last else None}


def flow(desk: Desk, asked: Asked) -> Facts:
    """One flow: how far it is, its graph, and its members that fit, in the order of their numbers."""
    link, gathered = desk.link(asked.parts["connection"]), Gathered()
    wanted = _known(asked, tuple(WORDS.values())), asked.text("name")
    key = "flow", asked.parts["id"], wanted, asked.cursor(), asked.rows()

    def look(opened: Queue) -> Facts:
        return _flow(desk, asked, opened, wanted)

    found = gathered.one(link, lambda opened: _once(link, key, look) if asked.is_renewal else look(opened), _NOTHING)
    about = {"connection": link.name, "id": asked.parts["id"], "states": [*WORDS.values()], "shown": wanted[0]}
    facts = {**found, **about, **gathered.facts()}
    return facts if found["counts"] or facts["status"] == 503 else {**facts, "status": 404}


#: of a flow of which nothing is known
_NOTHING: Facts = {
    "name": "", "state": None, "progress": None, "created": None, "ended": None, "deadline": None, "counts": None,
    "graph": None, "members": [], "next": None,
}  # fmt: skip


def _once(link: StoreLink, key: tuple[object, ...], look: Callable[[Queue], Facts]) -> Facts:
    """Once within a moment for all who are shown the same."""
    found = link.counted(key, look)
    if found.value is None or found.problem:
        raise StoreDown(found.problem or "no answer yet")
    return found.value


def _flow(desk: Desk, asked: Asked, opened: Queue, wanted: tuple[str, str]) -> Facts:
    flow_id = asked.parts["id"]
    record = opened.stores.flows.find(flow_id)
    if record is None:
        return _NOTHING
    members = opened.stores.flows.members(flow_id)
    fit = (one for one in members if _fits(one, *wanted))
    of = "flow", opened.settings.name, flow_id
    if after := desk.places.found(asked.cursor(), *of):
        fit = (one for one in fit if numbered(one.number) > numbered(after))
    rows = list(islice(fit, asked.rows() + 1))
    last = rows[asked.rows() - 1].number if len(rows) > asked.rows() else None
    return {
        **flow_without_data(flow_head(record), asked),
        "graph": drawn(flow_id, graph_of(members)) if may_be_drawn(members) else None,
        "members": [_row(flow_id, one) for one in rows[: asked.rows()]],
        "next": desk.places.keep(last, *of) if last else None,
    }


def may_be_drawn(members: Sequence[MemberRecord]) -> bool:
    """Whether a graph of these is made in a moment."""
    return len(members) <= _MOST_DRAWN and sum(len(one.edges) for one in members) <= _MOST_LINES


def _row(flow_id: str, one: MemberRecord) -> Facts:
    return {**member_row(flow_id, one, _MOST_THEN), "then_left_out": max(len(one.edges) - _MOST_THEN, 0)}


def _fits(one: MemberRecord, state: str, name: str) -> bool:
    return state in ("", WORDS.get(one.letter)) and (not name or Word(name).fits(one.name))


def _known(asked: Asked, states: Sequence[str]) -> str:
    """The state that is asked for; empty for all. Raises ``Refusal``."""
    found = asked.text("state")
    if found not in ("", *states):
        raise Refusal(400, f"state is one of {', '.join(states)}")
    return found
