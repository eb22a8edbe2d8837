"""The statements that each start and end of a job with limits needs, built once: that takes longer than to execute."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Table, and_, bindparam, case, delete, exists, func, insert, or_, select, update

from queuepool.stores.sql.entering import is_among
from queuepool.stores.sql.locks import unless_there
from queuepool.stores.sql.tables import Tables

#: parameters: a limit's name or key, the holders of places, the time, and whose turn it is in a ring
_NAME, _KEY, _NOW, _QUEUE, _PART = (bindparam(name) for name in ("of_name", "at_key", "at_time", "of_queue", "of_part"))
_KEYS, _HOLDERS, _PASSED = (bindparam(name, expanding=True) for name in ("at_keys", "holders", "passed"))
_ROW: Any = bindparam("of_row")


class PlaceStatements:
    """For one database. Parameters are given by the names above."""

    def __init__(self, tables: Tables, database: str) -> None:
        self._of_places(tables.queuepool_places, tables.queuepool_limits, tables.jobs.c)
        self._of_those_who_leave(tables, database)
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
        self.is_held = select(places.key).where(at, places.holder.in_(_HOLDERS))
        self.is_used = select(places.key).where(at).limit(1)
        place = {"key": _KEY, "holder": bindparam("of_holder"), "queue": _QUEUE}
        self.add = insert(table).values({**place, "until": bindparam("ends"), "granted": _ROW})
        # A lease begins at a whole second.
        begins = select(jobs.reserved_at).where(jobs.id == _ROW).scalar_subquery()
        self.hold = insert(table).values({**place, "until": begins + bindparam("lasts"), "granted": None})
        late = select(places.holder, places.queue, places.granted).where(at, granted, places.until <= _NOW)
        self.stale = late.order_by(places.until).limit(bindparam("most"))
        coming = func.min(case((places.until > _NOW, places.until)))
        self.coming = select(coming, func.count(case((and_(granted, places.until <= _NOW), 1)))).where(at)
        self.lock = select(limits.key).where(limits.key.in_(_KEYS)).order_by(limits.key).with_for_update()
        self.look = update(names).where(limits.key == _KEY).values(look=bindparam("next_look"))

    def _of_those_who_leave(self, tables: Tables, database: str) -> None:
        places, limits, rings = (
            one.c for one in (tables.queuepool_places, tables.queuepool_limits, tables.queuepool_rings)
        )
        theirs = is_among(database)(places.holder, "holders")
        is_waited_for = exists().where(rings.key == places.key)
        self.left = select(places.key, is_waited_for).where(theirs).distinct()
        keys = limits.key.in_(select(places.key).where(theirs))
        #: what PostgreSQL does in one round trip
        self.ahead = {
            "lock_left": select(limits.key).where(keys).order_by(limits.key).with_for_update(),
            "left": self.left,
            "end": delete(tables.queuepool_places).where(theirs).returning(places.key),
        }

    def _of_lines(self, table: Table, waiting: Table, names: Table, database: str) -> None:
        rings, parked, limits = table.c, waiting.c, names.c
        self.waits = select(rings.key).where(rings.key == _KEY).limit(1)
        turns = select(rings.queue, rings.part).where(rings.key == _KEY, rings.queue.not_in(_PASSED))
        self.next_turn = turns.order_by(rings.turn).limit(1)
        self.end_turn = delete(table).where(rings.key == _KEY, rings.queue == _QUEUE, rings.part == _PART)
        in_lane = parked.key == _KEY, parked.queue == _QUEUE, parked.part == _PART, parked.id != _ROW
        self.first = select(parked.id, parked.asked, parked.job).where(*in_lane).order_by(parked.id).limit(1)
        self.count_turn = update(names).where(limits.key == _KEY).values(turn=limits.turn + 1)
        turn = select(limits.turn).where(limits.key == _KEY).scalar_subquery()
        self.line_up = unless_there(table, database, {"key": _KEY, "queue": _QUEUE, "part": _PART, "turn": turn})
