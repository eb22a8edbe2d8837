"""Flows of nine jobs: a chain of three, five jobs beside it, and one that follows all. None begins too early (I35).

The five have limits, if any job has. All are on a queue that Laravel's worker does not serve: it would run those jobs,
which it fails elsewhere, and knows of no flow that goes on.

That each is pushed, and none twice, is what the rules on all jobs say of them as well.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from queuepool.payload.members import FLOW, MemberOf, NewFlow, NewMember
from tests.chaos import limited
from tests.chaos.ledger import Event
from tests.chaos.limited import Call

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

STREAM, QUEUE = "g", limited.QUEUE
#: the places of a flow; those that follow no other come first
COUNT, ROOTS = 9, 6
#: what each of the others follows
AFTER: Mapping[int, tuple[int, ...]] = {6: (0,), 7: (6,), 8: (1, 2, 3, 4, 5, 7)}
#: those that none of the chain follows
BESIDE = range(1, ROOTS)
_NAP = Call("Chaos@run", {"m": "nap", "seconds": 0.02}, {"maxTries": 0})
#: seconds, longer than any run
_LASTS = 3600.0


def drawn(first: int, *, has_limits: bool) -> tuple[NewFlow, list[NewMember]]:
    """A flow whose jobs have the numbers from ``first`` on."""
    flow_id, chance = secrets.token_urlsafe(16), random.Random(first)
    members = []
    for place in range(COUNT):
        call = Call.drawn(chance, "Chaos@tenant", "nap") if has_limits and place in BESIDE else _NAP
        members.append(_member(flow_id, place, f"{STREAM}.{first + place}", call))
    return NewFlow(flow_id, "", COUNT, ROOTS, stops=True, deadline=_LASTS, keep=_LASTS), members


def _member(flow_id: str, place: int, job_id: str, call: Call) -> NewMember:
    payload = call.payload(job_id, extra={FLOW: MemberOf(flow_id, str(place)).text})
    edges = tuple(f"{other}s" for other, before in AFTER.items() if place in before)
    return NewMember(str(place), "s", QUEUE, 0.0, payload, len(AFTER.get(place, ())), edges)


def beside(number: int) -> range:
    """The jobs of its flow, by their numbers."""
    first = number // COUNT * COUNT
    return range(first, first + COUNT)


class Graphs:
    """Of each start, whether all that it follows had ended."""

    EVENTS = ("start", "finish")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._finished: set[int] = set()

    def read(self, event: Event) -> None:
        stream, _, number = event["id"].rpartition(".")
        if stream != STREAM:
            return
        if event["f"] == "finish":
            self._finished.add(int(number))
            return
        self._findings.count("starts of members of flows")
        first = int(number) // COUNT * COUNT
        missing = [first + one for one in AFTER.get(int(number) % COUNT, ()) if first + one not in self._finished]
        if missing:
            what = f"{event['id']} began before {', '.join(f'{STREAM}.{one}' for one in missing)} had ended"
            self._findings.violated("I35 a member began too early", what)
