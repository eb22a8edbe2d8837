"""Limits in tables of our own; see ``stores.limits.JobLimits``. The places are in ``places.SqlPlaces``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, and_, func, or_, select, update

from queuepool.payload.lease import Lease
from queuepool.payload.limits import PlaceAsked, job_word, name_of
from queuepool.stores.limits import Admission, Entering, LimitRecord
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.limit_rows import LimitRows
from queuepool.stores.sql.place_statements import is_of
from queuepool.stores.sql.places import SqlPlaces
from queuepool.stores.sql.statements import marked, row_of

#: keys that one look takes, and jobs that one transaction puts back by hand
_LOOKS, _UNPARKED = 100, 500
#: seconds between looks at keys at which no job waits, whose places have ended by themselves
_TIDY = 60.0


class SqlLimits:
    """The limits of one database."""

    end_with_reserve = True

    def __init__(self, client: SqlClient, jobs: JobsTable) -> None:
        self._client = client
        self._jobs = jobs
        self._limits = client.tables.queuepool_limits
        self._rings = client.tables.queuepool_rings
        self._rows_of_places = client.tables.queuepool_places
        self._parked = client.tables.queuepool_parked
        self.places = SqlPlaces(client, jobs)
        shown = LimitRows(client, jobs, self.places)
        self.by_key, self.holders, self.parked_job = shown.by_key, shown.holders, shown.parked_job
        self.find, self.pages = shown.find, shown.pages
        self.in_use = False
        #: when to look for such keys (monotonic)
        self._tidy_at = 0.0

    def enter(self, lease: Lease, job_id: str, asked: Sequence[PlaceAsked], start: str = "") -> Admission:
        self._jobs.examine()
        start = f"{lease.holder} {start or secrets.token_hex(4)}"
        return self._client.transaction(
            partial(self._enter, one=Entering(lease, job_id, asked), start=start), begins=True
        )

    def _enter(self, connection: Connection, one: Entering, start: str) -> Admission:
        """In a transaction that it begins."""
        seen = self.places.view.begin(connection, one, start)
        if not seen.is_leased or seen.has_entered:
            return Admission(is_in=seen.is_leased)
        if not seen.is_complete:
            self._declare_missing(connection, one.asked)
            seen = self.places.view.again(connection, one, start)
        keys = [place.key for place in one.asked]
        refusing = next((key for key in keys if not self.places.admits(connection, seen, key)), "")
        ended = self.places.end_grant(connection, one.granted, keys) if seen.granted else set[str]()
        if refusing:
            freed = ended
            self.places.park(connection, refusing, [one], seen.now)
        else:
            freed = self.places.take(connection, one, start, seen, ended)
        self.places.free_as_well(connection, freed, seen.now)
        return Admission(is_in=not refusing, parked_at=refusing)

    def park_behind(self, key: str, jobs: Sequence[Entering]) -> list[bool | None]:
        return self._client.transaction(partial(self._park_behind, key=key, jobs=jobs))

    def _park_behind(self, connection: Connection, key: str, jobs: Sequence[Entering]) -> list[bool | None]:
        leased = self._jobs.leased(connection, [row_of(one.lease).id for one in jobs])
        held = [one for one in jobs if marked(one.lease) in leased]
        self.places.lock(connection, [key])
        now = self.places.now(connection)
        # Of one for which a place is kept, its own entry decides.
        refused = self.places.strangers(connection, held) if self.places.refuses(connection, key, now) else []
        if refused:
            self.places.park(connection, key, refused, now)
        ids = {row_of(one.lease).id for one in refused}
        return [row_of(one.lease).id in ids if marked(one.lease) in leased else None for one in jobs]

    def parked(self, queue: str) -> int:
        count = select(func.count()).select_from(self._parked).where(self._parked.c.queue == queue)
        return int(self._client.ask(lambda connection: connection.execute(count).scalar_one()))

    def unpark(self, queue: str, job_id: str = "", delay: float = 0.0) -> int:
        parked, back = self._parked.c, 0
        these = [parked.queue == queue, *([parked.job == job_word(job_id)] if job_id else [])]
        last = select(func.max(parked.id)).where(*these)  # those that are parked meanwhile are left
        most = self._client.ask(lambda connection: connection.execute(last).scalar()) or 0
        wanted = select(parked.id).where(*these, parked.id <= most).order_by(parked.id).limit(_UNPARKED)
        while ids := list(self._client.ask(lambda connection: connection.execute(wanted).scalars())):
            back += self.unpark_these(queue, ids, delay)
        return back

    def unpark_these(self, queue: str, numbers: Sequence[int], delay: float) -> int:
        return self._client.transaction(partial(self._unpark, queue=queue, ids=numbers, delay=delay))

    def _unpark(self, connection: Connection, queue: str, ids: Sequence[int], delay: float) -> int:
        rows = select(self._parked.c.id).where(self._parked.c.id.in_(ids)).order_by(self._parked.c.id)
        there = list(connection.execute(rows.with_for_update()).scalars())
        self.places.back_to_jobs(connection, there, queue, delay)
        return len(there)

    def sweep(self, name: str | None = None) -> float | None:
        due = self._client.ask(self._due)
        keys = self._to_look_at(name) if name is not None or due == 0.0 else ()
        ended = self._ended()
        if not (looked := {**dict.fromkeys(keys), **dict.fromkeys(ended)}):
            return due
        for key in looked:
            if_due = name is None and key not in ended
            self._client.transaction(partial(self.places.look, key=key, if_due=if_due))
        return self._client.ask(self._due)

    def _due(self, connection: Connection) -> float | None:
        """Seconds until the next look; of most sweeps, this is all."""
        first = connection.execute(select(func.min(self._limits.c.look))).scalar()
        return None if first is None else max(first - self.places.now(connection), 0.0)

    def _to_look_at(self, name: str | None) -> Sequence[str]:
        limits = self._limits.c
        due = limits.look <= self._client.ask(self.places.now)
        if name is not None:
            changed = limits.look.is_not(None)
            due = or_(due, and_(changed, is_of(limits.key, name)) if name else changed)
        wanted = select(limits.key).where(due).order_by(limits.look).limit(_LOOKS)
        return self._client.ask(lambda connection: connection.execute(wanted).scalars().all())

    def _ended(self) -> Sequence[str]:
        """Keys with places that have ended by themselves; whoever waits there is looked after in any case."""
        if time.monotonic() < self._tidy_at:
            return ()
        places, now = self._rows_of_places.c, self._client.ask(self.places.now)
        is_over = or_(places.granted.is_(None), places.until <= now - _TIDY)
        ended = select(places.key).where(places.until <= now, is_over).distinct().limit(_LOOKS)
        keys = self._client.ask(lambda connection: connection.execute(ended).scalars().all())
        if len(keys) < _LOOKS:
            self._tidy_at = time.monotonic() + _TIDY
        return keys

    def all(self) -> list[LimitRecord]:
        limits = self._limits.c
        wanted = select(limits.key, limits.number, limits.per, limits.by_hand).where(limits.number.is_not(None))
        rows = self._client.ask(lambda connection: connection.execute(wanted.order_by(limits.key)).all())
        return [LimitRecord(*row) for row in rows]

    def set(self, name: str, number: int | None) -> bool:
        limits = self._limits.c
        known = update(self._limits).where(limits.key == name, limits.number.is_not(None)).values(by_hand=number)
        return self._client.transaction(lambda connection: connection.execute(known).rowcount > 0)

    def declare(self, name: str, number: int, per: float) -> LimitRecord | None:
        return self._client.transaction(partial(self._declare, name=name, number=number, per=per))

    def _declare(self, connection: Connection, name: str, number: int, per: float) -> LimitRecord | None:
        limits = self._limits.c
        wanted = select(limits.key, limits.number, limits.per, limits.by_hand).where(limits.key == name)
        known = connection.execute(wanted).first()
        if known and (known.number, known.per) == (number, per):
            return None
        if known is None:
            self.places.insert(connection, self._limits, {"key": name, "turn": 0})
        connection.execute(update(self._limits).where(limits.key == name).values(number=number, per=per))
        if known and known.per and known.per != per:
            self.places.change_period(connection, name, per, known.per)
        return LimitRecord(*known) if known and known.number is not None else None

    def _declare_missing(self, connection: Connection, asked: Sequence[PlaceAsked]) -> None:
        for one in asked:
            known = {"of_name": name_of(one.key)}
            if connection.execute(self.places.statements.number, known).scalar() is None:
                self._declare(connection, name_of(one.key), one.number, one.per)
