"""Laravel's tables, seen from outside: each view is of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlalchemy import Engine, delete, exc, insert, select, text

from queuepool.stores.sql.records import NO_JOB
from queuepool.stores.sql.tables import USUAL
from tests.chaos.stores.base import Place
from tests.support.eventually import eventually

_JOBS = """SELECT payload, CASE WHEN reserved_at IS NOT NULL THEN 'reserved'
WHEN available_at > created_at THEN 'delayed' ELSE 'ready' END FROM jobs
WHERE queue NOT IN ('outcomes', 'ticks', 'queuepool:parked')"""
_IS_STATE = USUAL.cache.c.key.contains("queuepool:job:")
# A row that only says that it is parked would never come back.
_PARKED = """SELECT payload FROM queuepool_parked
JOIN jobs ON jobs.id = queuepool_parked.id AND jobs.queue = 'queuepool:parked'"""
_OUTCOMES = "SELECT payload FROM jobs WHERE queue = 'outcomes'"
_STEPS = f"SELECT payload FROM jobs WHERE queue = 'steps' UNION ALL {_PARKED} WHERE queuepool_parked.queue = 'steps'"
_RESTART = "illuminate:queue:restart"
_TAGS = "queuepool:workers"
#: and no mark of a schedule
_IS_LOCK = USUAL.cache_locks.c.key.contains("laravel_unique_job:", autoescape=True)
_FAILED = "SELECT payload, exception FROM failed_jobs"
# A job that has failed is not one that waits, not for a moment.
_ALL = f"""SELECT payload FROM jobs WHERE queue <> 'queuepool:parked' UNION ALL SELECT payload FROM failed_jobs
UNION ALL {_PARKED}"""
_LEFT = """SELECT (SELECT count(*) FROM jobs WHERE queue NOT IN ('outcomes', 'ticks', 'queuepool:parked'))
+ (SELECT count(*) FROM queuepool_parked)"""


class Tables:
    """``engine`` keeps no connection between two queries."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # Of SQLite, any transaction is of one moment.
        self._snapshot: Any = "SERIALIZABLE" if engine.dialect.name == "sqlite" else "REPEATABLE READ"

    def left(self) -> int:
        return int(self.ask(_LEFT)[0][0])

    def stored(self) -> Iterator[tuple[str, bytes]]:
        for payload, exception in self.ask(_FAILED):
            yield _where(exception), payload.encode()
        for payload, where in self.ask(_JOBS):
            yield where, payload.encode()
        for (payload,) in self.ask(_PARKED):
            yield "parked", payload.encode()

    def at_once(self) -> Iterator[list[bytes]]:
        yield [row[0].encode() for row in self.ask(_ALL)]

    def outcomes(self) -> list[bytes]:
        return [row[0].encode() for row in self.ask(_OUTCOMES)]

    def states(self) -> Iterator[tuple[str, bytes]]:
        with self.engine.connect() as connection:
            for key, value in connection.execute(select(USUAL.cache.c.key, USUAL.cache.c.value).where(_IS_STATE)):
                yield key.rpartition(":")[2], value.encode()

    def steps_and_locks(self) -> tuple[list[bytes], list[str]]:
        return eventually(self._steps_and_locks)

    def _steps_and_locks(self) -> tuple[list[bytes], list[str]] | None:
        with _unless_moved(), self.engine.connect().execution_options(isolation_level=self._snapshot) as connection:
            if self.engine.name == "sqlite":  # its driver begins none for queries: each would see its own moment
                connection.exec_driver_sql("BEGIN")
            steps, locks = (
                connection.execute(text(_STEPS)).all(),
                connection.execute(select(USUAL.cache_locks.c.key).where(_IS_LOCK)).all(),
            )
            return [row[0].encode() for row in steps], [row[0] for row in locks]
        return None

    def stamp(self, number: int) -> None:
        """As `queue:restart` does."""
        with self.engine.begin() as connection:
            connection.execute(delete(USUAL.cache).where(USUAL.cache.c.key == _RESTART))
            connection.execute(insert(USUAL.cache).values(key=_RESTART, value=f"i:{number};", expiration=2**31 - 1))

    def ask(self, statement: str) -> list[Any]:
        return eventually(partial(self._asked, statement))[0]

    def _asked(self, statement: str) -> tuple[list[Any]] | None:
        with _unless_moved(), self.engine.connect() as connection:
            return (list(connection.execute(text(statement))),)
        return None


@contextmanager
def _unless_moved() -> Iterator[None]:
    """Leave the block if a file of SQLite that was moved while it was open is opened again by others just now."""
    try:
        yield
    except exc.OperationalError as error:
        if "disk I/O error" not in str(error):
            raise


class InTables:
    """The part of a store that its tables answer for."""

    url: str
    far: str
    tables: Tables

    def places(self) -> list[Place]:
        return [(self.url, []), (self.far, [])]

    def laravel(self) -> dict[str, str]:
        return {"QP_URL": self.url}

    def left(self) -> int:
        return self.tables.left()

    def stored(self) -> Iterator[tuple[str, bytes]]:
        return self.tables.stored()

    def at_once(self) -> Iterator[list[bytes]]:
        return self.tables.at_once()

    def outcomes(self) -> list[bytes]:
        return self.tables.outcomes()

    def states(self) -> Iterator[tuple[str, bytes]]:
        return self.tables.states()

    def steps_and_locks(self) -> tuple[list[bytes], list[str]]:
        return self.tables.steps_and_locks()


def _where(exception: str) -> str:
    if exception.startswith(NO_JOB):
        return "quarantine"
    return "failed" if exception else "failed without a reason"
