"""Ends done jobs, members of flows among them, and takes others, in one round trip: PostgreSQL can.

One statement does what ``members.SqlMembers`` does in ten, in the same order: it locks the rows of the jobs, of their
members, of the stripes that these count in, of the members that follow, and of the flows, each kind in the order of its
keys. All parts of a statement see the tables as they were when it began, and no part sees what another has written. So
each reads what it changes from the rows that it has locked, which are as of now, and hands that on to the next part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Compiled, Connection, text

from queuepool.payload.lease import Lease
from queuepool.payload.members import STRIPES, first_of
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock, later
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.left_over import MOST_EDGES, Over
from queuepool.stores.sql.members import Ready, SqlMembers
from queuepool.stores.sql.postgresql import CHANNEL
from queuepool.stores.sql.statements import marked

#: {jobs}, {members}, {edges}, {joins}, {flows}: tables; {now}: the time; {up}: what rounds a delay up
_SETTLE = """
WITH lease AS (
  SELECT * FROM unnest(
    CAST(:ids AS bigint[]), CAST(:attempts AS bigint[]), CAST(:marks AS bigint[]), CAST(:flows AS text[]),
    CAST(:numbers AS text[]), CAST(:firsts AS integer[])
  ) AS one (id, attempts, mark, flow, n, first)
), held AS (
  SELECT lease.* FROM {jobs} AS job JOIN lease
  ON job.id = lease.id AND job.attempts = lease.attempts AND job.available_at = lease.mark
  WHERE job.reserved_at IS NOT NULL ORDER BY job.id FOR UPDATE OF job
), gone AS (
  DELETE FROM {jobs} WHERE id IN (SELECT id FROM held)
), mine AS (
  SELECT member.flow, member.n, member.spent, one.first
  FROM {members} AS member JOIN (SELECT DISTINCT flow, n, first FROM held WHERE flow <> '') AS one
  ON member.flow = one.flow AND member.n = one.n
  WHERE member.state = 'r' ORDER BY member.flow, member.n FOR UPDATE OF member
), ended AS (
  UPDATE {members} AS member SET state = 'd', spent = 1 FROM mine
  WHERE member.flow = mine.flow AND member.n = mine.n
  RETURNING mine.flow, mine.n, mine.spent, mine.first
), edge AS (
  SELECT ended.flow, ended.spent, ended.first, edge.succ FROM ended JOIN {edges} AS edge
  ON edge.flow = ended.flow AND edge.pred = ended.n LIMIT :most + 1
), many AS (
  SELECT count(*) > :most AS are_many FROM edge
), follower AS (
  SELECT edge.flow, edge.succ AS n, member.striped,
    CASE WHEN member.striped > 0 THEN edge.first / member.striped % :count END AS stripe
  FROM edge JOIN {members} AS member
  ON member.flow = edge.flow AND member.n = edge.succ
  WHERE NOT (SELECT are_many FROM many) AND (member.rule = 's' OR edge.spent = 0)
), striped AS (
  SELECT joined.flow, joined.n, joined.stripe, less.count
  FROM {joins} AS joined JOIN (
    SELECT flow, n, stripe, count(*) AS count FROM follower WHERE striped > 0 GROUP BY flow, n, stripe
  ) AS less ON joined.flow = less.flow AND joined.n = less.n AND joined.stripe = less.stripe
  ORDER BY joined.flow, joined.n, joined.stripe FOR UPDATE OF joined
), stripe AS (
  UPDATE {joins} AS joined SET open = joined.open - striped.count FROM striped
  WHERE joined.flow = striped.flow AND joined.n = striped.n AND joined.stripe = striped.stripe
  RETURNING joined.flow, joined.n, joined.open, joined.bad
), less AS (
  SELECT flow, n, sum(count) AS count, sum(bad) AS bad FROM (
    SELECT flow, n, count(*) AS count, 0 AS bad FROM follower WHERE striped = 0 GROUP BY flow, n
    UNION ALL SELECT flow, n, 1, CASE WHEN bad > 0 THEN 1 ELSE 0 END FROM stripe WHERE open = 0
  ) AS one GROUP BY flow, n
), waiting AS (
  SELECT member.flow, member.n, member.open - less.count AS open, member.bad + less.bad AS bad, member.state,
    member.rule, member.spent, member.queue, member.delay, member.payload
  FROM {members} AS member JOIN less ON member.flow = less.flow AND member.n = less.n
  ORDER BY member.flow, member.n FOR UPDATE OF member
), ready AS (
  SELECT * FROM waiting WHERE open = 0 AND state = 'w'
), running AS (
  SELECT flow.id FROM {flows} AS flow
  WHERE flow.id IN (SELECT flow FROM ready WHERE rule = 's') AND flow.state = 'running'
  ORDER BY flow.id FOR SHARE OF flow
), started AS (
  SELECT * FROM ready
  WHERE rule = 'a' OR (rule = 'f' AND bad > 0) OR (rule = 's' AND flow IN (SELECT id FROM running))
), counted AS (
  UPDATE {members} AS member SET open = waiting.open, bad = waiting.bad,
    state = CASE WHEN started.n IS NULL THEN member.state ELSE 'r' END,
    payload = CASE WHEN started.n IS NULL THEN member.payload END
  FROM waiting LEFT JOIN started ON started.flow = waiting.flow AND started.n = waiting.n
  WHERE member.flow = waiting.flow AND member.n = waiting.n
), pushed AS (
  INSERT INTO {jobs} (queue, payload, attempts, created_at, available_at)
  SELECT queue, payload, 0, CAST(floor({now}) AS integer),
    CAST(floor({now} + CASE WHEN delay > 0 THEN delay + {up} ELSE 0 END) AS integer)
  FROM started ORDER BY flow, CAST(string_to_array(n, '.') AS bigint[])
)
SELECT 'held' AS what, id, attempts, mark, '' AS flow, '' AS n, '' AS rule, 0 AS bad, 0 AS spent FROM held
UNION ALL SELECT 'started', 0, 0, 0, flow, CAST(pg_notify(:channel, queue) AS text), '', 0, 0
  FROM (SELECT DISTINCT flow, queue FROM started) AS one
