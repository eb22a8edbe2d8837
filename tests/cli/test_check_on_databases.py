"""``queuepool check`` reports a database's version, its tables, our rights and the needs of SQLite's file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from queuepool.config.urls import masked
from queuepool.stores.finding import Grade
from queuepool.stores.sql.check import _ROWS, _transport, _version
from queuepool.stores.sql.tables import USUAL
from tests.support.commands import ROOT, Done, migrate_at, queuepool
from tests.support.each import each
from tests.support.narrow import OF_COLUMNS, narrow_database

pytestmark = pytest.mark.every_store("url")

DRIVERS = {"sqlite": "pysqlite", "postgresql": "psycopg", "mariadb": "pymysql"}
DATABASES = ["sqlite_url", "postgres_url", "mariadb_url"]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest) -> str:
    """A database with Laravel's tables."""
    found = str(request.getfixturevalue(request.param))
    assert 0 == queuepool("migrate", "--url", found).returncode
    return found


def execute(url: str, *statements: str) -> list[Any]:
    engine = create_engine(url.replace("://", f"+{DRIVERS[url.partition(':')[0]]}://", 1), poolclass=NullPool)
    with engine.begin() as connection:
        results = [connection.execute(text(statement)) for statement in statements]
        return [tuple(row) for result in results if result.returns_rows for row in result]


def found(url: str, grade: str, **more: Any) -> list[str]:
    """What a check says of the connection, in this grade."""
    rows = json.loads(queuepool("check", "--url", url, "--json", **more).stdout)
    return [row["words"] for row in rows if (grade, "connection default") == (row["grade"], row["what"])]


def told(done: Done) -> tuple[int, str]:
    return done.returncode, done.stderr


def test_a_good_database_is_found_good(url):
    good = found(url, "ok")

    assert ([], []) == (found(url, "warn"), found(url, "FAIL"))
    assert [True, True] == [good[1].endswith(" answers"), good[2].split()[0] in ("SQLite", "PostgreSQL", "MariaDB")]
    assert "the tables jobs, failed_jobs, cache exist, and every needed right is granted" == good[-1]


@pytest.mark.thorough("a good database is found good above, and again in other tests with the rows that it had")
def test_a_check_leaves_nothing_behind(url):
    found(url, "ok")

    assert [(0,)] * 3 == execute(url, *(f"SELECT count(*) FROM {table}" for table in ("jobs", "failed_jobs", "cache")))


def test_tables_that_are_missing_are_told_one_by_one(url):
    execute(url, "DROP TABLE jobs", "DROP TABLE cache")

    place = f"the file {url.removeprefix('sqlite:///')}" if url.startswith("sqlite") else masked(url)
    assert [f"{place} has no table {table}: run `{migrate_at(url)}`" for table in ("jobs", "cache")] == found(
        url, "FAIL"
    )


@pytest.mark.thorough("test_migrate.py says it of a table of somebody else, in the same words")
def test_a_table_that_cannot_be_worked_with_is_told(url):
    execute(url, "DROP TABLE failed_jobs", "CREATE TABLE failed_jobs (id INT)")

    remedy = "if another program created it, name ours by [connection] failed_table (docs/producers.md#names-of-tables)"
    line = f"the table failed_jobs has no column connection: it is not Laravel's; {remedy}"
    assert [line] == found(url, "FAIL")


def test_a_table_of_ours_that_another_version_has_made_is_told(url):
    execute(url, "DROP TABLE queuepool_joins", "CREATE TABLE queuepool_joins (flow INT)", "DROP TABLE queuepool_steps")

    why = "another version has made it: drop it if nothing of it is needed, and run `queuepool migrate`"
    line = f"the table queuepool_joins has no column bad: {why}"
    assert [line] == found(url, "FAIL")
    done = queuepool("migrate", "--url", url)
    assert (1, f"{line}\n") == (done.returncode, done.stderr)


