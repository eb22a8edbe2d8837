"""Every statement of the queue, built once, and the marks of leases; SQLAlchemy renders them for each database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnClause,
    ColumnElement,
    CompoundSelect,
    Dialect,
    Insert,
    LargeBinary,
    Select,
    String,
    Table,
    Update,
    and_,
    bindparam,
    case,
    cast,
    column,
    delete,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    table,
    union_all,
    update,
)

from queuepool.config.values import PARKED
from queuepool.payload.lease import Lease, LeaseRow
from queuepool.payload.strict_json import MAX_BYTES
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.texts import exactly, is_name, is_one_of

#: seconds by which a lease may begin in the future, since its beginning is rounded up
SLACK = 5.0
#: most rows that are counted to measure a queue: a database keeps no count
MEASURED = 10_000
_QUEUE: Any = bindparam("name")
_QUEUES: Any = bindparam("names", expanding=True)
_IDS: Any = bindparam("ids", expanding=True)


def skips_locked(dialect: Dialect) -> bool:
    """Whether the database can skip rows that others are taking; otherwise workers wait for each other."""
    oldest = (10, 6) if getattr(dialect, "is_mariadb", False) else {"mysql": (8, 0, 1)}.get(dialect.name, ())
    return (dialect.server_version_info or ()) >= oldest


def push_of(jobs: Table, clock: Clock) -> Insert:
    """The statement that adds jobs; not in ``Statements``, since a push needs to know nothing else of the table."""
    values = {"queue": _QUEUE, "payload": bindparam("raw"), "attempts": 0}
    return insert(jobs).values(**values, created_at=clock.down(), available_at=clock.after("later"))


def still_in(jobs: Table, queue: str) -> ColumnElement[bool]:
    """The test of rows that are found by their numbers, which no index helps with.

    With one on the queue, a database that last counted before the queue filled would read all of it for a single row.
    """
    return jobs.c.queue.concat(literal_column("''")) == queue


def announced(push: Insert, channel: str) -> Select[Any]:
    """PostgreSQL's statement that adds a job and notifies waiting workers of it, both when it is committed."""
    return select(func.pg_notify(channel, bindparam("name", type_=String))).add_cte(push.cte("pushed"))


