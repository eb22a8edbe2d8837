"""Flows in tables of our own; see ``stores.flows.Flows``. What ends a member is in ``members.SqlMembers``."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select

from queuepool.errors import NoSuchFlow
from queuepool.payload.lease import Lease
from queuepool.payload.members import MOST_RESULTS, MemberEnd, NewFlow, NewMember, member_in_text, names_in
from queuepool.stores.flows import (
    ANY_FLOW,
    FAILED_LASTS,
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
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.done_members import DoneMembers
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.left_over import SOON
from queuepool.stores.sql.members import SqlMembers
from queuepool.stores.sql.parts import parts_of
from queuepool.stores.steps import in_steps

#: how many flows one look of a steward takes, and one statement of a list
_LOOKS, _LISTED = 100, 1000
#: members that one transaction writes, and edges unless one member has more
_AT_ONCE, _MOST_EDGES = 1000, 10_000
#: seconds between looks for flows whose end was missed; most for which one look goes on with what is left of a flow
_LOOK_AGAIN, _LONGEST = 5.0, 0.5
#: states of flows that start nothing more by the rule s
_STOPPED = ("failing", "cancelled", "expired")


class SqlFlows:
    """The flows of one database; members are pushed to ``jobs``."""

    def __init__(self, client: SqlClient, jobs: JobsTable) -> None:
        self._client = client
        self._jobs = jobs
        self._flows = client.tables.queuepool_flows
        self._members = client.tables.queuepool_members
        self._edges = client.tables.queuepool_edges
        self._joins = client.tables.queuepool_joins
        self._rows = SqlMembers(client, jobs)
        #: ends members and takes jobs at once, where the database can
        self.done_members = DoneMembers(client, jobs, self._rows)
        #: when (monotonic) to look for flows whose end was missed
        self._look_again = 0.0
        self.last_end: FlowEnd | None = None
        self.refused = ""

    def write(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        self._jobs.examine()  # before the transaction
        pieces = list(in_steps(members, _AT_ONCE, _MOST_EDGES, lambda one: len(one.edges)))
        if len(pieces) == 1:
            self._client.transaction(partial(self.write_within, flow=flow, members=members))
            return
        for piece in pieces:
            self.add(flow, piece)
        self.start(flow.id)

    def write_within(self, connection: Connection, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """As ``write``, in the caller's transaction: other connections see it only once it has begun."""
        self._insert_flow(connection, flow, "running")
        roots = [one for one in members if not one.follows]
        self._rows.insert(connection, flow.id, [one for one in members if one.follows])
        self._rows.insert(connection, flow.id, roots, "r")
        self._rows.push_new(connection, roots)

    def add(self, flow: NewFlow, members: Sequence[NewMember]) -> bool:
        """Write a piece; ``False`` if the flow has begun."""
        return self._client.transaction(lambda connection: self._add(connection, flow, members))

    def _add(self, connection: Connection, flow: NewFlow, members: Sequence[NewMember]) -> bool:
        state = self._rows.state(connection, flow.id, lock=True)
        if state is None:
            self._insert_flow(connection, flow, "building")
        elif state != "building":
            return False
        numbers = [one.number for one in members]
        known = set[str]()
        for part in parts_of(numbers):
            there = select(self._members.c.n).where(self._rows.of(flow.id), self._members.c.n.in_(part))
            known |= set(connection.execute(there).scalars())
        self._rows.insert(connection, flow.id, [one for one in members if one.number not in known])
        return True

    def _insert_flow(self, connection: Connection, flow: NewFlow, state: str) -> None:
        now, words = self._rows.now(connection), self._rows.charsets
        queue, payload = flow.on_failure or (None, None)
        look = UNSTARTED_LASTS if state == "building" else flow.deadline
        row = {
            "id": flow.id, "name": words.text(connection, "queue", flow.name), "names": flow.names, "state": state,
            "total": flow.total, "roots": flow.roots, "stops": int(flow.stops), "keep": flow.keep, "created": now,
            "deadline": now + flow.deadline, "look": now + look, "ended": None, "alarm_queue": queue,
            "alarm": payload and self._rows.text(connection, payload),
        }  # fmt: skip
        connection.execute(insert(self._flows), [row])

    def start(self, flow_id: str) -> None:
        """Begin it, and push all that starts with it; does nothing if it has begun. Raises ``NoSuchFlow``."""
        self._client.transaction(lambda connection: self._start(connection, flow_id))

    def _start(self, connection: Connection, flow_id: str) -> None:
        state = self._rows.state(connection, flow_id, lock=True)
        counted = select(func.count()).where(self._rows.of(flow_id))
        whole = select(self._flows.c.total, self._flows.c.deadline).where(self._flows.c.id == flow_id)
        if state is None:
            raise NoSuchFlow(flow_id)
        if state != "building":
            return
        total, deadline = connection.execute(whole).one()
        if connection.execute(counted).scalar_one() != total:
            raise NoSuchFlow(flow_id)
        self._rows.set(connection, flow_id, state="running", look=deadline)
        roots = select(self._members.c.n).where(self._rows.of(flow_id), self._members.c.open == 0)
        self._rows.push(connection, flow_id, list(connection.execute(roots).scalars()))

    def find(self, flow_id: str) -> FlowRecord | None:
        return self._client.ask(partial(self._find, flow_id=flow_id))

    def _find(self, connection: Connection, flow_id: str) -> FlowRecord | None:
        row = connection.execute(self._selected().where(self._flows.c.id == flow_id)).first()
        return None if row is None else self._record(connection, row)

    def standing(self, flow_id: str) -> FlowStanding | None:
        wanted = select(self._flows.c.state, self._flows.c.ended).where(self._flows.c.id == flow_id)
        row = self._client.ask(lambda connection: connection.execute(wanted).one_or_none())
        return row and FlowStanding(row.state, row.ended is not None)

    def page(
        self, after: FlowPlace | None = None, count: int = 100, wanted: FlowFilter = ANY_FLOW
    ) -> Iterator[FlowRecord]:
        rows = self._rows_behind(after, wanted)  # perhaps more than fit: not all databases tell capitals from others
        for row in islice((row for row in rows if wanted.fits(row.state, row.name)), count):
            yield self._client.ask(partial(self._record, row=row))

    def _rows_behind(self, after: FlowPlace | None, wanted: FlowFilter) -> Iterator[Any]:
        while rows := self._client.ask(partial(self._read_behind, after=after, wanted=wanted)):
            yield from rows
            after = FlowPlace(rows[-1].created, rows[-1].id)

    def _read_behind(self, connection: Connection, after: FlowPlace | None, wanted: FlowFilter) -> Sequence[Any]:
        flows, found = self._flows.c, self._selected().where(*self._fits(wanted))
        if after:
            is_behind = (flows.created == after.created) & (flows.id < after.id)
            found = found.where((flows.created < after.created) | is_behind)
        return connection.execute(found.order_by(flows.created.desc(), flows.id.desc()).limit(_LISTED)).all()

    def _fits(self, wanted: FlowFilter) -> Iterator[ColumnElement[bool]]:
        if wanted.state:
            yield self._flows.c.state == wanted.state
        if wanted.name.isprintable() and wanted.name:  # no database has a NUL
            start, is_whole = wanted.name.removesuffix("*"), not wanted.name.endswith("*")
            yield self._flows.c.name == start if is_whole else self._flows.c.name.startswith(start, autoescape=True)

    def _selected(self) -> Select[Any]:
        flows = self._flows.c
        return select(flows.id, flows.name, flows.state, flows.created, flows.deadline, flows.ended)

    def _record(self, connection: Connection, row: Any) -> FlowRecord:
        counts = self._counts(connection, row.id)
        return FlowRecord(row.id, row.name, row.state, counts, row.created, row.deadline, row.ended)

    def _counts(self, connection: Connection, flow_id: str) -> FlowCounts:
        return FlowCounts.of(self._counts_of_all(connection, [flow_id]).get(flow_id, []))

    def _counts_of_all(self, connection: Connection, ids: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
        """By flow: the number of members for each letter."""
        columns, found = self._members.c, dict[str, list[tuple[str, int]]]()
        for part in parts_of(ids):
            counted = select(columns.flow, columns.state, func.count()).where(columns.flow.in_(part))
            for flow_id, letter, count in connection.execute(counted.group_by(columns.flow, columns.state)):
                found.setdefault(flow_id, []).append((letter, int(count)))
        return found

    def under_way(self, count: int = 10_000) -> list[FlowPace]:
        return self._client.ask(partial(self._read_under_way, count=count))

    def _read_under_way(self, connection: Connection, count: int) -> list[FlowPace]:
        flows = self._flows.c
        wanted = select(flows.id, flows.name, flows.created).where(flows.ended.is_(None), flows.state != "building")
        rows = connection.execute(wanted.limit(count)).all()
        counts = self._counts_of_all(connection, [row.id for row in rows])
        return [_pace(row, FlowCounts.of(counts.get(row.id, []))) for row in rows]

    def members(self, flow_id: str) -> list[MemberRecord]:
        return self._client.ask(partial(self._read_members, flow_id=flow_id))

    def _read_members(self, connection: Connection, flow_id: str) -> list[MemberRecord]:
        member, edge = self._members.c, self._edges.c
        wanted = select(member.n, member.state, member.rule, member.name).where(member.flow == flow_id)
        rows = {row.n: row for row in connection.execute(wanted)}
        edges: dict[str, list[str]] = {}
        for pred, succ in connection.execute(select(edge.pred, edge.succ).where(edge.flow == flow_id)):
            edges.setdefault(pred, []).append(succ)
        kept = connection.execute(select(self._flows.c.names).where(self._flows.c.id == flow_id)).scalar()
        names = names_in(bytes_of(kept).decode())

        def record(n: str) -> MemberRecord:
            follow = tuple(f"{succ}{rows[succ].rule}" for succ in in_order(edges.get(n, [])))
            return MemberRecord(n, rows[n].state, follow, rows[n].name or names.get(n, ""))

        return [record(n) for n in in_order(list(rows))]

    def results(self, flow_id: str, numbers: Sequence[str]) -> list[bytes | None]:
        """As the contract says; what is taken at once is bounded here, as no row says how much there is in all."""

        def read(connection: Connection) -> dict[str, bytes]:
            found, size = dict[str, bytes](), 0
            for part in parts_of(numbers):
                members = self._members.c
                rows = select(members.n, members.result).where(self._rows.of(flow_id), members.n.in_(part))
                for number, result in connection.execute(rows.where(members.result.is_not(None))):
                    size += len(result)
                    if size <= MOST_RESULTS:
                        found[number] = bytes_of(result)
            return found

        found = self._client.ask(read)
        return [found.get(number) for number in numbers]

    def stopped(self) -> frozenset[str]:
        flows = self._flows.c
        ids = select(flows.id).where(flows.state.in_(_STOPPED), flows.ended.is_(None))
        return frozenset(self._client.ask(lambda connection: list(connection.execute(ids).scalars())))

    def cancel(self, flow_id: str) -> bool:
        self.last_end = None
        return self._client.transaction(lambda connection: self._stop(connection, flow_id, "cancelled"))

    def _stop(self, connection: Connection, flow_id: str, state: str, *, is_lost: bool = False) -> bool:
        flows = self._flows.c
        wanted = select(flows.state, flows.ended, flows.deadline).where(flows.id == flow_id)
        found = connection.execute(wanted.with_for_update()).one_or_none()
        if found is None:
            raise NoSuchFlow(flow_id)
        if found.ended is not None:
            return False
        now, state = self._rows.now(connection), "cancelled" if found.state == "cancelled" else state
        # From here on it has as long as one whose deadline is past.
        look = now + (SOON if self._rows.left_over.has_any(connection, flow_id) else LOST_AFTER)
        self._rows.set(connection, flow_id, state=state, look=look, deadline=min(found.deadline, now))
        self.last_end = self._end(connection, flow_id, is_lost=is_lost)
        return True

    def resume(self, flow_id: str, number: str) -> None:
        columns, flows = self._members.c, self._flows.c
        failed = select(columns.n).where(self._rows.of(flow_id), columns.n == number, columns.state == "f")
        goes_on = select(flows.id).where(flows.id == flow_id, flows.state.not_in(("cancelled", "expired")))
        both = failed.where(goes_on.exists())
        if self._client.ask(lambda connection: connection.execute(both).first()):
            self._client.transaction(partial(self._rows.resume, flow_id=flow_id, number=number))

    def look(self) -> list[FlowEnd]:
        flows = self._flows.c

        def due(connection: Connection) -> list[Any]:
            wanted = select(flows.id, flows.state, flows.deadline, flows.ended)
            return list(connection.execute(wanted.where(flows.look <= self._rows.now(connection)).limit(_LOOKS)))

        found = [self._look_after(row) for row in self._client.ask(due)]
        return [end for end in (*found, *self._look_for_ends()) if end]

    def _look_after(self, row: Any) -> FlowEnd | None:
        is_under_way = row.ended is None and row.state != "building"
        if is_under_way and self._go_on(row.id, _LONGEST):
            return None  # the next look goes on
        return self._client.transaction(partial(self._look_at, row=row))

    def _go_on(self, flow_id: str, seconds: float = math.inf) -> bool:
        """Do what was left over of the flow, for about so long; whether there is more."""
        ends, work = time.monotonic() + seconds, partial(self._rows.go_on, flow_id=flow_id)
        while (has_more := self._client.transaction(work)) and time.monotonic() < ends:
            pass
        self._rows.unfinished.discard(flow_id)
        return has_more

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
        self.last_end = None
        now = self._rows.now(connection)
        if now < row.deadline:  # one that was to end
            self._rows.set(connection, row.id, look=row.deadline)
            if self._rows.left_over.has_any(connection, row.id):  # since a moment ago
                self._rows.set(connection, row.id, look=now + SOON)
            return self._end(connection, row.id)
        self._stop(connection, row.id, "expired", is_lost=now >= row.deadline + LOST_AFTER)
        return self.last_end

    def _forget(self, connection: Connection, row: Any) -> None:
        same = (
            self._flows.c.id == row.id,
            self._flows.c.state == row.state,
            self._flows.c.look <= self._rows.now(connection),
        )
        if connection.execute(delete(self._flows).where(*same)).rowcount:
            for table in (self._edges, self._joins):
                connection.execute(delete(table).where(table.c.flow == row.id))
            connection.execute(delete(self._members).where(self._rows.of(row.id)))

    def settle(self, connection: Connection, end: MemberEnd, lease: Lease) -> None:
        """Settle the member in the transaction that ends its job."""
        self._rows.settle(connection, end, lease)

    def settle_done(self, connection: Connection, ends: Sequence[MemberEnd]) -> list[str]:
        """Settle these as ``SqlMembers.settle_done``; returns of which flows ``to_go_on`` is to be asked."""
        return self._rows.settle_done(connection, ends)

    def to_go_on(self, flows: Iterable[str], taken: Sequence[Lease]) -> list[FlowEnd]:
        """Those of these flows that ``after`` is to be given after the commit.

        One of which another member was taken is not over, and the end of that job asks again. It may be a copy of one
        that has ended before: then the flow ends a little later.
        """
        unfinished = self._rows.unfinished
        others = [one for one in flows if one in unfinished or not any(_is_of(one, lease) for lease in taken)]
        return [FlowEnd(one, "", "more" if one in unfinished else "") for one in others]

    def after(self, found: Sequence[FlowEnd]) -> list[FlowEnd]:
        ends = [self._end_if_over(one.id) for one in found]
        return [end for end in ends if end]

    def settled(self, end: MemberEnd | None, is_ours: bool) -> bool:
        """After the commit: end the flow if that was its last running member; returns ``is_ours``.

        Not within: of two that end at once, each would see the other run. A steward ends what both have missed.
        """
        self.last_end = None
        if end and is_ours:
            self.last_end = self._end_if_over(end.flow)
        return is_ours

    def _end_if_over(self, flow_id: str) -> FlowEnd | None:
        if flow_id in self._rows.unfinished:
            self._go_on(flow_id)
        if self._client.ask(lambda connection: connection.execute(self._running(flow_id)).first()):
            return None  # as for all members of a flow but the last: that needs no transaction
        return self._client.transaction(lambda connection: self._end(connection, flow_id))

    def _running(self, flow_id: str) -> Select[tuple[str]]:
        return select(self._members.c.n).where(self._rows.of(flow_id), self._members.c.state == "r").limit(1)

    def _end(self, connection: Connection, flow_id: str, *, is_lost: bool = False) -> FlowEnd | None:
        """End the flow, if none of its members runs; ``is_lost``: in any case."""
        if not is_lost and self._is_unfinished(connection, flow_id):
            return None
        flows = self._flows.c
        row = connection.execute(
            select(flows.name, flows.state, flows.keep, flows.alarm_queue, flows.alarm)
            .where(flows.id == flow_id, flows.ended.is_(None), flows.state != "building").with_for_update()
        ).one_or_none()  # fmt: skip
        # Another may have resumed it before its row was locked.
        if row is None or (not is_lost and self._is_unfinished(connection, flow_id)):
            return None
        if is_lost:
            self._rows.left_over.drop(connection, flow_id)
        state, now = self._over_as(connection, flow_id, row.state), self._rows.now(connection)
        keep = row.keep if state == "done" else max(row.keep, FAILED_LASTS)
        self._rows.set(connection, flow_id, state=state, ended=now, look=now + keep)
        if state == "failed" and row.alarm is not None:
            self._jobs.push(connection, row.alarm_queue, [bytes_of(row.alarm)])
            self._rows.set(connection, flow_id, alarm=None)
        return FlowEnd(flow_id, row.name, state)

    def _is_unfinished(self, connection: Connection, flow_id: str) -> bool:
        is_running = connection.execute(self._running(flow_id)).first() is not None
        return is_running or self._rows.left_over.has_any(connection, flow_id)

    def _over_as(self, connection: Connection, flow_id: str, state: str) -> str:
        if state != "running":
            return "failed" if state == "failing" else state
        bad = select(self._members.c.n).where(self._rows.of(flow_id), self._members.c.state.in_(("f", "c")))
        return "failed" if connection.execute(bad.limit(1)).first() else "done"


def _pace(row: Any, counts: FlowCounts) -> FlowPace:
    return FlowPace(row.id, row.name, row.created, counts.waiting + counts.cancelled, counts.running, sum(counts))


def _is_of(flow_id: str, lease: Lease) -> bool:
    """Whether the job is a member of this flow."""
    if flow_id.encode() not in lease.receipt:
        return False
    member = member_in_text(lease.receipt.decode(errors="replace"))
    return member is not None and member.flow == flow_id
