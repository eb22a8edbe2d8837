"""``queuepool migrate`` creates missing tables as Laravel does, and reports old ones."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from queuepool.config.urls import masked
from tests.support.commands import Done, migrate_at, queuepool
from tests.support.laravel_peer import Peer, require_php

pytestmark = pytest.mark.every_store("url")

TABLES = ("jobs", "failed_jobs", "cache", "cache_locks")
#: those that Laravel does not know
OURS = (
    "queuepool_steps", "queuepool_flows", "queuepool_members", "queuepool_edges", "queuepool_joins",
    "queuepool_limits", "queuepool_rings", "queuepool_places", "queuepool_parked",
)  # fmt: skip
MADE = "".join(f"created table {name}\n" for name in (*TABLES, *OURS))
PDO = {"sqlite": "sqlite", "postgres": "pgsql", "mariadb": "mysql"}
DRIVERS = {"sqlite": "pysqlite", "postgresql": "psycopg", "mariadb": "pymysql"}
#: how a server describes what it has of Laravel's tables
DESCRIBE = {
    "sqlite": [
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND tbl_name NOT LIKE 'queuepool_%' ORDER BY name"
    ],
    "postgresql": [
        "SELECT table_name, column_name, ordinal_position, data_type, udt_name, character_maximum_length, "
        "datetime_precision, column_default, is_nullable FROM information_schema.columns WHERE table_schema = 'public' "
        "AND table_name NOT LIKE 'queuepool_%' ORDER BY 1, 3",
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename NOT LIKE 'queuepool_%' ORDER BY 1",
        "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace AND conname NOT LIKE 'queuepool_%' ORDER BY 1",
    ],
    "mariadb": [f"SHOW CREATE TABLE {table}" for table in TABLES],
}
OF_5_2 = (
    "CREATE TABLE jobs (id INT, queue TEXT, payload TEXT, attempts INT, reserved INT, reserved_at INT, "
    "available_at INT, created_at INT)"
)
OF_7 = (
    "CREATE TABLE failed_jobs (id INT, connection TEXT, queue TEXT, payload TEXT, exception TEXT, failed_at TIMESTAMP)"
)


@pytest.fixture(params=PDO)
def url(request: pytest.FixtureRequest) -> str:
    """An empty database, or a file that does not exist."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=PDO)
