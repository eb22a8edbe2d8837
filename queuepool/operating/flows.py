"""What an operator sees of flows, and does to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from queuepool.board.status import iso
from queuepool.jobs.following_flows import FlowState, state_of
from queuepool.payload.members import FLOW, member_in_text
from queuepool.stores.factory import Stores
from queuepool.stores.flows import FlowRecord, MemberRecord
from queuepool.stores.records import FailedJob, FailedStore

#: the letters of members, in words
WORDS = {"w": "waits", "r": "runs", "d": "done", "f": "failed", "c": "cancelled", "k": "skipped"}
_RULES = {"s": "", "f": " if it fails", "a": " in any case"}
#: members that a view shows
MOST_SHOWN = 200


def flow_row(record: FlowRecord) -> dict[str, Any]:
    """A flow as a row of a table."""
    state = state_of(record)
    return {
        "id": record.id, "name": record.name, "state": words_of(state), "progress": state.progress,
        "created": iso(record.created), "ended": None if record.ended is None else iso(record.ended),
    }  # fmt: skip


def flow_facts(stores: Stores, record: FlowRecord) -> dict[str, Any]:
    """All that is known of a flow, with its members."""
    counts = {**record.counts._asdict(), "total": sum(record.counts)}
    members = [_facts_of(one) for one in stores.flows.members(record.id)]
    return {**flow_row(record), "deadline": iso(record.deadline), "counts": counts, "members": members}


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


def _facts_of(member: MemberRecord) -> dict[str, Any]:
    then = [f"{edge[:-1]}{_RULES[edge[-1]]}" for edge in member.edges]
    return {
        "number": member.number,
        "state": WORDS.get(member.letter, member.letter),
        "name": member.name,
        "then": then,
    }


def failed_of(store: FailedStore, flow_id: str) -> list[FailedJob]:
    """The failed jobs that are members of this flow."""
    found, page, mark = list[FailedJob](), store.page(), f'"{FLOW}":"{flow_id}:'
    while page:
        found += [one for one in page if mark in one.payload and _is_of(one, flow_id)]
        page = store.page(page[-1].key)
    return found


def _is_of(record: FailedJob, flow_id: str) -> bool:
    member = member_in_text(record.payload)
    return member is not None and member.flow == flow_id