def test_rights_that_are_missing_are_told_by_name(postgres_url):
    queuepool("migrate", "--url", postgres_url)
    drop = (
        "DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'limited') THEN DROP ROLE limited; END IF; END $$"
    )
    execute(
        postgres_url, drop, "CREATE ROLE limited LOGIN", "GRANT USAGE ON SCHEMA public TO limited",
        "GRANT SELECT, INSERT ON jobs TO limited",
        "GRANT ALL ON failed_jobs, cache, jobs_id_seq, failed_jobs_id_seq TO limited",
    )  # fmt: skip
    denied = found(postgres_url.replace("queuepool@", "limited@"), "FAIL")
    execute(postgres_url, "DROP OWNED BY limited", "DROP ROLE limited")

    assert [
        "UPDATE on jobs is refused: permission denied for table jobs",
        "DELETE on jobs is refused: permission denied for table jobs",
    ] == denied


NARROW = {
    "utf8mb3": r"the table failed_jobs has uuid, .*, exception in utf8mb3, which lacks .*; ALTER TABLE failed_jobs C",
    "LATIN1": "the database's encoding is LATIN1, which lacks characters: .*; UTF8 would hold all",
    "SQL_ASCII": "the database's encoding is SQL_ASCII: other programs may store bytes",
}


@pytest.mark.by_turns("encoding")
@pytest.mark.parametrize("encoding", NARROW)
def test_what_a_database_cannot_hold_is_told_with_its_cost(encoding, request):
    server = request.getfixturevalue("mariadb" if encoding in OF_COLUMNS else "postgres")
    with narrow_database(server, encoding) as url:
        assert [1] == [
            len(re.findall(NARROW[encoding], words))
            for words in found(url, "warn")
            if "failed" in words or "encoding" in words
        ]
        assert [] == found(url, "FAIL")


def test_what_a_failed_store_apart_cannot_hold_is_told(mariadb, redis_url, tmp_path):
    with narrow_database(mariadb, "latin1") as url:
        (tmp_path / "pool.ini").write_text(
            f"[connection]\nurl = {redis_url}\nfailed_url = {url}\n[pool]\nmodules = json\n"
        )
        done = queuepool("check", "-c", f"{tmp_path}/pool.ini")

    assert ["failed_jobs"] == re.findall(r"warn connection default: the table (\w+) has .* in latin1", done.stdout)


def test_every_column_that_must_have_a_value_is_tried_with_one():
    may_lack = {"jobs": {"id", "reserved_at"}, "failed_jobs": {"id", "failed_at"}, "cache": set[str]()}

    assert {name: set(USUAL.table(name).columns.keys()) - lack for name, lack in may_lack.items()} == {
        table: set(row) for table, row in _ROWS.items()
    }


def test_a_database_that_does_not_answer_is_one_line_without_the_password(tmp_path):
    url = f"postgresql://u:s3cr3t@/d?host={tmp_path}"
    done = queuepool("check", "--url", url)

    assert (1, 1) == (done.returncode, done.stdout.count("FAIL connection default: connection"))
    assert "s3cr3t" not in done.stdout + done.stderr


# SQLite's file


def test_a_file_without_wal_is_told_with_the_remedy(sqlite_url):
    queuepool("migrate", "--url", sqlite_url)
    execute(sqlite_url, "PRAGMA journal_mode = DELETE")
    path = sqlite_url.removeprefix("sqlite:///")

    assert [
        "journal_mode delete: readers and writers block each other; "
        f"sqlite3 {path} 'PRAGMA journal_mode = WAL'"
    ] == found(sqlite_url, "warn")  # fmt: skip


def test_a_file_that_is_missing_is_told_and_not_made(tmp_path):
    url = f"sqlite:///{tmp_path}/q.db"

    assert [f"there is no file {tmp_path}/q.db: create it with `queuepool migrate --url {url}`"] == found(url, "FAIL")
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "q.db").write_text("not at all " * 100)

    remedy = "move it away, or say where the queue is, url = sqlite:////PATH"
    assert [f"{tmp_path}/q.db: file is not a database: {remedy}"] == found(f"sqlite:///{tmp_path}/q.db", "FAIL")


