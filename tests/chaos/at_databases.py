"""Faults of a database server, its connections and its rows."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

from sqlalchemy import Connection, exc, text

from tests.chaos.intermittent import absences
from tests.chaos.rig import Rig

_OLDEST = "SELECT id FROM jobs WHERE queue <> 'outcomes' ORDER BY id LIMIT 20 FOR UPDATE SKIP LOCKED"
#: the first and the last of the jobs that one worker holds
_OF_ONE = "SELECT min(id), max(id) FROM jobs WHERE reserved_at IS NOT NULL GROUP BY available_at HAVING count(*) > 1"


def kill_database(rig: Rig) -> Iterator[float]:
    """Kill all of it with kill -9, and start it again after a while."""
    return absences(rig, rig.store.server.kill, rig.store.server.start, (0.1, 2.0), (0.5, 2.0))


def stop_database(rig: Rig) -> Iterator[float]:
    """Stop it cleanly, as for an upgrade."""
    return absences(rig, rig.store.server.stop, rig.store.server.start, (0.1, 2.0), (0.5, 2.0))


def freeze_database(rig: Rig) -> Iterator[float]:
    return absences(
        rig, lambda: rig.store.signal(signal.SIGSTOP), lambda: rig.store.signal(signal.SIGCONT), (0.2, 4.0), (0.2, 1.0)
    )


def cut_connections(rig: Rig) -> Iterator[float]:
    """Cut some connections, whatever they are doing."""
    while True:
        for number in _some(rig, rig.store.words.connections):
            rig.store.end_connection(number)
        yield rig.chance.uniform(0.05, 0.3)


def cut_transactions(rig: Rig) -> Iterator[float]:
    """Cut some connections in the middle of a transaction."""
    while True:
        for number in _some(rig, rig.store.words.transactions):
            rig.store.end_connection(number)
        yield rig.chance.uniform(0.005, 0.05)


def lock_rows(rig: Rig) -> Iterator[float]:
    """A slow reader locks the oldest jobs."""
    while True:
        with rig.store.tables.engine.connect() as connection:
            connection.execute(text(_OLDEST))
            yield rig.chance.uniform(0.2, 1.5)
        yield rig.chance.uniform(0.05, 0.3)


def deadlock(rig: Rig) -> Iterator[float]:
    """Another session locks what a worker holds from last to first, while the worker settles from first to last."""
    while True:
        with rig.store.tables.engine.connect() as connection, suppress(exc.DBAPIError):
            for line in rig.store.words.impatient:
                connection.execute(text(line))
            yield from _lock_backwards(rig, connection)
        yield rig.chance.uniform(0.0, 0.05)


def _lock_backwards(rig: Rig, connection: Connection) -> Iterator[float]:
    held = connection.execute(text(_OF_ONE)).all()
    if held:
        first, last = rig.chance.choice(held)
        connection.execute(text(f"SELECT id FROM jobs WHERE id = {last} FOR UPDATE SKIP LOCKED"))
        yield rig.chance.uniform(0.005, 0.05)
        connection.execute(text(f"SELECT id FROM jobs WHERE id = {first} FOR UPDATE"))


def _some(rig: Rig, statement: str) -> list[int]:
    numbers = rig.store.numbers(statement)
    return rig.chance.sample(numbers, rig.chance.randint(min(1, len(numbers)), min(4, len(numbers))))


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "kill_database": (kill_database, 1),
    "stop_database": (stop_database, 1),
    "freeze_database": (freeze_database, 1),
    "cut_connections": (cut_connections, 1),
    "cut_transactions": (cut_transactions, 1),
    "lock_rows": (lock_rows, 1),
    "deadlock": (deadlock, 1),
}
