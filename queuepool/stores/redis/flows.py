"""Flows in Redis; see ``stores.flows.Flows``. What its scripts have in common is in ``lua/include/flow.lua``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from operator import attrgetter
from typing import Any

from queuepool.errors import NoSuchFlow, StoreDenied, StoreDown, StoreError
from queuepool.payload.lease import Lease
from queuepool.payload.members import MemberEnd, NewFlow, NewMember, names_in
from queuepool.stores.flows import (
    ANY_FLOW,
    ENDED,
    LOST_AFTER,
    UNSTARTED_LASTS,
    FlowCounts,
    FlowEnd,
    FlowFilter,
    FlowPace,
    FlowPlace,
    FlowRecord,
    FlowStanding,
    MemberRecord,
    in_order,
)
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.scripts import MEMBERS, ScriptCall
from queuepool.stores.redis.wire import BATCH, BATCH_BYTES, Keys
from queuepool.stores.steps import in_steps

#: how many flows one look of a steward takes
_LOOKS = 100
#: keys that each flow has for itself
_OWN = 6
_MEMBER = attrgetter("member")
#: behind all that there is
_END = FlowPlace(float("inf"), "")


class RedisFlows:
    """The flows of one connection. ``clock`` returns '' for the server's, or a test's Unix seconds as text."""

    def __init__(self, client: RedisClient, keys: Keys, clock: Callable[[], str]) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self.last_end: FlowEnd | None = None
        self.refused = ""

    def write(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        for step in in_steps(members, BATCH, BATCH_BYTES, _size_of):
            self.add(flow, step)
        self.start(flow.id)

    def add(self, flow: NewFlow, members: Sequence[NewMember]) -> bool:
        """Write a piece; ``False`` if the flow has begun."""
        facts = _facts_of(flow, self._now())
        args: list[Any] = [UNSTARTED_LASTS, len(facts), *facts]
        for one in members:
            waiting = f"{one.queue}\n{one.delay}\n".encode() + one.payload
            args += [one.number, "".join(f"{edge}," for edge in one.edges), waiting, one.follows]
        return bool(self._script("add_members", flow.id, *args) == 1)

    def start(self, flow_id: str) -> str:
        """Begin it, and push all that starts with it; returns its state if it has ended already.

        Raises ``StoreError`` if the server has refused a queue: a steward tries again to push what goes there.
        """
        while (became := self._text("start_flow", flow_id, BATCH)) == "more":
            pass
        if became == "lacks":
            raise NoSuchFlow(flow_id)
        return became

    def find(self, flow_id: str) -> FlowRecord | None:
        facts = self._facts(flow_id)
        return _record(flow_id, facts, self._counts(flow_id)) if facts else None

    def standing(self, flow_id: str) -> FlowStanding | None:
        facts = self._facts(flow_id)
        return FlowStanding(facts["state"], "ended" in facts) if facts else None

    def page(
        self, after: FlowPlace | None = None, count: int = 100, wanted: FlowFilter = ANY_FLOW
    ) -> Iterator[FlowRecord]:
        for _, flow_id in self._latest(after or _END, count, wanted):
            if record := self.find(flow_id):
                yield record

    def _latest(self, after: FlowPlace, count: int, wanted: FlowFilter) -> list[FlowPlace]:
        """The latest places; read in steps of few commands, as there is no list by this time."""
        ids, found = self._ids(self._keys.flows), list[FlowPlace]()
        for first in range(0, len(ids), BATCH):
            part = ids[first : first + BATCH]
            heads = self._client.script("flow_heads", [self._keys.flow(one) for one in part], [])
            places = [
                FlowPlace(float(created), flow_id)
                for flow_id, (created, state, name) in zip(part, heads, strict=True)
                if created and wanted.fits(state.decode(), name.decode())
            ]
            found = nlargest(count, [*found, *(one for one in places if one < after)])
        return found

    def under_way(self, count: int = 10_000) -> list[FlowPace]:
        ids, found = self._ids(self._keys.begun_flows, count), list[FlowPace]()
        for first in range(0, len(ids), BATCH):
            part = ids[first : first + BATCH]
            keys = [key for one in part for key in (self._keys.flow(one), f"{self._keys.flow(one)}:waiting")]
            paces = zip(part, self._client.script("flows_under_way", keys, []), strict=True)
            found += [_pace(flow_id, facts) for flow_id, facts in paces if facts]
        return found

    def _ids(self, key: str, count: int = 0) -> list[str]:
        """So many of those with the lowest scores; 0 = all."""
        return [one.decode() for one in self._client.command("ZRANGE", key, 0, count - 1)]

    def members(self, flow_id: str) -> list[MemberRecord]:
        letters = self._hash(f"{self._keys.flow(flow_id)}:letters")
        names = names_in((self._client.command("HMGET", self._keys.flow(flow_id), "names")[0] or b"").decode())
        names |= self._names_of_added(flow_id, [number for number in letters if "." in number])
        return [_member(number, letters[number], names.get(number, "")) for number in in_order(list(letters))]

    def _names_of_added(self, flow_id: str, numbers: Sequence[str]) -> dict[str, str]:
        found = dict[str, str]()
        for first in range(0, len(numbers), BATCH):
            part = numbers[first : first + BATCH]
            kept = self._client.command("HMGET", self._keys.flow(flow_id), *(f"n{number}" for number in part))
            found |= {number: name.decode() for number, name in zip(part, kept, strict=True) if name}
        return found

    def results(self, flow_id: str, numbers: Sequence[str]) -> list[bytes | None]:
        if not numbers:
            return []
        return list(self._client.command("HMGET", f"{self._keys.flow(flow_id)}:results", *numbers))

    def stopped(self) -> frozenset[str]:
        return frozenset(self._ids(self._keys.stopped_flows))

    def cancel(self, flow_id: str) -> bool:
        return self._stop(flow_id, "cancelled")

    def _stop(self, flow_id: str, state: str, *, is_lost: bool = False) -> bool:
        became = self._text("stop_flow", flow_id, state, LOST_AFTER, int(is_lost))
        if became == "gone":
            raise NoSuchFlow(flow_id)
        if became == "more":
            self.go_on(flow_id)
        else:
            self._note(flow_id, became)
        return became != "over"

    def resume(self, flow_id: str, number: str) -> None:
        if self._text("resume_member", flow_id, number) == "more":
            self.go_on(flow_id)

    def look(self) -> list[FlowEnd]:
        due = ("-inf", self._now(), "LIMIT", 0, _LOOKS)
        ids = [key.decode() for key in self._client.command("ZRANGEBYSCORE", self._keys.flows, *due)]
        ended, refusal = list[FlowEnd](), None
        for flow_id in ids:
            try:
                ended += filter(None, [self._look_at(flow_id)])
            except StoreDown:
                raise
            except StoreError as error:  # such as a key of a wrong type; the next look says it again
                refusal = error
        if refusal and not ended:
            raise refusal
        return ended

    def _look_at(self, flow_id: str) -> FlowEnd | None:
        self.last_end, facts, now = None, self._facts(flow_id), self._now()
        if not facts or "ended" in facts or facts["state"] == "building":
            self._script("forget_flow", flow_id)
        elif now < float(facts["deadline"]):
            self.go_on(flow_id)
        else:
            is_lost = now >= float(facts["deadline"]) + LOST_AFTER
            self._stop(flow_id, "expired", is_lost=is_lost)
        return self.last_end

    def go_on(self, flow_id: str) -> None:
        """Do what is left over, as far as the server lets us."""
        self.last_end, self.refused = None, ""
        try:
            self._note(flow_id, self.start(flow_id))
        except StoreError as error:
            if isinstance(error, StoreDown) and not isinstance(error, StoreDenied):
                raise
            self.refused = str(error)

    # What the scripts that end jobs are given

    def around(self, done: Sequence[Lease], keys: Sequence[str], args: Sequence[Any]) -> ScriptCall:
        """The call of a reserve with these keys and arguments; if members are done, within ``end_members.lua``."""
        if not any(map(_MEMBER, done)):
            return "reserve", keys, args
        ids = list(dict.fromkeys(lease.member.flow for lease in done if lease.member))
        at = {flow_id: number for number, flow_id in enumerate(ids, 1)}
        places = "".join(f"{at[one.flow]}:{one.number}," if (one := lease.member) else "0:," for lease in done)
        names = [name for flow_id in ids for name in self._keys.of_flow(flow_id)[0][:_OWN]]
        (*_, every, stopped), (_, *starts) = self._keys.of_flow("")
        return f"{MEMBERS}reserve", [*keys, *names, every, stopped], [*args, *ids, *starts, len(ids), places]

    def after(self, found: Sequence[FlowEnd]) -> list[FlowEnd]:
        ended, refused = [end for end in found if end.state != "more"], ""
        for end in found:
            if end.state == "more":
                self.go_on(end.id)
                ended += [self.last_end] if self.last_end else []
                refused = refused or self.refused
        self.refused = refused
        return ended

    def words(self, lease: Lease, end: MemberEnd, payload: bytes) -> tuple[list[str], list[Any]]:
        """The keys of the member's flow, and its arguments with their number before them."""
        names, args = self._keys.of_flow(end.flow)
        own: list[Any] = [end.number, end.how, end.result, lease.queue, payload]
        for one in end.children:
            own += [one.number, one.name, one.queue, one.delay, one.payload]
        return names, [len(own), *args, self._clock(), *own]

    def settled(self, end: MemberEnd, answer: Any) -> int:
        """Note what became of the flow; returns the answer as of a job that is in none."""
        self.last_end, self.refused = None, ""
        if answer == 0:
            return 0
        _, there, became = answer
        if became == b"more":
            self.go_on(end.flow)
        else:
            self._note(end.flow, became.decode())
        return 1 + int(there)

    def _note(self, flow_id: str, became: str) -> None:
        ended = became in ENDED
        self.last_end = FlowEnd(flow_id, self._facts(flow_id).get("name", ""), became) if ended else None

    def _script(self, name: str, flow_id: str, *args: Any) -> Any:
        names, first = self._keys.of_flow(flow_id)
        return self._client.script(name, names, [*first, self._clock(), *args])

    def _text(self, name: str, flow_id: str, *args: Any) -> str:
        return str(self._script(name, flow_id, *args).decode())

    def _facts(self, flow_id: str) -> dict[str, str]:
        names = ("name", "state", "total", "created", "deadline", "ended")
        found = self._client.command("HMGET", self._keys.flow(flow_id), *names)
        facts = {name: value.decode() for name, value in zip(names, found, strict=True) if value is not None}
        return facts if "state" in facts else {}

    def _counts(self, flow_id: str) -> FlowCounts:
        numbers = dict.fromkeys("wrdfck", 0)
        for text in self._hash(f"{self._keys.flow(flow_id)}:letters").values():
            numbers[text[:1].decode()] += 1
        return FlowCounts.of(list(numbers.items()))

    def _hash(self, key: str) -> dict[str, bytes]:
        flat = self._client.command("HGETALL", key)
        pairs: Mapping[bytes, bytes] = flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))
        return {name.decode(): value for name, value in pairs.items()}

    def _now(self) -> float:
        if fixed := self._clock():
            return float(fixed)
        seconds, micros = self._client.command("TIME")
        return int(seconds) + int(micros) / 1e6


