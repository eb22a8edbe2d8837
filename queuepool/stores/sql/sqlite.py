"""How an SQLite file is made and opened."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from queuepool.errors import StoreDenied
from queuepool.stores.sql.ddl import statements_of


def connect(path: Path, *, durable: bool, patience: float, create: bool) -> sqlite3.Connection:
    """In autocommit. Raises ``StoreDenied`` when there is no such file and it is not to be made."""
    if not path.exists():
        if not create:
            raise StoreDenied(f"there is no file {path}: make it with `queuepool migrate`")
        if not path.parent.is_dir():
            raise StoreDenied(f"there is no directory {path.parent}")
        _make(path)
    connection = _open(path, "rw", patience)
    # A push that returned survives a power failure. One may take back what a worker settled: it is done again.
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    return connection


def _make(path: Path) -> None:
    """With Laravel's tables, at once or not at all; who comes second takes what is there."""
    draft = path.with_name(f"{path.name}.new-{secrets.token_hex(4)}")
    try:
        with closing(_open(draft, "rwc", 1.0)) as connection:
            # Readers and the writer do not wait for each other. The file keeps this; others' files stay as they are.
            connection.execute("PRAGMA journal_mode = WAL")
            for statements in statements_of("sqlite").values():
                connection.executescript(";".join(statements))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _open(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)
