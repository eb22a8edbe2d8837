"""Members of flows in their table, in the transactions that end jobs and begin flows; see ``flows.SqlFlows``.

A member's row counts down as those that it follows end; the transaction that brings it to 0 pushes the member. What
ends a member updates its own row first, and those that follow it in the order of their keys, so that two that end at
once wait for each other and do not lock each other out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, case, insert, select, update

from queuepool.payload.envelope import uncounted
from queuepool.payload.lease import Lease
from queuepool.payload.members import BLOCK, MOST_MEMBERS, MemberEnd, NewMember, stripe_of
from queuepool.stores.flows import in_order
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.left_over import MOST_EDGES, SOON, LeftOver, Over
from queuepool.stores.sql.parts import among, by_count, locked_parts, parts_of
from queuepool.stores.sql.texts import Charsets

#: states of flows that go on
_RUNS = ("running",)


class _Follower(NamedTuple):
    """A member that follows others; ``striped``: if it counts them in many rows, how many in turn in one."""

    n: str
    rule: str
    striped: int


class Ready(NamedTuple):
    """A member that has nothing to wait for."""

    n: str
    rule: str
    bad: int
    spent: int


class SqlMembers:
    """The members of all flows in one database, pushed to ``jobs``; each verb is in its caller's transaction."""

    def __init__(self, client: SqlClient, jobs: JobsTable) -> None:
        self._jobs = jobs
        self._flows = client.tables.queuepool_flows
        self._members = client.tables.queuepool_members
        self._edges = client.tables.queuepool_edges
        self._joins = client.tables.queuepool_joins
        self.charsets = Charsets(self._members)
        self.left_over = LeftOver(client)
        #: flows of which a transaction has left something over: who has carried it out goes on with it
        self.unfinished = set[str]()

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
        result = self.charsets.json(connection, "result", end.result) if end.result else None
        connection.execute(mine.values(state=letter, spent=1, result=result, **back))
        over = [Over(end.number, letter, bool(spent))]
        self.follow(connection, end.flow, over, self._add_children(connection, end), fails=how == "f")

    def settle_done(self, connection: Connection, ends: Sequence[MemberEnd]) -> list[str]:
        """Settle members that are done, with no result and nothing to add; those of one flow in a few statements.

        Returns as ``quiet``.
        """
        flows: dict[str, list[str]] = {}
        for end in ends:
            flows.setdefault(end.flow, []).append(end.number)
        going = {flow for flow, numbers in sorted(flows.items()) if self._settle_done(connection, flow, numbers)}
        return self.quiet(flows, going)

    def quiet(self, flows: Iterable[str], going: Set[str]) -> list[str]:
        """Those of these flows that may be over, as nothing has started, or of which something was left over."""
        return [one for one in flows if one not in going or one in self.unfinished]

    def _settle_done(self, connection: Connection, flow_id: str, numbers: list[str]) -> bool:
        """Whether anything has started by it."""
        over = list[Over]()
        for part in locked_parts(connection, sorted(set(numbers))):
            over += self._end(connection, flow_id, part)
        return self.follow(connection, flow_id, over, [])

    def _end(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> list[Over]:
        """These members are done, as far as they run."""
        columns, fresh = self._members.c, set[str]()
        run = self.of(flow_id), among(connection, columns.n, numbers), columns.state == "r"
        if connection.dialect.update_returning:  # in one statement those that were not resumed, nearly always all
            made = update(self._members).where(*run, columns.spent == 0).values(state="d", spent=1)
            fresh = set(connection.execute(made.returning(columns.n)).scalars())
        rows: Sequence[Any] = ()
        if len(fresh) < len(numbers):
            mine = select(columns.n, columns.spent).where(*run).order_by(columns.n).with_for_update()
            rows = connection.execute(mine).all()
            self._letter(connection, flow_id, [row.n for row in rows], "d")
        return [*(Over(n, "d", is_spent=False) for n in fresh), *(Over(row.n, "d", bool(row.spent)) for row in rows)]

    def _add_children(self, connection: Connection, end: MemberEnd) -> list[Ready]:
        """Those that follow the member wait for what it adds as well; returns that, which is to start."""
        if not end.children:
            return []
        columns, joins, own = self._members.c, self._joins.c, Over(end.number, "d", is_spent=False)
        found = self._edges_behind(connection, end.flow, [own], MOST_MEMBERS)
        blocks: dict[str, int] = {row.n: row.striped for row in found}
        followers = sorted(blocks)
        for part in locked_parts(connection, followers):
            self._lock(connection, end.flow, part)
            more = update(self._members).where(self.of(end.flow), columns.n.in_(part), columns.striped == 0)
            connection.execute(more.values(open=columns.open + len(end.children)))
            for block in sorted({blocks[n] for n in part} - {0}):
                numbers = [n for n in part if blocks[n] == block]
                stripes = self._lock_stripes(connection, end.flow, numbers, stripe_of(end.number, block))
                connection.execute(update(self._joins).where(*stripes).values(open=joins.open + len(end.children)))
        children = [one._replace(edges=tuple(f"{succ}s" for succ in followers)) for one in end.children]
        self.insert(connection, end.flow, children)
        return [Ready(one.number, "s", 0, 0) for one in children]

    def follow(
        self, connection: Connection, flow_id: str, over: list[Over], ready: list[Ready], *, fails: bool = False
    ) -> bool:
        """Go on behind members that are over, and start what is ready; returns whether anything has started.

        The flow's own row comes last, after all rows of members: each that ends one takes them in this order.
        """
        room = MOST_EDGES
        over += self._skip(connection, flow_id, ready)
        while over and room > 0:
            room -= self._follow_some(connection, flow_id, over, ready, room)
            over += self._skip(connection, flow_id, ready)
        if fails:
            self._stop(connection, flow_id)
        held = self._start(connection, flow_id, ready)
        has_started = len(held) < len(ready)
        if held:
            has_started |= self.follow(connection, flow_id, held, [])
        if over:
            self.left_over.put(connection, flow_id, over)
            self.set(connection, flow_id, look=self.now(connection) + SOON)
            self.unfinished.add(flow_id)
        return has_started

    def go_on(self, connection: Connection, flow_id: str) -> bool:
        """Do some of what is left over of the flow; whether there is more."""
        self.follow(connection, flow_id, self.left_over.take(connection, flow_id), [])
        return self.left_over.has_any(connection, flow_id)

    def _follow_some(
        self, connection: Connection, flow_id: str, over: list[Over], ready: list[Ready], room: int
    ) -> int:
        """Go on behind those that have ended alike, or as many of them as there is room for; how many edges that were.

        If more follow a single one, it is over again for the rest of these.
        """
        some = [over[-1]] if over[-1].told else [one for one in over if one[1:] == over[-1][1:]]
        while len(edges := self._edges_behind(connection, flow_id, some, room + 1)) > room and len(some) > 1:
            some = some[: len(some) // 2]
        gone = set(some)
        over[:] = [one for one in over if one not in gone]
        if len(edges) > room:
            over.append(some[0]._replace(told=some[0].told + room))
        over += self._tell(connection, flow_id, some, edges[:room], ready)
        return len(edges)

    def _edges_behind(self, connection: Connection, flow_id: str, over: Sequence[Over], most: int) -> list[Any]:
        """At most so many edges of these that are not told yet: who has ended, and the fields of the ``_Follower``."""
        edges, found = self._edges.c, list[Any]()
        for part in parts_of([one.number for one in over]):
            these = select(self._edges).where(edges.flow == flow_id, among(connection, edges.pred, part))
            if len(over) == 1:
                these = these.order_by(edges.succ).offset(over[0].told)
            found += connection.execute(self._followers(these.limit(most - len(found))))
            if len(found) == most:
                break
        return found

    def _followers(self, edges: Select[Any]) -> Select[Any]:
        """Of these edges: who has ended, and the fields of the ``_Follower``, in the order of their keys.

        They are cut off by a limit and joined then: a database that does not know yet how many members the flow has
        could otherwise read them all for each edge. A join keeps no order by itself, and only the last of these may be
        left over.
        """
        edge, columns = edges.subquery().c, self._members.c
        follows = (columns.flow == edge.flow) & (columns.n == edge.succ)
        return (
            select(edge.pred, columns.n, columns.rule, columns.striped)
            .join_from(edge.pred.table, self._members, follows)
            .order_by(edge.succ)
        )

    def _tell(
        self, connection: Connection, flow_id: str, ended: Sequence[Over], edges: Sequence[Any], ready: list[Ready]
    ) -> list[Over]:
        """Tell those that follow members which have ended alike. Adds what is ready; returns those that are over."""
        over, letter, is_back = list[Over](), ended[0].letter, ended[0].is_back
        by_number, rows = {one.number: one for one in ended}, dict[_Follower, list[Over]]()
        for pred, *follower in edges:
            rows.setdefault(_Follower(*follower), []).append(by_number[pred])
        if letter != "d" and not is_back:
            gone = sorted(row.n for row in rows if row.rule == "s")
            over += self._give_up(connection, flow_id, gone, "k" if letter == "k" else "c")
        plain, striped = dict[str, int](), dict[str, Counter[int]]()
        for row, before in rows.items():
            counted = before if row.rule == "s" else [one for one in before if not one.is_spent]
            if not counted or (row.rule == "s" and letter != "d"):
                continue
            if row.striped:
                striped[row.n] = Counter(stripe_of(one.number, row.striped) for one in counted)
            else:
                plain[row.n] = len(counted)
        ready += self._count_down(connection, flow_id, plain, letter in "fc")
        ready += self._count_down_stripes(connection, flow_id, striped, letter in "fc")
        return over

    def _skip(self, connection: Connection, flow_id: str, ready: list[Ready]) -> list[Over]:
        """Leave out those that wait for a failure, if there was none; returns these, which are over."""
        skipped = [row for row in ready if row.rule == "f" and not row.bad]
        self._letter(connection, flow_id, [row.n for row in skipped], "k")
        ready[:] = [row for row in ready if row.rule != "f" or row.bad]
        return [Over(row.n, "k", bool(row.spent)) for row in skipped]

    def _give_up(self, connection: Connection, flow_id: str, numbers: Sequence[str], letter: str) -> list[Over]:
        """These members are over, as far as they wait."""
        columns, rows = self._members.c, list[Any]()
        for part in locked_parts(connection, numbers):
            waiting = select(columns.n, columns.spent).where(
                self.of(flow_id), columns.n.in_(part), columns.state == "w"
            )
            rows += connection.execute(waiting.order_by(columns.n).with_for_update()).all()
        self._letter(connection, flow_id, [row.n for row in rows], letter)
        return [Over(row.n, letter, bool(row.spent)) for row in rows]

    def _count_down_stripes(
        self, connection: Connection, flow_id: str, counts: Mapping[str, Mapping[int, int]], is_bad: bool
    ) -> list[Ready]:
        """Count down by so much in each stripe of each, and where a stripe is over the member itself.

        A row is held until the commit of who has changed it, and the member's is one for all.
        """
        joins, found = self._joins.c, list[Ready]()
        for number, stripes in sorted(counts.items()):
            of_it = joins.flow == flow_id, joins.n == number
            these = *of_it, among(connection, joins.stripe, sorted(stripes))
            if len(stripes) > 1:
                connection.execute(select(joins.stripe).where(*these).order_by(joins.stripe).with_for_update()).all()
            for count, alike in by_count(stripes):
                less = {"open": joins.open - count, "bad": joins.bad + count * int(is_bad)}
                connection.execute(
                    update(self._joins).where(*of_it, among(connection, joins.stripe, alike)).values(**less)
                )
            over = connection.execute(select(joins.bad).where(*these, joins.open == 0)).scalars().all()
            for bad in (True, False):
                if count := sum((one > 0) == bad for one in over):
                    found += self._count_down(connection, flow_id, {number: count}, bad)
        return found

    def _count_down(self, connection: Connection, flow_id: str, counts: Mapping[str, int], is_bad: bool) -> list[Ready]:
        """Count down each by so much; returns those for which nothing is open any more."""
        if not counts:
            return []
        columns, numbers, found = self._members.c, sorted(counts), list[Ready]()
        for part in locked_parts(connection, numbers):
            self._lock(connection, flow_id, part)
            for count, alike in by_count({number: counts[number] for number in part}):
                less = {"open": columns.open - count, "bad": columns.bad + count * int(is_bad)}
                connection.execute(update(self._members).where(self.of(flow_id), columns.n.in_(alike)).values(**less))
        ready = select(columns.n, columns.rule, columns.bad, columns.spent).where(
            self.of(flow_id), columns.open == 0, columns.state == "w"
        )
        for part in parts_of(numbers):
            found += [Ready(*row) for row in connection.execute(ready.where(columns.n.in_(part)))]
        return found

    def _lock(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> None:
        """Before several rows are changed, as an update takes them in any order."""
        if len(numbers) > 1:
            these = select(self._members.c.n).where(self.of(flow_id), self._members.c.n.in_(numbers))
            connection.execute(these.order_by(self._members.c.n).with_for_update()).all()

    def _lock_stripes(
        self, connection: Connection, flow_id: str, numbers: Sequence[str], stripe: int
    ) -> tuple[ColumnElement[bool], ...]:
        """The same for this stripe of these members; returns which rows they are."""
        joins = self._joins.c
        these = joins.flow == flow_id, joins.n.in_(numbers), joins.stripe == stripe
        if len(numbers) > 1:
            connection.execute(select(joins.n).where(*these).order_by(joins.n).with_for_update()).all()
        return these

    def _stop(self, connection: Connection, flow_id: str) -> None:
        """A member has failed: nothing more starts by the rule s, if that is so in this flow."""
        flows = self._flows.c
        running = flows.id == flow_id, flows.state == "running", flows.stops == 1
        if connection.execute(select(flows.id).where(*running)).first():  # else its row is left to others
            connection.execute(update(self._flows).where(*running).values(state="failing"))

    def _start(self, connection: Connection, flow_id: str, ready: Sequence[Ready]) -> list[Over]:
        """Push these members; returns those that are held, as the flow was stopped."""
        waits = [row for row in ready if row.rule == "s"]
        may_start = not waits or self.state(connection, flow_id, lock=False) in _RUNS
        held = [] if may_start else waits
        self._letter(connection, flow_id, [row.n for row in held], "c", held=1)
        self.push(connection, flow_id, [row.n for row in ready if row not in held])
        return [Over(row.n, "c", bool(row.spent)) for row in held]

    def push(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> None:
        columns = self._members.c
        for part in parts_of(in_order(list(numbers))):
            these = self.of(flow_id), columns.n.in_(part)
            wanted = select(columns.n, columns.queue, columns.delay, columns.payload).where(*these)
            rows = {row.n: row for row in connection.execute(wanted)}
            self._push_all(connection, [(rows[n].queue, rows[n].delay, bytes_of(rows[n].payload)) for n in part])
            for few in locked_parts(connection, sorted(part)):
                pushed = update(self._members).where(self.of(flow_id), self._members.c.n.in_(few))
                connection.execute(pushed.values(state="r", payload=None, held=0))

    def push_new(self, connection: Connection, members: Sequence[NewMember]) -> None:
        """Push members that were inserted as such."""
        self._push_all(connection, [(one.queue, one.delay, one.payload) for one in members])

    def _push_all(self, connection: Connection, jobs: Sequence[tuple[str, float, bytes]]) -> None:
        """Each with its queue and delay."""
        places = dict[tuple[str, float], list[bytes]]()
        for queue, delay, payload in jobs:
            places.setdefault((queue, delay), []).append(payload)
        for (queue, delay), payloads in places.items():
            self._jobs.push(connection, queue, payloads, delay)

    def _letter(self, connection: Connection, flow_id: str, numbers: Sequence[str], letter: str, **more: int) -> None:
        for part in locked_parts(connection, numbers):
            these = update(self._members).where(self.of(flow_id), self._members.c.n.in_(part))
            connection.execute(these.values(state=letter, spent=1, **more))

    def resume(self, connection: Connection, flow_id: str, number: str) -> None:
        """In the transaction that puts a failed member back: what was cancelled waits again, what was held starts."""
        columns, now = self._members.c, self.now(connection)
        failed = update(self._members).where(self._one(flow_id, number), columns.state == "f")
        if not connection.execute(failed.values(state="r")).rowcount:
            return
        # Before the flow's row, as those that end members do.
        cut = select(columns.n).where(self.of(flow_id), columns.state == "c")
        connection.execute(cut.order_by(columns.n).with_for_update()).all()
        if self.state(connection, flow_id, lock=True) is None:
            return
        later = case((self._flows.c.deadline > now + 86400, self._flows.c.deadline), else_=now + 86400)
        look = now + SOON if self.left_over.has_any(connection, flow_id) else later
        self.set(connection, flow_id, state="running", ended=None, look=look, deadline=later)
        connection.execute(update(self._members).where(self.of(flow_id), columns.state == "c").values(state="w"))
        held = select(columns.n).where(self.of(flow_id), columns.state == "w", columns.held == 1)
        self.push(connection, flow_id, list(connection.execute(held).scalars()))

    def insert(self, connection: Connection, flow_id: str, members: Sequence[NewMember], state: str = "w") -> None:
        """Add members; ``state``: ``r`` for those that are pushed at once."""
        common = {"flow": flow_id, "state": state, "bad": 0, "spent": 0, "held": 0, "result": None}
        rows = [
            {
                **common, "n": one.number, "rule": one.rule, "queue": one.queue, "delay": one.delay,
                "open": sum(map(bool, one.stripes)) or one.follows, "striped": BLOCK if one.stripes else 0,
                "payload": self.text(connection, one.payload) if state == "w" else None,
                "name": self.charsets.text(connection, "name", one.name) if one.name else None,
            }
            for one in members
        ]  # fmt: skip
        joins = [
            {"flow": flow_id, "n": one.number, "stripe": stripe, "open": count, "bad": 0}
            for one in members for stripe, count in enumerate(one.stripes) if count
        ]  # fmt: skip
        edges = [{"flow": flow_id, "pred": one.number, "succ": edge[:-1]} for one in members for edge in one.edges]
        if rows:
            connection.execute(insert(self._members), rows)
        if edges:
            connection.execute(insert(self._edges), edges)
        if joins:
            connection.execute(insert(self._joins), joins)

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
        return float(connection.execute(select(clock.now())).scalar() or 0.0)
