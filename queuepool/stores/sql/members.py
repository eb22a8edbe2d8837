"""Members of flows in their table, in the transactions that end jobs and begin flows; see ``flows.SqlFlows``.

A member's row counts down as those that it follows end; the transaction that brings it to 0 pushes the member. What
ends a member updates its own row first, and those that follow it in the order of their keys, so that two that end at
once wait for each other and do not lock each other out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, insert, select, update

from queuepool.payload.envelope import uncounted
from queuepool.payload.lease import Lease
from queuepool.payload.members import MOST_RESULTS, MemberEnd, NewMember
from queuepool.stores.flows import in_order
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.texts import Charsets

#: rows that one statement names
_ROWS = 500
#: states of flows that go on
_RUNS = ("running",)


class SqlMembers:
    """The members of all flows in one database, pushed to ``jobs``; each verb is in its caller's transaction."""

    def __init__(self, client: SqlClient, jobs: JobsTable) -> None:
        self._jobs = jobs
        self._flows = client.tables.queuepool_flows
        self._members = client.tables.queuepool_members
        self._edges = client.tables.queuepool_edges
        self.charsets = Charsets(self._members)

    def settle(self, connection: Connection, end: MemberEnd, lease: Lease) -> None:
        """Settle the member, and push what follows from that; does nothing if it was counted before."""
        how, letter = end.how, "c" if end.how == "o" else end.how
        own, columns = self._one(end.flow, end.number), self._members.c
        mine = update(self._members).where(own, columns.state == "r")
        spent = connection.execute(select(columns.spent).where(own, columns.state == "r").with_for_update()).scalar()
        if spent is None:
            return
        if how == "o" and self.state(connection, end.flow, lock=False) in _RUNS:  # it was resumed meanwhile
            self._jobs.push(connection, lease.queue, [uncounted(lease.receipt)])
            return
        back = (
            {"payload": self.text(connection, uncounted(lease.receipt)), "held": 1, "delay": 0} if letter == "c" else {}
        )
        result = self.charsets.json(connection, "result", end.result) if self._has_room(connection, end) else None
        connection.execute(mine.values(state=letter, spent=1, result=result, **back))
        self._add_children(connection, end)
        if how == "f":
            running = self._flows.c.id == end.flow, self._flows.c.state == "running", self._flows.c.stops == 1
            connection.execute(update(self._flows).where(*running).values(state="failing"))
        self._follow(connection, end.flow, [(end.number, letter, bool(spent))])

    def _has_room(self, connection: Connection, end: MemberEnd) -> bool:
        size = select(func.coalesce(func.sum(func.length(self._members.c.result)), 0)).where(self.of(end.flow))
        return bool(end.result) and int(connection.execute(size).scalar_one()) + len(end.result) <= MOST_RESULTS

    def _add_children(self, connection: Connection, end: MemberEnd) -> None:
        """Those that follow the member wait for what it adds as well."""
        if not end.children:
            return
        edges = select(self._edges.c.succ).where(self._edges.c.flow == end.flow, self._edges.c.pred == end.number)
        followers = sorted(connection.execute(edges).scalars())
        for part in parts_of(followers):
            more = update(self._members).where(self.of(end.flow), self._members.c.n.in_(part))
            connection.execute(more.values(open=self._members.c.open + len(end.children)))
        children = [one._replace(edges=tuple(f"{succ}s" for succ in followers)) for one in end.children]
        self.insert(connection, end.flow, children)
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
        for part in parts_of(followers):
            these = self.of(flow_id), columns.n.in_(part)
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
        these = self.of(flow_id), columns.n.in_(numbers)
        bad = columns.bad + int(letter in "fc")
        connection.execute(update(self._members).where(*these).values(open=columns.open - 1, bad=bad))
        ready = select(columns.n, columns.rule, columns.bad, columns.spent).where(
            *these, columns.open == 0, columns.state == "w"
        )
        rows = connection.execute(ready).all()
        skipped = [row for row in rows if row.rule == "f" and not row.bad]
        self._letter(connection, flow_id, [row.n for row in skipped], "k")
        self.push(connection, flow_id, [row.n for row in rows if row.rule != "s" and row not in skipped])
        held = self._start_or_hold(connection, flow_id, [row.n for row in rows if row.rule == "s"])
        spent = {row.n: bool(row.spent) for row in rows}
        return [*((row.n, "k", bool(row.spent)) for row in skipped), *((n, "c", spent[n]) for n in held)]

    def _start_or_hold(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> Sequence[str]:
        """Push these members of the rule s; returns those that are held, as the flow was stopped."""
        if not numbers or self.state(connection, flow_id, lock=False) in _RUNS:
            self.push(connection, flow_id, numbers)
            return []
        self._letter(connection, flow_id, numbers, "c", held=1)
        return numbers

    def push(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> None:
        columns = self._members.c
        for part in parts_of(in_order(list(numbers))):
            these = self.of(flow_id), columns.n.in_(part)
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
        for part in parts_of(numbers):
            these = update(self._members).where(self.of(flow_id), self._members.c.n.in_(part))
            connection.execute(these.values(state=letter, spent=1, **more))

    def resume(self, connection: Connection, flow_id: str, number: str) -> None:
        """In the transaction that puts a failed member back: what was cancelled waits again, what was held starts."""
        columns, now = self._members.c, self.now(connection)
        locked = self.state(connection, flow_id, lock=True)
        failed = update(self._members).where(self._one(flow_id, number), columns.state == "f")
        if locked is None or not connection.execute(failed.values(state="r")).rowcount:
            return
        later = case((self._flows.c.deadline > now + 86400, self._flows.c.deadline), else_=now + 86400)
        self.set(connection, flow_id, state="running", ended=None, look=later)
        connection.execute(update(self._members).where(self.of(flow_id), columns.state == "c").values(state="w"))
        held = select(columns.n).where(self.of(flow_id), columns.state == "w", columns.held == 1)
        self.push(connection, flow_id, list(connection.execute(held).scalars()))

    def insert(self, connection: Connection, flow_id: str, members: Sequence[NewMember]) -> None:
        common = {"flow": flow_id, "state": "w", "bad": 0, "spent": 0, "held": 0}
        rows = [
            {
                **common, "n": one.number, "rule": one.rule, "queue": one.queue, "delay": one.delay,
                "open": one.follows, "payload": self.text(connection, one.payload),
            }
            for one in members
        ]  # fmt: skip
        edges = [{"flow": flow_id, "pred": one.number, "succ": edge[:-1]} for one in members for edge in one.edges]
        if rows:
            connection.execute(insert(self._members), rows)
        if edges:
            connection.execute(insert(self._edges), edges)

    def state(self, connection: Connection, flow_id: str, *, lock: bool) -> str | None:
        """Its state, locked against changes; ``lock``: to change it, else beside others that read it so."""
        found = select(self._flows.c.state).where(self._flows.c.id == flow_id).with_for_update(read=not lock)
        state: str | None = connection.execute(found).scalar()
        return state

    def set(self, connection: Connection, flow_id: str, **values: Any) -> None:
        connection.execute(update(self._flows).where(self._flows.c.id == flow_id).values(**values))

    def of(self, flow_id: str) -> ColumnElement[bool]:
        return self._members.c.flow == flow_id

    def _one(self, flow_id: str, number: str) -> ColumnElement[bool]:
        return self.of(flow_id) & (self._members.c.n == number)

    def text(self, connection: Connection, payload: bytes) -> str:
        return self.charsets.json(connection, "payload", payload.decode())

    def now(self, connection: Connection) -> float:
        clock = Clock(connection.dialect, self._jobs.clock)
        return float(connection.execute(select(clock.now())).scalar_one())


def parts_of(numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    """These in parts that a statement can name."""
    return (numbers[first : first + _ROWS] for first in range(0, len(numbers), _ROWS))
