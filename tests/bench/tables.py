"""Laravel's tables on a private database of each kind, and how rows come there by the million."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.envelope import Envelope, encode
from queuepool.stores.sql.ddl import statements_of
from tests.bench.rig import PATIENCE, Rig
from tests.support.databases import MariaDB, Postgres, running

STORES = ["sqlite", "postgres", "mariadb"]
BRANDS = {"postgres": Postgres, "mariadb": MariaDB}

_NOW = {
    "sqlite": "unixepoch()",
    "postgresql": "CAST(floor(extract(epoch FROM now())) AS integer)",
    "mariadb": "unix_timestamp()",
}
_NUMBERS = {
    "sqlite": "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n)",
    "postgresql": "generate_series(1, {rows})",
    "mariadb": "seq_1_to_{rows}",
}
_ANALYZE = {"sqlite": "ANALYZE", "postgresql": "ANALYZE jobs", "mariadb": "ANALYZE TABLE jobs"}
_PADDING = 200 * "x"


@contextmanager
def sql_rig(store: str, *modules: str) -> Iterator[Rig]:
    """On a server with its usual durability, and empty tables. ``modules``: more than the one with the timed jobs."""
    names = ",".join(("tests.bench.app", *modules))
    with tempfile.TemporaryDirectory(prefix="queuepool-bench-") as folder:
        if store == "sqlite":
            url = f"sqlite:///{folder}/queue.db"
            rig = Rig(Path(folder), ConnectionSettings(url=url, embedded=True, timeout=PATIENCE), names)
            rig.stores.queue.sizes("default")  # the file is made
            yield rig
            return
        with running(BRANDS[store], durable=True) as server:
            rig = Rig(Path(folder), ConnectionSettings(url=server.url, timeout=PATIENCE), names)
            create(rig)
            yield rig


def kind(rig: Rig) -> str:
    return rig.connection.url.partition(":")[0]


def execute(rig: Rig, *lines: str) -> list[tuple[Any, ...]]:
    """One after the other; gives what the last one brought."""
    found: list[tuple[Any, ...]] = []
    for line in lines:
        result = rig.stores.client.ask(lambda connection, line=line: _rows(connection.execute(text(line))))
        found = result
    return found


def create(rig: Rig) -> None:
    """New tables, of which the planner knows nothing."""
    for table, statements in statements_of(kind(rig)).items():
        execute(rig, f"DROP TABLE IF EXISTS {table}", *statements)


def insert(rig: Rig, rows: int, delay: int = 0, job: str = "noop", queue: str = "default") -> None:
    """In the server, all at once: a million takes seconds."""
    now, numbers = _NOW[kind(rig)], _NUMBERS[kind(rig)].format(rows=rows)
    columns = "queue, payload, attempts, available_at, created_at"
    _, raw = encode(job, {}, Envelope(display_name=_PADDING, created_at=int(time.time())))
    line = text(f"INSERT INTO jobs ({columns}) SELECT '{queue}', :raw, 0, {now} + {delay}, {now} FROM {numbers} n")
    rig.stores.client.ask(lambda connection: connection.execute(line, {"raw": raw.decode()}))


def analyze(rig: Rig) -> None:
    execute(rig, _ANALYZE[kind(rig)])


def leave_unanalyzed(rig: Rig) -> None:
    """Else PostgreSQL would analyse it within the minute."""
    if kind(rig) == "postgresql":
        execute(rig, "ALTER TABLE jobs SET (autovacuum_enabled = off)")


def _rows(result: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in result] if result.returns_rows else []
