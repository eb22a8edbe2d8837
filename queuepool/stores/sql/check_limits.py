"""Check what a server's rules mean for these pools: how many can connect, and which names it treats as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, select

from queuepool.stores.finding import Grade
from queuepool.stores.sql.client import Client

_LIMITS = {
    # -1 and 0 mean no limit
    "postgresql": (
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int, "
        "rolconnlimit, datconnlimit FROM pg_roles, pg_database "
        "WHERE rolname = current_user AND datname = current_database()"
    ),
    "mysql": "SELECT @@max_connections, @@max_user_connections",
}
_LIMITS["mariadb"] = _LIMITS["mysql"]


def connections(client: Client, crews: Sequence[int]) -> Iterator[tuple[Grade, str]]:
    """Whether the connections suffice; ``crews`` is how many workers each pool has.

    Each worker and each steward always holds one.
    """
    limit, workers, stewards = client.ask(_limit), sum(crews), len(crews)
    if limit is None or 2 * workers + stewards <= limit:
        return
    processes = f"{workers} worker{'s'[: workers - 1]} and {stewards} steward{'s'[: stewards - 1]}"
    hold = f"{processes} hold {workers + stewards} connections"
    yield (
        Grade.WARN,
        f"{hold}, and up to {workers} more while their jobs push; the server allows {limit}, and refuses producers "
        "beyond that: raise max_connections, or have fewer workers",
    )


def merged_queues(client: Client, queues: Sequence[str]) -> Iterator[tuple[Grade, str]]:
    """Jobs that Laravel runs as if they were in one of these queues, and we do not."""
    jobs = client.tables.jobs
    named = select(jobs.c.queue).where(jobs.c.queue.in_(queues)).distinct()
    others = set(client.ask(lambda connection: connection.execute(named).scalars().all())) - {*queues}
    if others:
        names = ", ".join(map(repr, sorted(others)))
        yield (
            Grade.WARN,
            f"jobs wait in {names}, which the server's collation takes for a queue that is served: Laravel's workers "
            "run them, ours do not; name the queue as its jobs do",
        )


def _limit(connection: Connection) -> int | None:
    """How many connections this user may have to this database; ``None`` = no limit."""
    statement = _LIMITS.get(connection.dialect.name)
    limits = connection.exec_driver_sql(statement).one() if statement else ()
    return min((limit for limit in limits if limit > 0), default=None)