def flows_in(words: Sequence[bytes]) -> list[FlowEnd]:
    """What ``end_members.lua`` adds to the answer of a reserve."""
    return [FlowEnd(*(word.decode() for word in words[at : at + 3])) for at in range(0, len(words), 3)]


def _size_of(one: NewMember) -> int:
    """In bytes, with the edges, of which there may be thousands."""
    return len(one.payload) + sum(map(len, one.edges)) + len(one.edges)


def _facts_of(flow: NewFlow, now: float) -> list[Any]:
    facts = {
        "name": flow.name, "total": flow.total, "roots": flow.roots, "stops": int(flow.stops), "created": now,
        "deadline": now + flow.deadline, "keep": flow.keep, "names": flow.names,
    }  # fmt: skip
    words = [word for pair in facts.items() for word in pair]
    if flow.on_failure:
        queue, payload = flow.on_failure
        words += ["alarm", f"{queue}\n".encode() + payload]
    return words


def _record(flow_id: str, facts: Mapping[str, str], counts: FlowCounts) -> FlowRecord:
    ended = float(facts["ended"]) if "ended" in facts else None
    created, deadline = float(facts["created"]), float(facts["deadline"])
    return FlowRecord(flow_id, facts["name"], facts["state"], counts, created, deadline, ended)


def _pace(flow_id: str, facts: Sequence[Any]) -> FlowPace:
    name, created, *counts = facts
    return FlowPace(flow_id, name.decode(), float(created), *map(int, counts))


def _member(number: str, letter: bytes, name: str) -> MemberRecord:
    edges = tuple(edge for edge in letter[2:].decode().split(",") if edge)
    return MemberRecord(number, letter[:1].decode(), edges, name)