def each_url(request: pytest.FixtureRequest) -> str:
    """The same on every database in every run: each has its own statements that make the tables."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@contextmanager
def another(url: str, request: pytest.FixtureRequest) -> Any:
    """One more, on the same server."""
    name = engine_of(url).dialect.name
    if name == "sqlite":
        yield url.replace("queuepool.db", "another.db")
        return
    server = request.getfixturevalue({"postgresql": "postgres"}.get(name, name))
    with server.database() as found:
        yield found


def place_of(url: str) -> str:
    """As messages name it."""
    return f"the file {url.removeprefix('sqlite:///')}" if url.startswith("sqlite") else masked(url)


def engine_of(url: str) -> Engine:
    scheme = url.partition(":")[0]
    return create_engine(url.replace("://", f"+{DRIVERS[scheme]}://", 1), poolclass=NullPool)


def rows(url: str, *statements: str) -> list[Any]:
    with engine_of(url).begin() as connection:
        results = [connection.execute(text(statement)) for statement in statements]
        return [tuple(row) for result in results if result.returns_rows for row in result]


def migrate(url: str, **more: Any) -> Done:
    return queuepool("migrate", "--url", url, **more)


def told(done: Done) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def test_the_tables_are_those_that_laravel_makes(each_url, request, tmp_path):
    engine = engine_of(each_url)
    require_php(PDO[{"postgresql": "postgres"}.get(engine.dialect.name, engine.dialect.name)])
    with another(each_url, request) as laravels:
        Peer.on(laravels, tmp_path / "laravel.jsonl").run("migrate", shape=13)
        expected = rows(laravels, *DESCRIBE[engine.dialect.name])

    assert (0, MADE, "") == told(migrate(each_url))
    assert expected == rows(each_url, *DESCRIBE[engine.dialect.name])


def test_what_is_there_is_left_alone(url):
    migrate(url)
    rows(url, "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('q', '{}', 0, 1, 1)")

    assert (0, "nothing to do\n", "") == told(migrate(url))
    assert [("q",)] == rows(url, "SELECT queue FROM jobs")


@pytest.mark.thorough("the tables of Laravel 8 lack ours above, which are made beside them")
def test_a_table_that_is_missing_is_made_beside_the_others(url):
    migrate(url)
    rows(url, "DROP TABLE failed_jobs")

    assert (0, "created table failed_jobs\n", "") == told(migrate(url))
    assert {*TABLES, *OURS} == set(inspect(engine_of(url)).get_table_names())


def test_the_tables_of_laravel_8_need_none_but_ours(url, tmp_path):
    name = engine_of(url).dialect.name
    require_php(PDO[{"postgresql": "postgres"}.get(name, name)])
    Peer.on(url, tmp_path / "laravel.jsonl").run("migrate", shape=8)
    done = migrate(url)

    assert (0, "".join(f"created table {name}\n" for name in OURS)) == (done.returncode, done.stdout)
    assert 0 == queuepool("size", "--url", url).returncode


def test_a_missing_file_is_made_for_many_to_work_on(tmp_path):
    migrate("sqlite:///a b.db", cwd=tmp_path)

    assert [("wal",)] == rows(f"sqlite:///{tmp_path}/a b.db", "PRAGMA journal_mode")


def test_a_missing_file_is_refused_elsewhere_in_a_line_that_says_how_to_make_it(tmp_path):
    done = queuepool("size", "--url", "sqlite:///other.db", cwd=tmp_path)

    remedy = "create it with `queuepool migrate --url sqlite:///other.db`"
    assert (1, "", f"queuepool: there is no file {tmp_path}/other.db: {remedy}\n") == told(done)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["migrate", "size"])
def test_a_file_in_no_directory_cannot_be_made(tmp_path, verb):
    done = queuepool(verb, "--url", "sqlite:///none/q.db", cwd=tmp_path)

    assert (1, "", f"queuepool: there is no directory {tmp_path}/none\n") == told(done)


def test_a_table_that_is_missing_is_told_with_the_remedy(url):
    migrate(url)
    rows(url, "DROP TABLE jobs")
    done = queuepool("push", "do", "--url", url)

    assert (1, "", f"queuepool: {place_of(url)} has no table jobs: run `{migrate_at(url)}`\n") == told(done)


@pytest.mark.by_turns("verb")
@pytest.mark.parametrize("verb", ["start", "work"])
def test_neither_a_pool_nor_a_worker_starts_in_an_applications_database_without_our_tables(url, verb, tmp_path):
    rows(url, "CREATE TABLE orders (id INT)")
    place = ["--runtime-dir", str(tmp_path / "run")] if verb == "start" else []
    done = queuepool(verb, "--url", url, "--modules", "tests.support.poolapp", *place, timeout=60)

    assert (78, "", f"queuepool: {place_of(url)} has no table jobs: run `{migrate_at(url)}`\n") == told(done)
    assert ["orders"] == inspect(engine_of(url)).get_table_names()


def test_the_reserved_column_of_laravel_5_2_is_refused(url, tmp_path):
    migrate(url)
    rows(url, "DROP TABLE jobs", OF_5_2)
    words = "the table jobs has a column `reserved`, as in Laravel 5.2: migrate it to Laravel 5.3 or later\n"

    assert (1, "", words) == told(migrate(url))
    assert (1, "", f"queuepool: {words}") == told(queuepool("push", "do", "--url", url))


def test_failed_jobs_without_uuid_are_refused_with_what_to_do(url):
    migrate(url)
    rows(url, "DROP TABLE failed_jobs", OF_7)
    code, said, complaint = told(migrate(url))
    failed = queuepool("failed", "--url", url)

    assert (1, "", 1) == (code, said, len(complaint.splitlines()))
    assert "the table failed_jobs has no column uuid, as before Laravel 8: add it" in complaint
    assert (1, 1, True) == (failed.returncode, len(failed.stderr.splitlines()), "uuid" in failed.stderr)


def test_a_table_of_somebody_else_is_refused(url):
    migrate(url)
    rows(url, "DROP TABLE cache", "CREATE TABLE cache (id INT)")

    remedy = "if another program created it, name ours by [connection] cache_table (docs/producers.md#names-of-tables)"
    line = f"the table cache has no column expiration: it is not Laravel's; {remedy}\n"
    assert (1, "", line) == told(migrate(url))


def test_the_setting_that_is_advised_for_a_table_of_somebody_else_leaves_it_alone(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    rows(url, "CREATE TABLE jobs (title TEXT)")
    refused = told(migrate(url))[2]
    key = refused.partition("[connection] ")[2].split()[0]
    env = {f"QUEUEPOOL_CONNECTION_{key.upper()}": "work"}

    assert "jobs_table" == key
    assert (0, 0) == tuple(
        queuepool(*words, "--url", url, env=env).returncode for words in (["migrate"], ["push", "do"])
    )
    assert [] == rows(url, "SELECT title FROM jobs")


@pytest.mark.thorough("a note; stores/contract/test_sql_rows.py has the end of such a column")
def test_tinyint_attempts_are_told_and_work(mariadb_url):
    migrate(mariadb_url)
    rows(mariadb_url, "ALTER TABLE jobs MODIFY attempts TINYINT UNSIGNED NOT NULL")
    note = "the column attempts of jobs is tinyint, as before Laravel 13: a job fails at its 255th attempt"

    assert (0, "nothing to do\n", f"note: {note}\n") == told(migrate(mariadb_url))
    assert 0 == queuepool("push", "do", "--url", mariadb_url).returncode
    assert f"warn connection default: {note}" in queuepool("check", "--url", mariadb_url).stdout


def test_redis_has_no_tables(redis_url):
    assert (1, "", "queuepool: connection default is in Redis, which has no tables\n") == told(migrate(redis_url))


def test_each_database_of_a_connection_gets_what_belongs_there(tmp_path, redis_url):
    path = tmp_path / "pool.ini"
    path.write_text(
        f"[pool]\n[connection]\nurl = {redis_url}\nfailed_url = sqlite:///failed.db\ncontrol_url = sqlite:///cache.db\n"
    )
    for name in ("failed.db", "cache.db"):
        Path(tmp_path, name).touch()

    assert (0, "created table failed_jobs\ncreated table cache\ncreated table cache_locks\n", "") == told(
        queuepool("migrate", "-c", "pool.ini", cwd=tmp_path)
    )
    assert ["failed_jobs"] == inspect(engine_of(f"sqlite:///{tmp_path}/failed.db")).get_table_names()