class Statements:
    """The statements for one table and one ``retry_after``, in seconds; ``most_attempts`` as in ``Schema``."""

    def __init__(self, jobs: Table, dialect: Dialect, clock: Clock, retry_after: float, most_attempts: int) -> None:
        self._jobs = jobs
        # As bytes: text that is not UTF-8, which only SQLite can hold, could not even be read.
        is_sqlite = dialect.name == "sqlite"
        payload: ColumnElement[Any] = cast(jobs.c.payload, LargeBinary) if is_sqlite else jobs.c.payload
        size = func.length(payload) if is_sqlite else func.octet_length(payload)
        nothing: ColumnElement[Any] = literal_column("x''" if is_sqlite else "''")
        #: NULL if it is too large: it would fill this process's memory
        self.payload: ColumnElement[Any] = case(
            (size > MAX_BYTES, null()), else_=func.coalesce(payload, nothing)
        ).label("payload")
        self.now = select(clock.now())
        self._in_queue = is_name(dialect, jobs.c.queue, _QUEUE)
        self._in_queues = is_one_of(dialect, jobs.c.queue, _QUEUES)
        self._reserving(dialect, clock, retry_after, most_attempts)
        self._settling(clock)
        self._looking(dialect, clock)

    def _reserving(self, dialect: Dialect, clock: Clock, retry_after: float, most_attempts: int) -> None:
        """Source: DatabaseQueue.php, getNextAvailableJob and markJobAsReserved (13.x)."""
        jobs = self._jobs
        is_ready = and_(jobs.c.reserved_at.is_(None), jobs.c.available_at <= clock.past())
        has_ended = jobs.c.reserved_at <= clock.past(retry_after)
        takable = and_(self._in_queue, or_(is_ready, has_ended))
        first = select(jobs.c.id).where(takable).order_by(jobs.c.id).limit(bindparam("most"))
        chosen = first.with_for_update(skip_locked=skips_locked(dialect))
        counted = (jobs.c.attempts < 0, 1), (jobs.c.attempts < most_attempts, jobs.c.attempts + 1)
        attempts = case(*counted, else_=jobs.c.attempts)
        taken = update(jobs).ordered_values(
            # Rounded up, so that whole seconds never end it before retry_after is over.
            (jobs.c.reserved_at, clock.up()),
            # Before attempts, and with its new value: MySQL reads values that were assigned earlier.
            (jobs.c.available_at, mark_of(bindparam("tag", type_=BigInteger), attempts)),
            (jobs.c.attempts, attempts),
        )
        shown = (jobs.c.id, self.payload, jobs.c.attempts)
        self.take = _those(taken, jobs, chosen).returning(*shown)
        if dialect.name == "postgresql":
            self.settle_and_take = _settling_and_taking(jobs, chosen, taken, shown)
            ids = jobs.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger)))
            self.leased_ahead = self._leased(ids)
        # In two steps: MySQL locks every row that it passes, and there may be a million delayed ones.
        self.near = first
        self.choose = chosen.where(jobs.c.id.in_(_IDS)).with_only_columns(*shown)
        self.mark = taken.where(jobs.c.id.in_(_IDS))
        self.is_ready = select(jobs.c.id).where(takable).limit(1)

    def _leased(self, which: ColumnElement[bool]) -> Select[Any]:
        jobs = self._jobs.c
        rows = select(jobs.id, jobs.attempts, jobs.available_at).where(which, jobs.reserved_at.is_not(None))
        return rows.order_by(jobs.id).with_for_update()

    def _settling(self, clock: Clock) -> None:
        jobs = self._jobs
        self.leased = self._leased(jobs.c.id.in_(_IDS))
        is_free = self._in_queue, jobs.c.id.in_(_IDS), jobs.c.reserved_at.is_(None)
        self.lock_free = select(jobs.c.id, self.payload).where(*is_free).order_by(jobs.c.id).with_for_update()
        self.rewrite = update(jobs).where(jobs.c.id == bindparam("row")).values(payload=bindparam("raw"))
        self.delete = delete(jobs).where(jobs.c.id.in_(_IDS))
        self.move = (
            update(jobs)
            .where(jobs.c.id.in_(_IDS))
            .values(queue=_QUEUE, payload=bindparam("raw"), attempts=0, reserved_at=None, available_at=clock.down())
        )
        self.hasten = update(jobs).where(jobs.c.id.in_(_IDS)).values(available_at=clock.down())
        free = {"reserved_at": None, "available_at": clock.down(), "attempts": jobs.c.attempts - 1}
        self.park = update(jobs).where(jobs.c.id.in_(_IDS)).values(queue=PARKED, **free)
        back = update(jobs).where(still_in(jobs, PARKED)).values(queue=_QUEUE, available_at=clock.after("later"))
        self.unpark, self.unpark_one = back.where(jobs.c.id.in_(_IDS)), back.where(jobs.c.id == bindparam("row"))
        self.renew = update(jobs).where(jobs.c.id.in_(_IDS)).values(reserved_at=clock.up())
        self.give_back = update(jobs).where(jobs.c.id.in_(_IDS)).values(**free)
        columns = (jobs.c.queue, jobs.c.payload, jobs.c.attempts, jobs.c.created_at, clock.after("later"))
        copy = select(*columns).where(jobs.c.id.in_(_IDS))
        self.release = insert(jobs).from_select(["queue", "payload", "attempts", "created_at", "available_at"], copy)
        taken = [
            self._in_queues,
            jobs.c.reserved_at.is_not(None),
            jobs.c.available_at == mark_of(bindparam("tag", type_=BigInteger), jobs.c.attempts),
        ]
        self.leased_to = (
            select(jobs.c.id, jobs.c.queue, jobs.c.payload, jobs.c.attempts).where(*taken).order_by(jobs.c.id)
        )

    def _looking(self, dialect: Dialect, clock: Clock) -> None:
        """Source: DatabaseQueue.php, size, pendingSize … (13.x)."""
        jobs = self._jobs
        is_free, is_due = jobs.c.reserved_at.is_(None), jobs.c.available_at <= clock.past()
        self.count = select(
            func.count(case((and_(is_free, is_due), 1))), func.count(case((and_(is_free, ~is_due), 1))),
            func.count(jobs.c.reserved_at),
        ).where(self._in_queue)  # fmt: skip
        self.queues = select(exactly(dialect, jobs.c.queue)).where(jobs.c.queue != PARKED).distinct()
        shelves = {"ready": and_(is_free, is_due), "delayed": and_(is_free, ~is_due), "reserved": ~is_free}
        shelf = case((~is_free, "reserved"), (is_due, "ready"), else_="delayed").label("shelf")
        #: each row with its shelf
        self.shelved = select(jobs.c.id, self.payload, jobs.c.attempts, jobs.c.reserved_at, jobs.c.available_at, shelf)
        #: by state
        self.first = {
            state: select(self.payload).where(self._in_queue, holds).order_by(jobs.c.id).limit(bindparam("most"))
            for state, holds in shelves.items()
        }
        self.waiting_row = select(self.payload, jobs.c.attempts).where(jobs.c.id.in_(_IDS), is_free).with_for_update()
        self.times = select(
            clock.now(), func.min(case((is_free, jobs.c.available_at))), func.min(jobs.c.reserved_at),
            func.max(jobs.c.reserved_at),
        ).where(self._in_queues)  # fmt: skip
        # A clock was wrong: from now on the lease lasts as long as any other.
        self.end_in_time = (
            update(jobs).where(self._in_queues, jobs.c.reserved_at > clock.past(-SLACK)).values(reserved_at=clock.up())
        )


