"""Flows in tables of our own; see ``stores.flows.Flows``.

A member's row counts down as those that it follows end; the transaction that brings it to 0 pushes the member. What
ends a member updates its own row first, and those that follow it in the order of their keys, so that two that end at
once wait for each other and do not lock each other out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, delete, func, insert, select, update

from queuepool.payload.envelope import uncounted
from queuepool.payload.lease import Lease
from queuepool.payload.members import MOST_RESULTS, MemberEnd, NewFlow, NewMember
from queuepool.stores.flows import (
    FAILED_LASTS,
    LOST_AFTER,
    UNSTARTED_LASTS,
    FlowCounts,
    FlowEnd,
    FlowGone,
    FlowRecord,
    MemberRecord,
    in_order,
)
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.texts import Charsets

#: rows that one statement names, and flows that one look of a steward takes
_ROWS, _LOOKS = 500, 100
#: seconds between looks for flows that nobody has ended
_LOOK_AGAIN = 5.0
#: flows that go on, and those that start nothing more by the rule s
_RUNS = ("running",)
_STOPPED = ("failing", "cancelled", "expired")


class SqlFlows:
    """The flows of one database; members are pushed to ``jobs``."""

    def __init__(self, client: SqlClient, jobs: JobsTable) -> None:
        self._client = client
        self._jobs = jobs
        self._flows = client.tables.queuepool_flows
        self._members = client.tables.queuepool_members
        self._edges = client.tables.queuepool_edges
        self._charsets = Charsets(self._members)
        #: when (monotonic) to look for flows that nobody has ended
        self._look_again = 0.0
        self.last_end: FlowEnd | None = None

    def write(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        self._jobs.examine()  # before the transaction
        for first in range(0, len(members), 1000):
            self.add(flow, members[first : first + 1000])
        self.start(flow.id)

    def write_within(self, connection: Connection, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """As ``write``, in the caller's transaction."""
        self._add(connection, flow, members)
        self._start(connection, flow.id)

    def add(self, flow: NewFlow, members: Sequence[NewMember]) -> bool:
        """Write a piece; ``False`` if the flow has begun."""
        return self._client.transaction(lambda connection: self._add(connection, flow, members))

    def _add(self, connection: Connection, flow: NewFlow, members: Sequence[NewMember]) -> bool:
        state = self._state(connection, flow.id, lock=True)
        if state is None:
            self._insert_flow(connection, flow)
        elif state != "building":
            return False
        numbers = [one.number for one in members]
        known = set[str]()
        for part in _parts(numbers):
            there = select(self._members.c.n).where(self._of(flow.id), self._members.c.n.in_(part))
            known |= set(connection.execute(there).scalars())
        self._insert_members(connection, flow.id, [one for one in members if one.number not in known])
        return True

    def _insert_flow(self, connection: Connection, flow: NewFlow) -> None:
        now = self._now(connection)
        queue, payload = flow.on_failure or (None, None)
        row = {
            "id": flow.id, "name": self._charsets.text(connection, "queue", flow.name), "state": "building",
            "total": flow.total, "roots": flow.roots, "stops": int(flow.stops), "keep": flow.keep, "created": now,
            "deadline": now + flow.deadline, "look": now + UNSTARTED_LASTS, "alarm_queue": queue,
            "alarm": payload and self._text(connection, payload),
        }  # fmt: skip
        connection.execute(insert(self._flows), [row])

    def _insert_members(self, connection: Connection, flow_id: str, members: Sequence[NewMember]) -> None:
        common = {"flow": flow_id, "state": "w", "bad": 0, "spent": 0, "held": 0}
        rows = [
            {
                **common, "n": one.number, "rule": one.rule, "queue": one.queue, "delay": one.delay,
                "open": one.follows, "payload": self._text(connection, one.payload),
            }
            for one in members
        ]  # fmt: skip
        edges = [{"flow": flow_id, "pred": one.number, "succ": edge[:-1]} for one in members for edge in one.edges]
        if rows:
            connection.execute(insert(self._members), rows)
        if edges:
            connection.execute(insert(self._edges), edges)

    def start(self, flow_id: str) -> None:
        """Begin it, and push all that starts with it; does nothing if it has begun. Raises ``FlowGone``."""
        self._client.transaction(lambda connection: self._start(connection, flow_id))

    def _start(self, connection: Connection, flow_id: str) -> None:
        state = self._state(connection, flow_id, lock=True)
        counted = select(func.count()).where(self._of(flow_id))
        whole = select(self._flows.c.total, self._flows.c.deadline).where(self._flows.c.id == flow_id)
        if state is None:
            raise FlowGone(flow_id)
        if state != "building":
            return
        total, deadline = connection.execute(whole).one()
        if connection.execute(counted).scalar_one() != total:
            raise FlowGone(flow_id)
        self._set(connection, flow_id, state="running", look=deadline)
        roots = select(self._members.c.n).where(self._of(flow_id), self._members.c.open == 0)
        self._push(connection, flow_id, list(connection.execute(roots).scalars()))

    def find(self, flow_id: str) -> FlowRecord | None:
        return next(iter(self._client.ask(lambda c: self._records(c, self._flows.c.id == flow_id, 1))), None)

    def page(self, after: float | None = None, count: int = 100) -> list[FlowRecord]:
        before = self._flows.c.created < (1e12 if after is None else after)
        return self._client.ask(lambda connection: self._records(connection, before, count))

    def _records(self, connection: Connection, which: ColumnElement[bool], count: int) -> list[FlowRecord]:
        flows = self._flows.c
        wanted = (flows.id, flows.name, flows.state, flows.created, flows.deadline, flows.ended)
        rows = connection.execute(select(*wanted).where(which).order_by(flows.created.desc()).limit(count)).all()
        return [
            FlowRecord(
                row.id, row.name, row.state, self._counts(connection, row.id), row.created, row.deadline, row.ended
            )
            for row in rows
        ]

    def _counts(self, connection: Connection, flow_id: str) -> FlowCounts:
        state = self._members.c.state
        return FlowCounts.of(
            [
                (letter, int(count))
                for letter, count in connection.execute(
                    select(state, func.count()).where(self._of(flow_id)).group_by(state)
                )
            ]
        )

    def members(self, flow_id: str) -> list[MemberRecord]:
        return self._client.ask(partial(self._read_members, flow_id=flow_id))

    def _read_members(self, connection: Connection, flow_id: str) -> list[MemberRecord]:
        member, edge = self._members.c, self._edges.c
        rows = {
            row.n: row
            for row in connection.execute(
                select(member.n, member.state, member.rule, member.payload).where(self._of(flow_id))
            )
        }
        edges: dict[str, list[str]] = {}
        for pred, succ in connection.execute(select(edge.pred, edge.succ).where(edge.flow == flow_id)):
            edges.setdefault(pred, []).append(succ)
        found = in_order(list(rows))
        return [
            MemberRecord(
                n, rows[n].state, tuple(f"{succ}{rows[succ].rule}" for succ in in_order(edges.get(n, []))),
                bytes_of(rows[n].payload),
            )
            for n in found
        ]  # fmt: skip

    def results(self, flow_id: str, numbers: Sequence[str]) -> list[bytes | None]:
        def read(connection: Connection) -> dict[str, Any]:
            found = dict[str, Any]()
            for part in _parts(numbers):
                rows = select(self._members.c.n, self._members.c.result).where(
                    self._of(flow_id), self._members.c.n.in_(part)
                )
                found |= {row.n: row.result for row in connection.execute(rows)}
            return found

        found = self._client.ask(read)
        return [None if (result := found.get(number)) is None else bytes_of(result) for number in numbers]

    def stopped(self) -> frozenset[str]:
        flows = self._flows.c
        ids = select(flows.id).where(flows.state.in_(_STOPPED), flows.ended.is_(None))
        return frozenset(self._client.ask(lambda connection: list(connection.execute(ids).scalars())))

    def cancel(self, flow_id: str) -> bool:
        self.last_end = None
        return self._client.transaction(lambda connection: self._stop(connection, flow_id, "cancelled"))

    def _stop(self, connection: Connection, flow_id: str, state: str, *, is_lost: bool = False) -> bool:
        found = connection.execute(
            select(self._flows.c.ended).where(self._flows.c.id == flow_id).with_for_update()
        ).one_or_none()
        if found is None:
            raise FlowGone(flow_id)
        if found.ended is not None:
            return False
        self._set(connection, flow_id, state=state, look=self._now(connection) + LOST_AFTER)
        self.last_end = self._end(connection, flow_id, is_lost=is_lost)
        return True

    def look(self) -> list[FlowEnd]:
        flows = self._flows.c

        def due(connection: Connection) -> list[Any]:
            wanted = select(flows.id, flows.state, flows.deadline, flows.ended)
            return list(connection.execute(wanted.where(flows.look <= self._now(connection)).limit(_LOOKS)))

        found = [self._client.transaction(partial(self._look_at, row=row)) for row in self._client.ask(due)]
        return [end for end in (*found, *self._look_for_ends()) if end]

    def _look_for_ends(self) -> Iterator[FlowEnd | None]:
        """End those whose last member was settled by a process that died before it could do so."""
        if time.monotonic() < self._look_again:
            return
        self._look_again = time.monotonic() + _LOOK_AGAIN
        flows, columns = self._flows.c, self._members.c
        runs = select(columns.n).where(columns.flow == flows.id, columns.state == "r").exists()
        ids = select(flows.id).where(flows.ended.is_(None), flows.state != "building", ~runs).limit(_LOOKS)
        for flow_id in self._client.ask(lambda connection: list(connection.execute(ids).scalars())):
            yield self._client.transaction(partial(self._end, flow_id=flow_id))

    def _look_at(self, connection: Connection, row: Any) -> FlowEnd | None:
        if row.ended is not None or row.state == "building":
            self._forget(connection, row)
            return None
        now = self._now(connection)
        if now < row.deadline:  # one that was to end
            self._set(connection, row.id, look=row.deadline)
            return self._end(connection, row.id)
        self._stop(connection, row.id, "expired", is_lost=now >= row.deadline + LOST_AFTER)
        return self.last_end

    def _forget(self, connection: Connection, row: Any) -> None:
        same = self._flows.c.id == row.id, self._flows.c.state == row.state, self._flows.c.look <= self._now(connection)
        if connection.execute(delete(self._flows).where(*same)).rowcount:
            connection.execute(delete(self._edges).where(self._edges.c.flow == row.id))
            connection.execute(delete(self._members).where(self._of(row.id)))

    # In the transaction that ends a job

    def settle(self, connection: Connection, end: MemberEnd, lease: Lease) -> None:
        """Settle the member, and push what follows from that; does nothing if it was counted before."""
        how, letter = end.how, "c" if end.how == "o" else end.how
        own, columns = self._one(end.flow, end.number), self._members.c
        mine = update(self._members).where(own, columns.state == "r")
        spent = connection.execute(select(columns.spent).where(own, columns.state == "r").with_for_update()).scalar()
        if spent is None:
            return
        if how == "o" and self._state(connection, end.flow, lock=False) in _RUNS:  # it was resumed meanwhile
            self._jobs.push(connection, lease.queue, [uncounted(lease.receipt)])
            return
        back = (
            {"payload": self._text(connection, uncounted(lease.receipt)), "held": 1, "delay": 0}
            if letter == "c"
            else {}
        )
        result = self._charsets.json(connection, "result", end.result) if self._has_room(connection, end) else None
        connection.execute(mine.values(state=letter, spent=1, result=result, **back))
        self._add_children(connection, end)
        if how == "f":
            running = self._flows.c.id == end.flow, self._flows.c.state == "running", self._flows.c.stops == 1
            connection.execute(update(self._flows).where(*running).values(state="failing"))
        self._follow(connection, end.flow, [(end.number, letter, bool(spent))])

    def _has_room(self, connection: Connection, end: MemberEnd) -> bool:
        size = select(func.coalesce(func.sum(func.length(self._members.c.result)), 0)).where(self._of(end.flow))
        return bool(end.result) and int(connection.execute(size).scalar_one()) + len(end.result) <= MOST_RESULTS

    def _add_children(self, connection: Connection, end: MemberEnd) -> None:
        """Those that follow the member wait for what it adds as well."""
        if not end.children:
            return
        edges = select(self._edges.c.succ).where(self._edges.c.flow == end.flow, self._edges.c.pred == end.number)
        followers = sorted(connection.execute(edges).scalars())
        for part in _parts(followers):
            more = update(self._members).where(self._of(end.flow), self._members.c.n.in_(part))
            connection.execute(more.values(open=self._members.c.open + len(end.children)))
        children = [one._replace(edges=tuple(f"{succ}s" for succ in followers)) for one in end.children]
        self._insert_members(connection, end.flow, children)
        grown = update(self._flows).where(self._flows.c.id == end.flow)
        connection.execute(grown.values(total=self._flows.c.total + len(children)))
        self._start_or_hold(connection, end.flow, [one.number for one in children])

    def _follow(self, connection: Connection, flow_id: str, over: list[tuple[str, str, bool]]) -> None:
        """``over``: each member that is over, its letter, and whether its edges were spent."""
        while over:
            number, letter, is_spent = over.pop()
            over += self._follow_one(connection, flow_id, number, letter, is_spent)

    def _follow_one(
        self, connection: Connection, flow_id: str, number: str, letter: str, is_spent: bool
    ) -> Iterator[tuple[str, str, bool]]:
        """Returns those that are over by this."""
        columns = self._members.c
        of_it = self._edges.c.flow == flow_id, self._edges.c.pred == number
        followers = sorted(connection.execute(select(self._edges.c.succ).where(*of_it)).scalars())
        over = list[tuple[str, str, bool]]()
        for part in _parts(followers):
            these = self._of(flow_id), columns.n.in_(part)
            rows = connection.execute(
                select(columns.n, columns.rule, columns.state, columns.spent)
                .where(*these)
                .order_by(columns.n)
                .with_for_update()
            ).all()
            if letter != "d":
                its = "k" if letter == "k" else "c"
                gone = [row for row in rows if row.rule == "s" and row.state == "w"]
                self._letter(connection, flow_id, [row.n for row in gone], its)
                over += [(row.n, its, bool(row.spent)) for row in gone]
            counted = [row.n for row in rows if (letter == "d" if row.rule == "s" else not is_spent)]
            over += self._count_down(connection, flow_id, counted, letter)
        return iter(over)

    def _count_down(
        self, connection: Connection, flow_id: str, numbers: Sequence[str], letter: str
    ) -> list[tuple[str, str, bool]]:
        if not numbers:
            return []
        columns = self._members.c
        these = self._of(flow_id), columns.n.in_(numbers)
        bad = columns.bad + int(letter in "fc")
        connection.execute(update(self._members).where(*these).values(open=columns.open - 1, bad=bad))
        ready = select(columns.n, columns.rule, columns.bad, columns.spent).where(
            *these, columns.open == 0, columns.state == "w"
        )
        rows = connection.execute(ready).all()
        skipped = [row for row in rows if row.rule == "f" and not row.bad]
        self._letter(connection, flow_id, [row.n for row in skipped], "k")
        self._push(connection, flow_id, [row.n for row in rows if row.rule != "s" and row not in skipped])
        held = self._start_or_hold(connection, flow_id, [row.n for row in rows if row.rule == "s"])
        spent = {row.n: bool(row.spent) for row in rows}
        return [*((row.n, "k", bool(row.spent)) for row in skipped), *((n, "c", spent[n]) for n in held)]

    def _start_or_hold(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> Sequence[str]:
        """Push these members of the rule s; returns those that are held, as the flow was stopped."""
        if not numbers or self._state(connection, flow_id, lock=False) in _RUNS:
            self._push(connection, flow_id, numbers)
            return []
        self._letter(connection, flow_id, numbers, "c", held=1)
        return numbers

    def _push(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> None:
        columns = self._members.c
        for part in _parts(in_order(list(numbers))):
            these = self._of(flow_id), columns.n.in_(part)
            wanted = select(columns.n, columns.queue, columns.delay, columns.payload).where(*these)
            rows = {row.n: row for row in connection.execute(wanted)}
            places = dict[tuple[str, float], list[bytes]]()
            for number in part:
                row = rows[number]
                places.setdefault((row.queue, row.delay), []).append(bytes_of(row.payload))
            for (queue, delay), payloads in places.items():
                self._jobs.push(connection, queue, payloads, delay)
            connection.execute(update(self._members).where(*these).values(state="r", payload=None, held=0))

    def _letter(self, connection: Connection, flow_id: str, numbers: Sequence[str], letter: str, **more: int) -> None:
        for part in _parts(numbers):
            these = update(self._members).where(self._of(flow_id), self._members.c.n.in_(part))
            connection.execute(these.values(state=letter, spent=1, **more))

    def after_settling(self, end: MemberEnd, is_ours: bool) -> None:
        """After the commit: end the flow if that was its last running member.

        Not within: of two that end at once, each would see the other run. A steward ends what nobody has.
        """
        self.last_end = None
        if is_ours:
            self.last_end = self._client.transaction(lambda connection: self._end(connection, end.flow))

    def _end(self, connection: Connection, flow_id: str, *, is_lost: bool = False) -> FlowEnd | None:
        """End the flow, if none of its members runs; ``is_lost``: in any case."""
        columns = self._members.c
        running = select(columns.n).where(self._of(flow_id), columns.state == "r").limit(1)
        if not is_lost and connection.execute(running).first():
            return None
        flows = self._flows.c
        row = connection.execute(
            select(flows.name, flows.state, flows.keep, flows.alarm_queue, flows.alarm)
            .where(flows.id == flow_id, flows.ended.is_(None), flows.state != "building").with_for_update()
        ).one_or_none()  # fmt: skip
        # Another may have resumed it before its row was locked.
        if row is None or (not is_lost and connection.execute(running).first()):
            return None
        state, now = self._over_as(connection, flow_id, row.state), self._now(connection)
        keep = row.keep if state == "done" else max(row.keep, FAILED_LASTS)
        self._set(connection, flow_id, state=state, ended=now, look=now + keep)
        if state == "failed" and row.alarm is not None:
            self._jobs.push(connection, row.alarm_queue, [bytes_of(row.alarm)])
            self._set(connection, flow_id, alarm=None)
        return FlowEnd(flow_id, row.name, state)

    def _over_as(self, connection: Connection, flow_id: str, state: str) -> str:
        if state != "running":
            return "failed" if state == "failing" else state
        bad = select(self._members.c.n).where(self._of(flow_id), self._members.c.state.in_(("f", "c")))
        return "failed" if connection.execute(bad.limit(1)).first() else "done"

    def resume(self, connection: Connection, flow_id: str, number: str) -> None:
        """In the transaction that puts a failed member back: what was cancelled waits again, what was held starts."""
        columns, now = self._members.c, self._now(connection)
        locked = self._state(connection, flow_id, lock=True)
        failed = update(self._members).where(self._one(flow_id, number), columns.state == "f")
        if locked is None or not connection.execute(failed.values(state="r")).rowcount:
            return
        later = case((self._flows.c.deadline > now + 86400, self._flows.c.deadline), else_=now + 86400)
        self._set(connection, flow_id, state="running", ended=None, look=later)
        connection.execute(update(self._members).where(self._of(flow_id), columns.state == "c").values(state="w"))
        held = select(columns.n).where(self._of(flow_id), columns.state == "w", columns.held == 1)
        self._push(connection, flow_id, list(connection.execute(held).scalars()))

    def _state(self, connection: Connection, flow_id: str, *, lock: bool) -> str | None:
        """Its state, locked against changes; ``lock``: to change it, else beside others that read it so."""
        found = select(self._flows.c.state).where(self._flows.c.id == flow_id).with_for_update(read=not lock)
        state: str | None = connection.execute(found).scalar()
        return state

    def _set(self, connection: Connection, flow_id: str, **values: Any) -> None:
        connection.execute(update(self._flows).where(self._flows.c.id == flow_id).values(**values))

    def _of(self, flow_id: str) -> ColumnElement[bool]:
        return self._members.c.flow == flow_id

    def _one(self, flow_id: str, number: str) -> ColumnElement[bool]:
        return self._of(flow_id) & (self._members.c.n == number)

    def _text(self, connection: Connection, payload: bytes) -> str:
        return self._charsets.json(connection, "payload", payload.decode())

    def _now(self, connection: Connection) -> float:
        clock = Clock(connection.dialect, self._jobs.clock)
        return float(connection.execute(select(clock.now())).scalar_one())


def _parts(numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    return (numbers[first : first + _ROWS] for first in range(0, len(numbers), _ROWS))