def test_a_directory_in_the_place_of_the_file_is_told(tmp_path):
    url = f"sqlite:///{tmp_path}"
    line = f"{tmp_path} is a directory: say where the queue is, url = sqlite:////PATH"

    assert [line] == found(url, "FAIL")
    assert (1, f"queuepool: {line}\n") == told(queuepool("size", "do", "--url", url))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody can look into."""
    with tempfile.TemporaryDirectory(prefix="queuepool-check-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_file_and_a_directory_that_cannot_be_written_to_are_told(open_folder):
    path = open_folder / "q.db"
    queuepool("migrate", "--url", f"sqlite:///{path}")
    path.chmod(0o444)
    open_folder.chmod(0o555)
    # Root without its power over files; another user might not be let through to this Python.
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*drop, sys.executable, "-m", "queuepool"]
    about: dict[str, Any] = {"env": {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}, "cwd": "/"}
    run = partial(subprocess.run, capture_output=True, text=True, timeout=30, check=False, **about)
    done, pushed = (run([*command, *words, "--url", f"sqlite:///{path}"]) for words in (["check"], ["push", "do"]))
    open_folder.chmod(0o755)

    assert [
        f"FAIL connection default: {place} cannot be written to by uid {os.geteuid()}: chown or chmod it"
        for place in (path, open_folder)
    ] == [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert f"queuepool: {path}: attempt to write a readonly database: uid {os.geteuid()} must" in pushed.stderr


# What needs a server that we have not


class Said:
    """A dialect after its server has said what it is."""

    def __init__(self, name: str, version: tuple[int, ...], is_mariadb: bool = False) -> None:
        self.name = name
        self.server_version_info = version
        self.is_mariadb = is_mariadb


@each(
    ("dialect", "expected"),
    [
        (Said("sqlite", (3, 35, 0)), (Grade.OK, "SQLite 3.35.0")),
        (Said("sqlite", (3, 34, 1)), (Grade.FAIL, "SQLite 3.34.1: at least 3.35 is needed (it has no RETURNING)")),
        (Said("postgresql", (12, 0)), (Grade.OK, "PostgreSQL 12.0")),
        (Said("postgresql", (11, 22)), (Grade.FAIL, "PostgreSQL 11.22: at least 12 is needed")),
        (Said("mysql", (8, 0, 11)), (Grade.OK, "MySQL 8.0.11")),
        (Said("mysql", (5, 7, 44)), (Grade.FAIL, "MySQL 5.7.44: at least 8 is needed (it has no SKIP LOCKED)")),
        (
            Said("mysql", (10, 5, 9), True),
            (Grade.FAIL, "MariaDB 10.5.9: at least 10.6 is needed (it has no SKIP LOCKED)"),
        ),
        (Said("mariadb", (10, 11, 6), True), (Grade.OK, "MariaDB 10.11.6")),
    ],
)
def test_a_server_that_is_too_old_is_told_with_what_it_lacks(dialect, expected):
    assert expected == _version(dialect)


@each(
    ("address", "remedy"),
    [
        ("postgresql://u:p@db/d", "?sslmode=verify-full"),
        ("postgresql://u:p@db/d?sslmode=prefer", "?sslmode=verify-full"),
        ("mysql://u:p@db/d", "?ssl_ca=FILE"),
        ("mariadb://u:p@10.0.0.1:3307/d", "?ssl_ca=FILE"),
    ],
)
def test_a_password_that_crosses_the_network_in_the_clear_is_told(address, remedy):
    [(grade, words)] = _transport(address)

    assert (Grade.WARN, remedy) == (grade, words.rpartition(" ")[2])


@each(
    "address",
    [
        "postgresql://u:p@localhost/d",
        "postgresql://u:p@/d?host=/run",
        "postgresql://u@db/d",
        "postgresql://u:p@db/d?sslmode=require",
        "mysql://u:p@db/d?ssl_ca=/ca.pem",
        "sqlite:////srv/q.db",
    ],
)
def test_a_password_that_is_safe_is_not_told(address):
    assert [] == list(_transport(address))