def _those(change: Update, jobs: Table, chosen: Select[Any]) -> Update:
    """The change of the chosen rows. A plain subquery may be evaluated again for every row, and lock more of them."""
    return change.where(jobs.c.id.in_(select(chosen.cte("chosen").c.id)))


def _settling_and_taking(jobs: Table, chosen: Select[Any], taken: Update, shown: Sequence[Any]) -> CompoundSelect[Any]:
    """Delete the leases that are still held as they say, and take the chosen rows: PostgreSQL can in one statement.

    (id, payload, attempts, mark) of each: ``mark`` is NULL for a taken one, and ``payload`` for a deleted one. Both
    parts see the table as it was before, and must not change the same row: a lease of ours may have ended by now.
    """
    said = [bindparam(name, type_=ARRAY(BigInteger)) for name in ("ids", "attempts", "marks")]
    lease = func.unnest(*said).table_valued("id", "attempts", "mark").render_derived()
    are_held = jobs.c.id == lease.c.id, jobs.c.attempts == lease.c.attempts, jobs.c.available_at == lease.c.mark
    rows = select(jobs.c.id, jobs.c.attempts, jobs.c.available_at).where(*are_held, jobs.c.reserved_at.is_not(None))
    # In this order, as every other transaction that locks several.
    held = rows.order_by(jobs.c.id).with_for_update(of=jobs).cte("held")
    ended = delete(jobs).where(jobs.c.id.in_(select(held.c.id))).cte("ended")
    others = chosen.where(jobs.c.id.not_in(select(held.c.id)))
    leased = _those(taken, jobs, others).returning(*shown).cte("leased")
    deleted = select(held.c.id, null().label("payload"), held.c.attempts, held.c.available_at)
    return union_all(deleted, select(leased, null())).add_cte(ended)


def sending(jobs: Table, others: Sequence[str]) -> Insert:
    """The statement that copies free rows to another queue, with these columns that others have added."""
    columns: list[ColumnClause[Any]] = [column(one.name, one.type) for one in jobs.columns]
    columns += [column(name) for name in others]
    whole = table(jobs.name, *columns, schema=jobs.schema)
    same = [one for one in columns if one.name not in ("id", "queue", "reserved_at")]
    there = select(bindparam("name", type_=String), *same).where(whole.c.id.in_(_IDS)).order_by(whole.c.id)
    return insert(whole).from_select(["queue", *(one.name for one in same)], there)


def measuring(jobs: Table, dialect: Dialect) -> tuple[Any, Any, Any]:
    """The counts of the queue's rows, up to ``MEASURED``; of those that are not delayed; when the next became ready."""
    clock, in_queue = Clock(dialect), is_name(dialect, jobs.c.queue, _QUEUE)
    is_free, is_due = jobs.c.reserved_at.is_(None), jobs.c.available_at <= clock.past()
    state = case((~is_free, "reserved"), (is_due, "ready"), else_="delayed").label("state")

    def counted(*which: ColumnElement[bool]) -> Any:
        rows = select(state).where(in_queue, *which).limit(MEASURED + 1).subquery()
        counts = [func.count(case((rows.c.state == name, 1))) for name in ("ready", "delayed", "reserved")]
        return select(*counts, func.count(), clock.now()).select_from(rows)

    next_ready = select(jobs.c.available_at).where(in_queue, is_free, is_due).order_by(jobs.c.id).limit(1)
    return counted(), counted(or_(~is_free, is_due)), next_ready


# The mark in ``available_at`` while one of our workers holds a lease: the worker's tag and the attempt.
#
# Laravel does not read that column then, nor change it when it takes over an expired lease: the attempt distinguishes
# Laravel's lease from ours.

#: below any time that a queue can hold, and within a signed column of four bytes
_MARKS = 2**30
#: how many successive attempts are distinguished
_ATTEMPTS = 4
TAGS = _MARKS // _ATTEMPTS


def mark_of(tag: Any, attempts: Any) -> Any:
    """The mark of a lease, as a number or as an SQL expression."""
    return tag * _ATTEMPTS + attempts % _ATTEMPTS


def row_of(lease: Lease) -> LeaseRow:
    """The row of a lease on a job in a table."""
    assert lease.row, "a lease of another store"
    return lease.row


def marked(lease: Lease) -> tuple[int, int, int]:
    """Id, attempts and mark, as in the table."""
    row = row_of(lease)
    return row.id, row.attempts, mark_of(lease.tag, row.attempts)


def tag_in(mark: int) -> int:
    """The tag in a mark; 0 for a lease of Laravel's, which leaves a time there."""
    return mark // _ATTEMPTS if 0 < mark < _MARKS else 0
