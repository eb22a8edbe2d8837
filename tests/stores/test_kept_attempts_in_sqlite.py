"""What a database does with the records of attempts when it refuses them or is busy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.event import listen

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from tests.support.kept_attempts import each_ending, ended, kept, kept_ids, noted
from tests.support.samples import payload
from tests.support.store_contract import reserved

MANY = 1_000_000
DENY = """
CREATE TRIGGER deny BEFORE INSERT ON cache WHEN new.key LIKE '%attempts%'
BEGIN SELECT RAISE(ABORT, 'no records here'); END
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queuepool.db"


@pytest.fixture
def stores(file: Path) -> Iterator[Stores]:
    with closing(Stores(ConnectionSettings(url=f"sqlite:///{file}", embedded=True), reply_timeout=0.5)) as stores:
        stores.queue.sizes("default")
        yield stores


@each_ending
def test_a_lease_ends_although_its_record_is_refused(stores, file, end):
    [lease] = reserved(stores.queue, payload("a"))
    with closing(sqlite3.connect(file)) as other:
        other.execute(DENY)

    assert end(stores.queue, noted(lease))
    assert [] == kept(stores)


def test_to_look_for_what_is_to_be_removed_takes_no_turn_among_those_that_write(stores, file):
    ended(stores, "a", "b")
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert 0 == stores.attempts.trim("default", MANY, MANY)


def test_a_search_among_the_records_of_a_queue_reads_the_index(stores, file):
    ended(stores, "a")
    asked: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, text: str, values: Any, *rest: Any) -> None:
        asked.append((text, values))

    listen(stores.client.engine, "before_cursor_execute", note)
    kept(stores)
    list(stores.attempts.of_job("default", "a"))
    stores.attempts.trim("default", MANY, MANY)
    assert 5 <= len(asked)

    with closing(sqlite3.connect(file)) as other:
        plans = [other.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall() for text, values in asked]
    assert [] == [step for plan in plans for step in plan if "SCAN cache" in step[-1]]


def test_what_nobody_trims_any_more_is_removed_with_what_else_has_expired(stores):
    ended(stores, "a", seconds=-5.0)
    ended(stores, "b")

    assert 1 == stores.values.prune_states()
    assert ["b"] == kept_ids(stores)