UNION ALL SELECT 'ready', 0, 0, 0, flow, n, rule, bad, spent FROM ready
  WHERE NOT EXISTS (SELECT 1 FROM started WHERE started.flow = ready.flow AND started.n = ready.n)
UNION ALL SELECT 'ended', 0, 0, 0, flow, n, '', 0, spent FROM ended WHERE (SELECT are_many FROM many)
"""


class Settled(NamedTuple):
    """What has become of done jobs, and what was taken."""

    #: (id, attempts, mark) of those whose leases were held
    held: set[tuple[int, ...]]
    #: as in ``JobsTable.take``
    taken: list[tuple[int, Any, int]]
    #: as in ``SqlMembers.settle_done``
    flows: list[str]


class DoneMembers:
    """Ends jobs that are done in one database; ``members`` does what one statement cannot."""

    def __init__(self, client: SqlClient, jobs: JobsTable, members: SqlMembers) -> None:
        self._client = client
        self._jobs = jobs
        self._members = members
        #: with the clock that is in it, which tests may set
        self._last: tuple[str, Compiled] | None = None

    def settle_and_take(
        self, connection: Connection, done: Sequence[Lease], queue: str, tag: int, most: int
    ) -> Settled:
        """Begin a transaction that ends these and takes jobs of the queue. Only if the connection ``can_pipeline``."""
        settle = self._statement, _values_of(done)
        rows, taken = self._jobs.begin_and_take(connection, settle, queue, tag, most)
        held: set[tuple[int, ...]] = {tuple(places[:3]) for what, *places in rows if what == "held"}
        going = {flow for what, _, _, _, flow, *_ in rows if what == "started"}
        more = self._go_on(connection, rows)
        if more and len(taken) < most:  # what was pushed just now was not there
            taken += self._jobs.take(connection, queue, tag, most - len(taken))
        ended = [lease.member.flow for lease in done if lease.member and marked(lease) in held]
        return Settled(held, taken, self._members.quiet(dict.fromkeys(ended), going | more))

    def _go_on(self, connection: Connection, rows: Sequence[Any]) -> set[str]:
        """Do what follows if a member is skipped, a flow was stopped, or many follow: it is rare.

        Returns the flows in which that has started something.
        """
        over, ready = dict[str, list[Over]](), dict[str, list[Ready]]()
        for what, _, _, _, flow, number, rule, bad, spent in rows:
            if what == "ready":
                ready.setdefault(flow, []).append(Ready(number, rule, bad, spent))
            elif what == "ended":
                over.setdefault(flow, []).append(Over(number, "d", bool(spent)))
        flows = sorted({*over, *ready})
        return {
            flow for flow in flows if self._members.follow(connection, flow, over.get(flow, []), ready.get(flow, []))
        }

    @property
    def _statement(self) -> Compiled:
        if self._last is None or self._last[0] != self._jobs.clock:
            self._last = self._jobs.clock, self._compiled(self._jobs.clock)
        return self._last[1]

    def _compiled(self, clock: str) -> Compiled:
        dialect, tables = self._client.engine.dialect, self._client.tables
        now = Clock(dialect, clock).now().compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        names = {
            "jobs": tables.jobs, "members": tables.queuepool_members, "edges": tables.queuepool_edges,
            "joins": tables.queuepool_joins, "flows": tables.queuepool_flows,
        }  # fmt: skip
        quoted = {key: dialect.identifier_preparer.format_table(table) for key, table in names.items()}
        return text(_SETTLE.format(**quoted, now=now, up=later(1.0) - 1.0)).compile(dialect=dialect)


def _values_of(done: Sequence[Lease]) -> dict[str, Any]:
    ids, attempts, marks = (list(column) for column in zip(*map(marked, done), strict=True))
    ends = [lease.member for lease in done]
    return {
        "ids": ids, "attempts": attempts, "marks": marks, "channel": CHANNEL, "most": MOST_EDGES,
        "flows": [end.flow if end else "" for end in ends],
        "numbers": [end.number if end else "" for end in ends],
        "firsts": [first_of(end.number) if end else 0 for end in ends],
        "count": STRIPES,
    }  # fmt: skip
