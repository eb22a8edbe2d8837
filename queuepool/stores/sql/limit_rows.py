"""Reads for operators who holds places of limits and who waits for some: a bounded part of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, bindparam, func, or_, select

from queuepool.config.values import PARKED
from queuepool.payload.lease import Lease, LeaseRow
from queuepool.payload.limits import holding, job_word
from queuepool.stores.limits import MOST_BEFORE, MOST_KEYS, MOST_LINES, KeyRecord, LimitLine, ParkedJob, PlaceRecord
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.place_statements import is_of
from queuepool.stores.sql.places import SqlPlaces
from queuepool.stores.sql.statements import still_in, tag_in
from queuepool.stores.sql.texts import is_name

#: rows of parked jobs that are counted in all, and at least at each key
_COUNTED, _LEAST = 20_000, 100
#: rows of a queue, first ones first, among which jobs that hold places are looked for
_LOOKED_AT = 10_000
#: parked jobs that one statement reads
_PAGE = 500


class LimitRows:
    """The reading verbs of ``stores.limits.JobLimits``."""

    def __init__(self, client: SqlClient, jobs: JobsTable, places: SqlPlaces) -> None:
        self._client = client
        self._jobs = jobs
        self._now = places.now
        self._rings = client.tables.queuepool_rings
        self._places = client.tables.queuepool_places
        self._parked = client.tables.queuepool_parked
        rows = client.tables.jobs
        #: the rows of parked jobs stay in the table of jobs
        self._joined = self._parked.join(rows, and_(rows.c.id == self._parked.c.id, still_in(rows, PARKED)))

    def by_key(self, name: str = "", most: int = MOST_KEYS, lines: int = MOST_LINES) -> list[KeyRecord]:
        return self._client.ask(partial(self._by_key, name=name, most=most, most_lines=lines))

    def _by_key(self, connection: Connection, name: str, most: int, most_lines: int) -> list[KeyRecord]:
        held, waiting = self._held(connection, name, most), self._waiting(connection, name, most)
        keys = sorted({*held, *waiting})[:most]
        each = max(1, most_lines // max(1, len(keys)))
        rows = max(_LEAST, _COUNTED // max(1, len(waiting)))
        turns = self._turns(connection, [key for key in keys if key in waiting], each)
        found = {key: self._lines(connection, key, turn[:each], rows) for key, turn in turns.items()}
        return [
            KeyRecord(
                key,
                *held.get(key, (0, 0)),
                tuple(lines := found.get(key, [])),
                len(turns.get(key, ())) > each or sum(line.jobs for line in lines) >= rows,
            )
            for key in keys
        ]

    def _held(self, connection: Connection, name: str, most: int) -> dict[str, tuple[int, int]]:
        places = self._places.c
        taken = or_(places.granted.is_not(None), places.until > self._now(connection)), *_of(self._places, name)
        counted = select(places.key, func.count(places.granted), func.count()).where(*taken).group_by(places.key)
        rows = connection.execute(counted.order_by(places.key).limit(most))
        return {key: (int(count - granted), int(granted)) for key, granted, count in rows}

    def _waiting(self, connection: Connection, name: str, most: int) -> set[str]:
        rings = self._rings.c
        wanted = select(rings.key).where(*_of(self._rings, name)).distinct().order_by(rings.key).limit(most)
        return set(connection.execute(wanted).scalars())

    def _turns(self, connection: Connection, keys: Sequence[str], each: int) -> dict[str, list[tuple[str, str]]]:
        """Queue and partition of the first lines of each key, and one more if there are more."""
        rings, found = self._rings.c, dict[str, list[tuple[str, str]]]()
        place = func.row_number().over(partition_by=rings.key, order_by=rings.turn).label("place")
        ranked = select(rings.key, rings.queue, rings.part, place).where(rings.key.in_(keys)).subquery()
        wanted = select(ranked).where(ranked.c.place <= each + 1).order_by(ranked.c.key, ranked.c.place)
        for key, queue, part, _ in connection.execute(wanted) if keys else ():
            found.setdefault(key, []).append((queue, part))
        return found

    def _lines(self, connection: Connection, key: str, turns: Sequence[tuple[str, str]], most: int) -> list[LimitLine]:
        """Those of these lines that are among the first ``most`` jobs that wait at this key, as its index has them."""
        parked = self._parked.c
        these = select(parked.queue, parked.part, parked.id).where(parked.key == bindparam("at"))
        rows = these.order_by(parked.queue, parked.part, parked.id).limit(bindparam("most")).subquery().c
        counted = select(rows.queue, rows.part, func.count(), func.min(rows.id)).group_by(rows.queue, rows.part)
        found = {
            (queue, part): (int(jobs), int(first))
            for queue, part, jobs, first in connection.execute(counted, {"at": key, "most": most})
        }
        return [LimitLine(*turn, *found[turn]) for turn in turns if turn in found]

    def holders(self, keys: Sequence[str], queues: Sequence[str], most: int) -> list[PlaceRecord]:
        return self._client.ask(partial(self._holders, keys=keys, queues=queues, most=most))

    def _holders(
        self, connection: Connection, keys: Sequence[str], queues: Sequence[str], most: int
    ) -> list[PlaceRecord]:
        places, now, found = self._places.c, self._now(connection), list[Any]()
        for key in keys:
            live = places.key == key, places.granted.is_(None), places.until > now
            wanted = select(places.key, places.until, places.holder).where(*live).order_by(places.until).limit(most)
            found += connection.execute(wanted)
        jobs = self._reserved(connection, queues) if found else {}
        return [PlaceRecord(key, float(until), *jobs.get(holder, ())) for key, until, holder in found]

    def _reserved(self, connection: Connection, queues: Sequence[str]) -> dict[str, tuple[str, bytes]]:
        """What workers have reserved, by the name under which it may hold places."""
        return {
            holding(lease).holder: (queue, lease.receipt)
            for queue in queues
            for lease in self._leases(connection, queue)
        }

    def _leases(self, connection: Connection, queue: str) -> Iterator[Lease]:
        jobs = self._client.tables.jobs.c
        here = is_name(connection.dialect, jobs.queue, queue)
        first = select(jobs.id, jobs.reserved_at).where(here).order_by(jobs.id).limit(_LOOKED_AT).subquery()
        ids = connection.execute(select(first.c.id).where(first.c.reserved_at.is_not(None))).scalars().all()
        for row in connection.execute(self._jobs.shelved(jobs.id.in_(ids), jobs.reserved_at.is_not(None))):
            row_of = LeaseRow(row.id, row.attempts)
            yield Lease(queue, bytes_of(row.payload), tag_in(row.available_at), row_of)

    def parked_job(self, queue: str, number: int) -> bytes | None:
        these = self._parked.c.queue == queue, self._parked.c.id == number
        wanted = select(self._client.tables.jobs.c.payload).select_from(self._joined).where(*these)
        found = self._client.ask(lambda connection: connection.execute(wanted).scalar())
        return None if found is None else bytes_of(found)

    def find(self, queue: str, job_id: str) -> ParkedJob | None:
        return self._client.ask(partial(self._find, queue=queue, job=job_word(job_id)))

    def _find(self, connection: Connection, queue: str, job: str) -> ParkedJob | None:
        parked, rows = self._parked.c, self._client.tables.jobs.c
        about = select(parked.id, parked.key, parked.part, rows.payload, rows.attempts).select_from(self._joined)
        wanted = about.where(parked.queue == queue, parked.job == job).order_by(parked.id).limit(1)
        row = connection.execute(wanted).first()
        if row is None:
            return None
        line = parked.key == row.key, parked.queue == queue, parked.part == row.part, parked.id < row.id
        before = select(parked.id).where(*line).limit(MOST_BEFORE).subquery()
        count = connection.execute(select(func.count()).select_from(before)).scalar_one()
        return ParkedJob(bytes_of(row.payload), row.attempts, row.key, int(count))

    def pages(self, queue: str) -> Iterator[list[ParkedJob]]:
        parked, rows_of, last = self._parked.c, self._client.tables.jobs.c, 0
        newest = select(func.max(parked.id)).where(parked.queue == queue)
        # Workers may park others as fast as these are read: to drop them all would never end.
        end = self._client.ask(lambda connection: connection.execute(newest).scalar()) or 0
        about = select(parked.id, rows_of.payload, rows_of.attempts).select_from(self._joined)
        while last < end:
            these = parked.queue == queue, parked.id > last, parked.id <= end
            wanted = about.where(*these).order_by(parked.id).limit(_PAGE)
            rows = self._client.ask(partial(_rows, wanted=wanted))
            if not rows:
                return
            last = rows[-1].id
            yield [ParkedJob(bytes_of(row.payload), row.attempts, number=row.id) for row in rows]


def _rows(connection: Connection, wanted: Select[Any]) -> Sequence[Any]:
    return connection.execute(wanted).all()


def _of(table: Table, name: str) -> list[ColumnElement[bool]]:
    """Whether a key is one of this limit; of any for ''."""
    return [is_of(table.c.key, name)] if name else []
