"""The statements that each start and end of a job with limits needs, built once: that takes longer than to execute."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Double, Select, Table, and_, bindparam, case, delete, exists, func, insert, or_, select, update

from queuepool.stores.sql.entering import in_turn, is_among, waits_at
from queuepool.stores.sql.locks import unless_there
from queuepool.stores.sql.tables import Tables

#: parameters: a limit's name or key, the holders of places, the time, and whose turn it is in a ring
_NAME: Any = bindparam("of_name")
_KEY: Any = bindparam("at_key")
_NOW: Any = bindparam("at_time")
_QUEUE: Any = bindparam("of_queue")
_PART: Any = bindparam("of_part")
_ROW: Any = bindparam("of_row")
_KEYS: Any = bindparam("at_keys", expanding=True)
_HOLDERS: Any = bindparam("holders", expanding=True)
_PASSED: Any = bindparam("passed", expanding=True)


class PlaceStatements:
    """For one database. Parameters are given by the names above."""

    def __init__(self, tables: Tables, database: str) -> None:
        self._of_places(tables.queuepool_places, tables.queuepool_limits, tables.jobs.c)
        self._of_those_who_leave(tables, database)
        self._of_looks(tables)
        self._of_lines(tables.queuepool_rings, tables.queuepool_parked, tables.queuepool_limits, database)

    def _of_places(self, table: Table, names: Table, jobs: Any) -> None:
        places, limits = table.c, names.c
        at, granted = places.key == _KEY, places.granted.is_not(None)
        taken = select(func.count()).where(at, or_(granted, places.until > _NOW)).scalar_subquery()
        in_force = func.coalesce(limits.by_hand, limits.number)
        self.free = select(in_force - taken).where(limits.key == _NAME, limits.number.is_not(None))
        self.number = select(limits.number).where(limits.key == _NAME)
        self.keys_of = select(places.key).where(places.holder.in_(_HOLDERS))
        self.end = delete(table).where(places.holder.in_(_HOLDERS))
        self.is_used = select(places.key).where(at).limit(1)
        place = {"key": _KEY, "holder": bindparam("of_holder"), "queue": _QUEUE}
        self.add = insert(table).values({**place, "until": bindparam("ends"), "granted": _ROW})
        # A lease begins at a whole second.
        begins = select(jobs.reserved_at).where(jobs.id == _ROW).scalar_subquery()
        self.hold = insert(table).values({**place, "until": begins + bindparam("lasts"), "granted": None})
        late = select(places.holder, places.queue, places.granted).where(at, granted, places.until <= _NOW)
        self.stale = late.order_by(places.until).limit(bindparam("most"))
        self.lock = select(limits.key).where(limits.key.in_(_KEYS)).order_by(limits.key).with_for_update()

    def _of_looks(self, tables: Tables) -> None:
        limits, places = tables.queuepool_limits, tables.queuepool_places
        at, rings = places.c.key == _KEY, tables.queuepool_rings.c
        is_waited_for = waits_at(rings, _KEY)
        now = bindparam("at_time", type_=Double)
        stale = exists().where(at, places.c.granted.is_not(None), places.c.until <= now)
        first = select(func.min(places.c.until)).where(at, places.c.until > now).scalar_subquery()
        soon = now + 1
        coming = func.coalesce(first, soon)
        # A job that was handed a place may wait for a worker.
        look = case((is_waited_for, case((and_(stale, coming > soon), soon), else_=coming)))
        self.note_look = update(limits).where(limits.c.key == _KEY).values(look=look)

    def _of_those_who_leave(self, tables: Tables, database: str) -> None:
        places, limits, rings = (
            one.c for one in (tables.queuepool_places, tables.queuepool_limits, tables.queuepool_rings)
        )
        theirs = is_among(database)(places.holder, "holders")
        self.end_at = delete(tables.queuepool_places).where(theirs, is_among(database)(places.key, "at_keys"))
        is_waited_for = waits_at(rings, places.key)
        self.left = select(places.key, is_waited_for).where(theirs).distinct()
        keys = limits.key.in_(select(places.key).where(theirs))
        #: what PostgreSQL does in one round trip
        self.ahead: dict[str, Any] = {
            "lock_left": select(limits.key).where(keys).order_by(limits.key).with_for_update(),
            "left": self.left,
            "end": delete(tables.queuepool_places).where(theirs).returning(places.key),
            "end_at": self.end_at.returning(places.key),
        }

    def _of_lines(self, table: Table, waiting: Table, names: Table, database: str) -> None:
        rings, limits = table.c, names.c
        self.waits = in_turn(rings, _KEY)
        at_turn = rings.key == _KEY, rings.queue.not_in(_PASSED)
        turn = select(rings.queue, rings.part).where(*at_turn).order_by(rings.turn).limit(1).subquery("turn")
        self.next_parked = _first_of(turn.c, waiting, database)
        mine = rings.key == _KEY, rings.queue == _QUEUE, rings.part == _PART
        self.end_turn = delete(table).where(*mine)
        self.count_turn = update(names).where(limits.key == _KEY).values(turn=limits.turn + 1)
        turn_now = select(limits.turn).where(limits.key == _KEY).scalar_subquery()
        self.turn_over = update(table).where(*mine).values(turn=turn_now)
        self.out = delete(waiting).where(waiting.c.id == _ROW)
        for name in ("end_turn", "count_turn", "turn_over", "out", "add", "note_look"):
            self.ahead[name] = getattr(self, name)
        self.line_up = unless_there(table, database, {"key": _KEY, "queue": _QUEUE, "part": _PART, "turn": turn_now})


def is_of(key: Any, name: str) -> Any:
    """The test whether a column's key is one of this limit: its name, or NAME=VALUE."""
    return or_(key == name, key.startswith(f"{name}=", autoescape=True))


def _first_of(turn: Any, waiting: Table, database: str) -> Any:
    """This line, with the oldest of those that wait in it, if there are any, and whether it is the only one."""
    parked, first, last = waiting.c, waiting.alias("first").c, waiting.alias("last").c
    oldest = _along(first, turn, database).order_by(first.part, first.id).limit(1).scalar_subquery()
    youngest = _along(last, turn, database).order_by(last.part.desc(), last.id.desc()).limit(1).scalar_subquery()
    is_last = (parked.id == youngest).label("is_last")
    line = turn.queue.table.outerjoin(waiting, parked.id == oldest)
    return select(turn.queue, turn.part, parked.id, parked.asked, parked.job, is_last).select_from(line)


def _along(parked: Any, turn: Any, database: str) -> Select[Any]:
    """The line, to be asked for in the order of the index that has all of it.

    For PostgreSQL it is a range there: with an equality, it would find the same order in the index on the numbers, and
    pass by all that have waited at other keys for longer.
    """
    is_range = database == "postgresql"
    part = parked.part.between(turn.part, turn.part) if is_range else parked.part == turn.part
    line = parked.key == _KEY, parked.queue == turn.queue, part
    return select(parked.id).where(*line).correlate(turn.queue.table)
