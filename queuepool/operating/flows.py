"""What an operator sees of flows, and does to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf
from typing import Any

from queuepool.board.status import iso
from queuepool.jobs.following_flows import FlowState, state_of
from queuepool.operating.scopes import Scope
from queuepool.payload.members import MemberOf
from queuepool.search.bulk import OfFailedJobs
from queuepool.stores.factory import Stores
from queuepool.stores.flows import FlowFilter, FlowPlace, FlowRecord, MemberRecord
from queuepool.stores.pace import StorePace
from queuepool.stores.records import FailedJob

#: the letters of members, in words
WORDS = {"w": "waits", "r": "runs", "d": "done", "f": "failed", "c": "cancelled", "k": "skipped"}
#: of those whose jobs were pushed, so that there may be something to see of them
PUSHED = "rdf"
_RULES = {"s": "", "f": " if it fails", "a": " in any case"}
#: members that a view shows
MOST_SHOWN = 200


def listed(
    stores: Stores, wanted: FlowFilter, most: int, after: FlowPlace | None = None, seconds: float = inf
) -> tuple[list[dict[str, Any]], FlowPlace | None]:
    """Rows of the latest flows behind ``after``, as many as there is time for, at least one.

    Also the place behind which the list goes on; ``None`` at its end.
    """
    rows, last, until = list[dict[str, Any]](), after, time.monotonic() + seconds
    for record in stores.flows.page(after, most + 1, wanted):
        if rows and (len(rows) == most or time.monotonic() >= until):
            return rows, last
        rows.append(flow_row(record))
        last = record.place
    return rows, None


def flow_row(record: FlowRecord) -> dict[str, Any]:
    """A flow as a row of a table."""
    state = state_of(record)
    return {
        "id": record.id, "name": record.name, "state": words_of(state), "progress": state.progress,
        "created": iso(record.created), "ended": None if record.ended is None else iso(record.ended),
    }  # fmt: skip


def flow_facts(stores: Stores, record: FlowRecord) -> dict[str, Any]:
    """All that is known of a flow, with its members."""
    members = [member_row(record.id, one) for one in stores.flows.members(record.id)]
    return {**flow_head(record), "members": members}


def flow_head(record: FlowRecord) -> dict[str, Any]:
    """The same without them."""
    counts = {**record.counts._asdict(), "total": sum(record.counts)}
    return {**flow_row(record), "deadline": iso(record.deadline), "counts": counts}


def words_of(state: FlowState) -> str:
    """Its state; of one that is stopped, whether members of it still run."""
    is_ending = state.state in ("cancelled", "expired", "failing") and not state.is_over
    return f"{state.state}, {state.counts.running} still to end" if is_ending else state.state


def lines_of(facts: dict[str, Any]) -> Iterator[str]:
    """The graph as text: each member with what follows it."""
    shown = facts["members"][:MOST_SHOWN]
    width = max((len(one["number"]) for one in shown), default=0)
    for one in shown:
        follows = ", ".join(one["then"])
        yield f"{one['number']:>{width}}  {one['state']:<9}  {one['name'] or '-'}{f'  -> {follows}' if follows else ''}"
    if left := len(facts["members"]) - len(shown):
        yield f"and {left} more: --json shows all"


def member_row(flow_id: str, member: MemberRecord, most: int | None = None) -> dict[str, Any]:
    """A member as a row of a table, with its job's id once that was pushed, and at most so many that follow it."""
    job = MemberOf(flow_id, member.number).job_id if member.letter in PUSHED else None
    then = [f"{edge[:-1]}{_RULES[edge[-1]]}" for edge in member.edges[:most]]
    state = WORDS.get(member.letter, member.letter)
    return {"number": member.number, "state": state, "name": member.name, "job": job, "then": then}


def put_back(scope: Scope, flow_id: str) -> int:
    """Put its failed jobs back on their queues, from where it goes on; returns how many could be."""
    found = failed_of(scope, flow_id)
    acts = OfFailedJobs(scope.queue.stores, scope.locks, StorePace())
    return sum(map(bool, acts.put_back(found, None))) if found else 0


def failed_of(scope: Scope, flow_id: str) -> list[FailedJob]:
    """The failed jobs that are members of this flow, also those in PHP whose report was not pushed."""
    failed = (one for one in scope.queue.stores.flows.members(flow_id) if one.letter in "fr")
    records = (scope.store.get(MemberOf(flow_id, one.number).job_id) for one in failed)
    return [one for one in records if one]
