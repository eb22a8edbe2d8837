"""Flows for tests of stores, drawn as graphs: each member by name, with those that it follows."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from queuepool.payload.lease import Ending, Lease
from queuepool.payload.members import (
    FLOW,
    How,
    MemberEnd,
    MemberOf,
    NewFlow,
    NewMember,
    Rule,
    member_in_text,
    stripes_of,
)
from tests.support.samples import payload, record
from tests.support.store_contract import OURS

#: what follows as a rule: ``{"page": ["photo"]}``; a name that ends in ``?f`` or ``?a`` has that rule
Graph = Mapping[str, Sequence[str]]


class Drawn:
    """A flow of this graph in the store, whose jobs have the names of its members as ids."""

    def __init__(self, graph: Graph, **about: Any) -> None:
        roots = [name for name in graph if not graph[name]]
        names = [*roots, *(name for name in graph if graph[name])]
        self.numbers = {name: str(number) for number, name in enumerate(names)}
        self.id = secrets.token_urlsafe(16)
        known: dict[str, Any] = {"stops": True, "deadline": 1000.0, "keep": 100.0, "on_failure": None, **about}
        self.flow = NewFlow(self.id, "drawn", len(names), len(roots), **known)
        self.members = [self._member(name, graph) for name in names]

    def _member(self, name: str, graph: Graph) -> NewMember:
        edges = tuple(f"{self.numbers[other]}{_rule(other)}" for other in graph if name in graph[other])
        number, stripes = self.numbers[name], stripes_of([self.numbers[one] for one in graph[name]])
        text = MemberOf(self.id, number, _rule(name)).text
        return NewMember(
            number, _rule(name), "default", 0.0, payload(name, **{FLOW: text}), len(graph[name]), edges, stripes
        )

    def end(self, name: str, how: How, **more: Any) -> MemberEnd:
        return MemberEnd(self.id, self.numbers[name], how, **more)


def _rule(name: str) -> Rule:
    rules: dict[str, Rule] = {"?f": "f", "?a": "a"}
    return rules.get(name[-2:], "s")


def taken(store: Any, most: int = 1000) -> dict[str, Lease]:
    """All jobs that are ready, reserved, by id."""
    leases = store.reserve(["default"], OURS, most).leases
    found = {str(json.loads(lease.receipt)["id"]): lease for lease in leases}
    assert len(found) == len(leases), "a member was pushed twice"
    return found


def ended(store: Any, lease: Lease, how: How = "d", **more: Any) -> bool:
    """End the member as its worker does."""
    member = member_in_text(lease.receipt.decode())
    assert member
    job_id = str(json.loads(lease.receipt)["id"])
    ending = Ending(member=MemberEnd(member.flow, member.number, how, **more))
    return bool(store.fail(lease, job_id, record(lease, job_id), ending) if how == "f" else store.finish(lease, ending))


def as_done(lease: Lease) -> Lease:
    """As its worker has it once the member is done: its next reserve ends it."""
    member = member_in_text(lease.receipt.decode())
    assert member
    return lease._replace(member=MemberEnd(member.flow, member.number, "d"))
