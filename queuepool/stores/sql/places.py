"""Places of limits in their tables, in the transactions that start and end jobs; see ``limits.SqlLimits``.

A row of ``queuepool_limits`` is that of a limit's name, or of one of its keys, which whoever changes what is there
locks first. A transaction locks several in their order; while it hands places on, it waits for no further one: a job
that needs some at keys which others have locked gets the place at hand, and asks for the others as it enters. So who
frees a place always hands it on itself, in the same transaction.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Compiled, Connection, Table, delete, insert, select, update

from queuepool.payload.lease import Lease
from queuepool.payload.limits import job_word, name_of
from queuepool.stores.limits import GRANT_LASTS, Entering
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.entering import EnteringView, PlacesSeen
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.locks import unless_there
from queuepool.stores.sql.place_statements import PlaceStatements, is_of
from queuepool.stores.sql.postgresql import can_pipeline, send_ahead
from queuepool.stores.sql.statements import row_of, skips_locked, still_in

#: parked jobs that are looked at before other transactions may go on
_MOST_LOOKS = 100


#: the name of a statement, and its parameters
_Step = tuple[str, dict[str, Any]]


class _Parked(NamedTuple):
    """A parked job: its row, queue, places, the digest of its id, and whether it is the last of its line."""

    id: int
    queue: str
    asked: tuple[tuple[str, str], ...]
    job: str
    is_last: bool


class SqlPlaces:
    """The places at all keys of one database; parked jobs keep their rows in ``jobs``."""

    def __init__(self, client: SqlClient, jobs: JobsTable) -> None:
        self._client = client
        self._jobs = jobs
        self._limits = client.tables.queuepool_limits
        self._rings = client.tables.queuepool_rings
        self._places = client.tables.queuepool_places
        self._parked = client.tables.queuepool_parked

    @cached_property
    def statements(self) -> PlaceStatements:
        return PlaceStatements(self._client.tables, self._client.engine.dialect.name)

    @cached_property
    def view(self) -> EnteringView:
        return EnteringView(self._client, self._jobs, self.lock)

    def take(
        self, connection: Connection, one: Entering, start: str, seen: PlacesSeen, ended: Collection[str]
    ) -> set[str]:
        """Returns at which keys others may start now. ``start``: the holder of the places that count its start.

        Where one of the ``ended`` places was kept for it, it has that: no more are free than before.
        """
        keys = [asked.key for asked in one.asked]
        freed = {key for key in ended if key not in seen.rows or seen.free(key) > 0}
        for asked in one.asked:
            key = asked.key
            is_full = seen.free(key) <= 0 and key not in seen.granted
            if is_full and (stale := self._stale(connection, key, seen.now)):
                freed |= self.end_grant(connection, stale[0].holder, keys)
            if asked.per:
                self._drop_ended(connection, key, seen.now)
                per = seen.per(key) or asked.per
                self._add(connection, key, start, seen.now + per, one.lease.queue)
            else:
                held = {"at_key": key, "of_holder": one.lease.holder, "of_queue": one.lease.queue}
                lasts = {"of_row": row_of(one.lease).id, "lasts": self._jobs.retry_after}
                connection.execute(self.statements.hold, {**held, **lasts})
        return freed

    def change_period(self, connection: Connection, name: str, per: float, was: float) -> None:
        """Have the starts that were counted end as the new rule has it; 0.0 = as a job does."""
        places = self._places.c
        starts = update(self._places).where(
            is_of(places.key, name), places.granted.is_(None), places.holder.contains(" ")
        )
        connection.execute(starts.values(until=places.until + (per - was)))

    def admits(self, connection: Connection, seen: PlacesSeen, key: str) -> bool:
        """A place that was kept for the job, or a free one for which no job waits, or one that was kept too long."""
        free = seen.free(key)
        if key in seen.granted:
            return free >= 0  # its own place is one of those that are not free; the number may have been lowered since
        if free > 0:
            return not seen.waits(key)
        return free == 0 and bool(self._stale(connection, key, seen.now))

    def refuses(self, connection: Connection, key: str, now: float) -> bool:
        """Whether it does not admit a job for which no place is kept."""
        free = self._free(connection, key, now)
        if free > 0:
            return self._waits(connection, key)
        return free < 0 or not self._stale(connection, key, now)

    def strangers(self, connection: Connection, jobs: Sequence[Entering]) -> list[Entering]:
        """Those of these jobs for which no place is kept, and which hold none."""
        names = [name for one in jobs for name in (one.granted, one.lease.holder)]
        places = self._places.c
        known = set(connection.execute(select(places.holder).where(places.holder.in_(names))).scalars())
        return [one for one in jobs if known.isdisjoint((one.granted, one.lease.holder))]

    def park(self, connection: Connection, key: str, jobs: Sequence[Entering], now: float) -> None:
        """All of them at this key, which is locked; their leases end."""
        rows = [_row_at(key, one) for one in jobs]
        ids = [row["id"] for row in rows]
        connection.execute(delete(self._parked).where(self._parked.c.id.in_(ids)))  # of a table emptied by hand
        connection.execute(insert(self._parked), rows)
        self._jobs.park(connection, ids)
        for queue, part in dict.fromkeys((row["queue"], row["part"]) for row in rows):
            self._line_up(connection, key, queue, part)
        self._hand_on(connection, key, now)

    def _line_up(self, connection: Connection, key: str, queue: str, part: str) -> None:
        """Give the partition its turn, behind all others, unless it has one."""
        connection.execute(self.statements.count_turn, {"at_key": key})
        connection.execute(self.statements.line_up, {"at_key": key, "of_queue": queue, "of_part": part})

    def leave(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Give back the places of leases that have ended, in the transaction that has ended them."""
        left = self._left(connection, {"holders": [lease.holder for lease in leases]})
        now = self.now(connection) if any(is_waited_for for _, is_waited_for in left) else 0.0
        for key, is_waited_for in sorted(left):  # before a job can be moved to one of them
            if not is_waited_for and key != name_of(key):
                self._forget_unused(connection, key)
        for key, is_waited_for in sorted(left):
            if is_waited_for:
                self._hand_on(connection, key, now)

    def _left(self, connection: Connection, these: dict[str, Any]) -> Sequence[Any]:
        """The keys, now locked, at which these holders had places, and whether somebody waits there."""
        statements = self.statements
        if can_pipeline(connection):
            steps = [(self._ahead[name], these) for name in ("lock_left", "left", "end")]
            locked, found, _ = send_ahead(connection, *steps)
            if len(locked) != len(found):  # of a table that was emptied by hand
                self.lock(connection, [key for key, _ in found])
            return found
        left = connection.execute(statements.left, these).all()
        if left and connection.dialect.name != "sqlite":  # in which all is locked
            self.lock(connection, [key for key, _ in left])
            left = connection.execute(statements.left, these).all()
        if left:
            connection.execute(statements.end, these)
        return left

    @cached_property
    def _ahead(self) -> dict[str, Compiled]:
        """As the driver takes them."""
        dialect, ahead = self._client.engine.dialect, self.statements.ahead
        return {name: one.compile(dialect=dialect) for name, one in ahead.items()}

    def _forget_unused(self, connection: Connection, key: str) -> None:
        """Its row, which is locked: there may be as many keys as values of an argument."""
        if connection.execute(self.statements.is_used, {"at_key": key}).first() is None:
            connection.execute(delete(self._limits).where(self._limits.c.key == key))

    def renew(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Let places last as long as the leases of those that hold them, which begin now."""
        these = self._places.c.holder.in_([lease.holder for lease in leases])
        keys = set(connection.execute(select(self._places.c.key).where(these)).scalars())
        if keys:
            self.lock(connection, keys)
            until = math.ceil(self.now(connection)) + self._jobs.retry_after
            connection.execute(update(self._places).where(these).values(until=until))

    def _hand_on(self, connection: Connection, key: str, now: float, passed: Collection[str] = ()) -> None:
        """Hand the free places of this key, which is locked, to those that wait; ``passed``: queues to pass over."""
        free = self._free(connection, key, now)
        for _ in range(_MOST_LOOKS):
            parked = self._next(connection, key, passed) if free > 0 else None
            if parked is None:
                self._note_look(connection, key, now)
                return
            others = [one for one in parked.asked if one[0] != key]
            keys = self._locked_at_once(connection, [other for other, _ in others])
            others = [one for one in others if one[0] in keys]  # who has one of the rest may wait for this key
            refused = next((one for one in others if self._free(connection, one[0], now) <= 0), None)
            if refused:
                self._do(connection, self._out_of_line(key, parked))
                self._move_to(connection, parked, *refused, now)
            else:
                was_copied = self._grant(connection, key, {key, *keys}, parked, now)
                free = self._free(connection, key, now) if was_copied else free - 1
        self._look_at(connection, key, now)

    def _next(self, connection: Connection, key: str, passed: Collection[str]) -> _Parked | None:
        while True:
            about = {"at_key": key, "passed": list(passed)}
            row = connection.execute(self.statements.next_parked, about).first()
            if row is None:
                return None
            if row.id is not None:
                words = row.asked.split(" ")
                asked = tuple(zip(words[::2], words[1::2], strict=True))
                return _Parked(row.id, row.queue, asked, row.job, bool(row.is_last))
            self._end_turn(connection, key, row.queue, row.part)  # they were taken out

    def _end_turn(self, connection: Connection, key: str, queue: str, part: str) -> None:
        connection.execute(self.statements.end_turn, {"at_key": key, "of_queue": queue, "of_part": part})

    def _out_of_line(self, key: str, one: _Parked) -> list[_Step]:
        """Its partition's next turn comes behind those of all others."""
        about = {"at_key": key, "of_queue": one.queue, "of_part": dict(one.asked)[key]}
        return [("end_turn", about)] if one.is_last else [("count_turn", {"at_key": key}), ("turn_over", about)]

    def _do(self, connection: Connection, steps: Iterable[_Step]) -> None:
        for name, values in steps:
            connection.execute(getattr(self.statements, name), values)

    def _move_to(self, connection: Connection, one: _Parked, key: str, part: str, now: float) -> None:
        connection.execute(update(self._parked).where(self._parked.c.id == one.id).values(key=key, part=part))
        self._line_up(connection, key, one.queue, part)
        self._note_look(connection, key, now)

    def _grant(self, connection: Connection, key: str, keys: Collection[str], one: _Parked, now: float) -> bool:
        """Back to the head of its queue, where its former number puts it, with a place kept for it at each of ``keys``.

        Returns whether some were kept for a copy of it, in place of which these are.
        """
        holder = f"{one.job} {one.queue}"
        place = {"of_holder": holder, "of_queue": one.queue, "ends": now + GRANT_LASTS, "of_row": one.id}
        copies = {"holders": [holder], "at_keys": sorted(keys)}
        places: list[_Step] = [("add", {**place, "at_key": kept}) for kept in sorted(keys)]
        out: list[_Step] = [*self._out_of_line(key, one), ("out", {"of_row": one.id})]
        if can_pipeline(connection):
            ahead = [(self._ahead[name], values) for name, values in [("end_at", copies), *out, *places]]
            return bool(send_ahead(connection, *ahead, *self._jobs.unparking(one.id, one.queue))[0])
        self._do(connection, out)
        self._jobs.unpark(connection, [one.id], one.queue, 0.0)
        ended = connection.execute(self.statements.end_at, copies).rowcount
        self._do(connection, places)
        return bool(ended)

    def _add(
        self, connection: Connection, key: str, holder: str, until: float, queue: str, granted: int | None = None
    ) -> None:
        about = {"at_key": key, "of_holder": holder, "of_queue": queue, "ends": until, "of_row": granted}
        connection.execute(self.statements.add, about)

    def end_grant(self, connection: Connection, job: str, locked: Collection[str]) -> set[str]:
        """Keep no place for this job; returns at which keys some were, which are locked now, as those in ``locked``.

        Where others have the key, the place is kept until a steward looks at it, as if no worker had taken the job.
        """
        kept = set(connection.execute(self.statements.keys_of, {"holders": [job]}).scalars())
        keys = kept.intersection(locked)
        keys |= self._locked_at_once(connection, kept - keys)
        if keys:
            connection.execute(self.statements.end_at, {"holders": [job], "at_keys": sorted(keys)})
        return keys

    def back_to_jobs(self, connection: Connection, ids: Sequence[int], queue: str, delay: float = 0.0) -> None:
        """Where their numbers put them before those that were pushed since."""
        connection.execute(delete(self._parked).where(self._parked.c.id.in_(ids)))
        self._jobs.unpark(connection, ids, queue, delay)

    def look(self, connection: Connection, key: str, *, if_due: bool = False) -> None:
        """``if_due``: unless another steward has looked while this one waited for it."""
        self.lock(connection, [key])
        now = self.now(connection)
        if not if_due or self._is_due(connection, key, now):
            self._look(connection, key, now)
        if key != name_of(key) and not self._waits(connection, key):
            self._forget_unused(connection, key)

    def _is_due(self, connection: Connection, key: str, now: float) -> bool:
        limits = self._limits.c
        return connection.execute(select(limits.key).where(limits.key == key, limits.look <= now)).first() is not None

    def _look(self, connection: Connection, key: str, now: float) -> None:
        self._drop_ended(connection, key, now)
        untaken = list[Any]()
        jobs = self._client.tables.jobs
        for grant in self._stale(connection, key, now, _MOST_LOOKS):
            is_free = still_in(jobs, grant.queue), jobs.c.reserved_at.is_(None)
            row = select(jobs.c.id).where(jobs.c.id == grant.granted, *is_free)
            if connection.execute(row).first():
                untaken.append(grant)
            else:  # it runs without the limit, or was taken out
                self._end_elsewhere(connection, grant.holder, key, now)
        passed = {grant.queue for grant in untaken}
        for grant in untaken:  # no worker takes jobs of these queues: let those of others have the places
            if self._free(connection, key, now) > 0 or self._next(connection, key, passed) is None:
                break
            self._end_elsewhere(connection, grant.holder, key, now)
        if passed:
            self._hand_on(connection, key, now, passed)
        self._hand_on(connection, key, now)

    def _drop_ended(self, connection: Connection, key: str, now: float) -> None:
        """The starts of this key, which is locked, whose period is over, and the places of hosts that were lost."""
        places = self._places.c
        connection.execute(delete(self._places).where(self._at(key), places.granted.is_(None), places.until <= now))

    def _end_elsewhere(self, connection: Connection, job: str, key: str, now: float) -> None:
        """Keep no place for this job, and hand on those that this frees at other keys than this one."""
        self.free_as_well(connection, self.end_grant(connection, job, [key]) - {key}, now)

    def free_as_well(self, connection: Connection, keys: Iterable[str], now: float) -> None:
        """Hand on what came free at these keys, which are locked."""
        for key in sorted(keys):
            if self._waits(connection, key):
                self._hand_on(connection, key, now)

    def _note_look(self, connection: Connection, key: str, now: float) -> None:
        """When a place may come free by itself, if a job waits."""
        connection.execute(self.statements.note_look, {"at_key": key, "at_time": now})

    def _look_at(self, connection: Connection, key: str, now: float) -> None:
        """Have a steward look at this key at once, if a job waits there."""
        waits = self._limits.c.key == key, self._limits.c.look.is_not(None)
        connection.execute(update(self._limits).where(*waits).values(look=now))

    def _free(self, connection: Connection, key: str, now: float) -> int:
        """How many jobs may start at this key; below 1, none."""
        about = {"of_name": name_of(key), "at_key": key, "at_time": now}
        free = connection.execute(self.statements.free, about).scalar()
        return 1 if free is None else int(free)  # None: the limit is forgotten

    def _stale(self, connection: Connection, key: str, now: float, most: int = 1) -> list[Any]:
        """Those for which a place was kept too long, as no worker has taken them."""
        return list(connection.execute(self.statements.stale, {"at_key": key, "at_time": now, "most": most}))

    def _waits(self, connection: Connection, key: str) -> bool:
        return connection.execute(self.statements.waits, {"at_key": key}).first() is not None

    def _at(self, key: str) -> ColumnElement[bool]:
        return self._places.c.key == key

    def lock(self, connection: Connection, keys: Iterable[str]) -> None:
        limits, wanted = self._limits.c, sorted(set(keys))
        these = limits.key.in_(wanted)
        # Of a single one it is quicker to see when it is locked; of several, those that are missing must come in order.
        there = set(wanted) if len(wanted) == 1 else set(connection.execute(select(limits.key).where(these)).scalars())
        while True:
            for key in wanted:
                if key not in there:
                    self.insert(connection, self._limits, {"key": key, "turn": 0})
            if len(connection.execute(self.statements.lock, {"at_keys": wanted}).all()) == len(wanted):
                return
            there = set()  # another has removed some that nobody needed

    def insert(self, connection: Connection, table: Table, row: dict[str, Any]) -> None:
        """Unless there is one with its key."""
        connection.execute(unless_there(table, connection.dialect.name, row))

    def _locked_at_once(self, connection: Connection, keys: Collection[str]) -> set[str]:
        """Those of these keys that are there and that no others have locked, locked as well; in SQLite, all is.

        A key that is not there has no turns, so no job could be lined up at it: who asks for it adds it as it enters.
        """
        if not keys:
            return set()
        limits = self._limits.c
        rows, skips = (
            select(limits.key).where(limits.key.in_(keys)).order_by(limits.key),
            skips_locked(connection.dialect),
        )
        locked = rows.with_for_update(skip_locked=skips, nowait=not skips)
        return set(connection.execute(locked).scalars())

    def now(self, connection: Connection) -> float:
        return self._jobs.now(connection)


def _row_at(key: str, one: Entering) -> dict[str, Any]:
    """That of a job which is parked at this key."""
    part = next(asked.part for asked in one.asked if asked.key == key)
    words = " ".join(f"{asked.key} {asked.part}" for asked in one.asked)
    about = {"key": key, "part": part, "queue": one.lease.queue, "asked": words, "job": job_word(one.job_id)}
    return {"id": row_of(one.lease).id, **about}
