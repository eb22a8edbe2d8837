"""Tables of other names, and in a schema of PostgreSQL's: every verb uses them, and no other table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect

from queuepool.config.loader import load
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from queuepool.stores.sql.migrate import migrate
from tests.support.commands import queuepool
from tests.support.drivers import DATABASES, bare_connection_of, opened
from tests.support.each import each
from tests.support.own_connections import drivers, engine_of
from tests.support.samples import payload
from tests.support.store_contract import OURS, failed_job, reserved

NAMES = {
    "jobs_table": "Order",  # a word of SQL's
    "failed_table": "my_failed_jobs_with_a_name_that_is_longer_than_most_are",
    "cache_table": "laravel_cache",
    "lock_table": "laravel_locks",
    "batches_table": "laravel_batches",
}
#: our own, which belong to that table of jobs
KINDS = ("steps", "flows", "members", "edges", "joins", "limits", "rings", "places", "parked")
OUR_TABLES = [f"queuepool_{one}_{NAMES['jobs_table']}" for one in KINDS]
PLACES = [(database, "") for database in DATABASES] + [("postgres", "Own")]


@pytest.fixture(params=PLACES, ids=lambda place: " ".join(place).strip())
def settings(request: pytest.FixtureRequest) -> ConnectionSettings:
    database, schema = request.param
    return replace(bare_connection_of(database, request), **NAMES, schema=schema)


@pytest.fixture
def built(settings: ConnectionSettings) -> Iterator[Stores]:
    with opened(settings) as stores:
        yield stores


@pytest.mark.every_store("settings")
def test_no_table_of_the_usual_names_is_made(built, settings):
    tables = sorted(inspect(engine_of(settings.url)).get_table_names(schema=settings.schema or None))

    assert sorted([*list(NAMES.values())[:4], *OUR_TABLES]) == tables
    assert [] == migrate(built.client)


@pytest.mark.every_store("settings")
def test_every_verb_uses_them(built, settings):
    queue, store = Queue(settings), built.queue
    queue.push("ok", unique_id="1")
    assert ("", 1) == (queue.push("ok", unique_id="1"), queue.size())
    queue.clear()

    failed = failed_job(built)
    assert 1 == built.failed.count()
    assert built.failed.retry(failed)
    [lease] = store.reserve(["default"], OURS, 1).leases
    assert store.release(lease, 0, "a", "crashes")
    assert 1 == store.tallies("a").crashes
    [lease] = store.reserve(["default"], OURS, 1).leases
    assert store.quarantine(lease, "odd")
    assert ["odd"] == [entry.reason for entry in built.records.quarantined("default")]
    assert ["default"] == store.queues()
    [lease] = reserved(store, payload("b"))
    assert ([True], [True]) == (store.renew([lease]), store.delete([lease]))
    built.control.pause("default")
    assert frozenset({"default"}) == built.control.read(["default"]).paused
    queue.close()


@pytest.mark.every_store("settings")
def test_a_push_within_a_transaction_uses_them(built, settings):
    queue = Queue(settings)
    with drivers(settings.url) as own:
        queue.within(own).push("ok", unique_id="1")
        own.rollback()
        queue.within(own).push("ok", unique_id="1")
        own.commit()

    assert 1 == queue.size()
    queue.close()


@pytest.mark.every_store("settings")
def test_migrate_and_check_use_them(settings, tmp_path):
    file = tmp_path / "pool.ini"
    schema = f"schema = {settings.schema}" if settings.schema else ""
    lines = [f"{key} = {name}" for key, name in NAMES.items()]
    file.write_text("\n".join(["[connection]", f"url = {settings.url}", *lines, schema, "[pool]", "modules = os"]))

    made = queuepool("migrate", "-c", str(file))
    again = queuepool("migrate", "-c", str(file))
    checked = queuepool("check", "-c", str(file), env={"PYTHONWARNINGS": "ignore"})

    names = [*list(NAMES.values())[:4], *OUR_TABLES]
    assert [f"created table {name}" for name in names] == made.stdout.splitlines()
    assert "nothing to do\n" == again.stdout
    assert f"the tables Order, {NAMES['failed_table']}, laravel_cache exist" in checked.stdout
    with closing(engine_of(settings.url).connect()) as connection:
        assert "jobs" not in inspect(connection).get_table_names()


def test_two_tables_of_one_database_are_two_stores(sqlite_url):
    from queuepool.config.connections import identity_of

    usual = ConnectionSettings(url=sqlite_url)

    assert identity_of(usual) != identity_of(replace(usual, jobs_table="others"))
    assert identity_of(usual) == identity_of(replace(usual, failed_table="others"))


@pytest.mark.bad_input("B126")
@each(
    ("lines", "problem"),
    [
        ("jobs_table = jobs; DROP TABLE users", "is not a name for a table: 1 to 63 of A-Z a-z 0-9 _, and no digit"),
        ('failed_table = a"b', "is not a name for a table"),
        ("cache_table = ", "'' is not a name for a table"),
        (f"lock_table = {'x' * 64}", "is not a name for a table"),
        ("batches_table = 1st", "'1st' is not a name for a table"),
        ("schema = a.b", "'a.b' is not a name for a table"),
        ("schema = other", "schema: is for PostgreSQL: another database is named in the url"),
        ("lock_table = Jobs", "lock_table: Jobs is also jobs_table: each table needs its own name"),
    ],
)
def test_wrong_names_are_refused(tmp_path: Path, lines: str, problem: str):
    file = tmp_path / "pool.ini"
    file.write_text(f"[connection]\nurl = sqlite:///q.db\n{lines}\n[pool]\n")

    with pytest.raises(ConfigError) as refused:
        load(file, environ={})

    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)
