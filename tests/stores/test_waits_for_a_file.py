"""Connections to one SQLite file, of which one has its lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from queuepool.stores.sql import sqlite
from tests.support.eventually import eventually


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[float], sqlite.FileConnection]:
    create = ["CREATE TABLE jobs (id INTEGER PRIMARY KEY)"]
    connect = partial(sqlite.connect, tmp_path / "q.sqlite", durable=False, create=create, migrate="")
    return lambda timeout: connect(timeout=timeout)


def test_one_that_has_waited_for_long_tries_as_often_as_at_first(opened):
    tries = list[str]()
    with closing(opened(60.0)) as writer, closing(opened(60.0)) as waiting:
        writer.execute("BEGIN IMMEDIATE")
        waiting.set_trace_callback(tries.append)
        waiter = Thread(target=lambda: waiting.cursor().execute("BEGIN IMMEDIATE"))
        waiter.start()
        eventually(lambda: len(tries) > 100)  # SQLite's own wait is one try
        writer.execute("COMMIT")
        waiter.join(45.0)

        assert not waiter.is_alive()
        assert waiting.in_transaction


def test_one_that_has_waited_for_its_timeout_is_told_that_the_file_is_locked(opened):
    with closing(opened(60.0)) as writer, closing(opened(0.05)) as waiting:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            waiting.execute("BEGIN IMMEDIATE")
        writer.execute("COMMIT")

        waiting.execute("BEGIN IMMEDIATE")
        assert waiting.in_transaction
