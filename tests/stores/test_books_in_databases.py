"""Books in Laravel's table ``cache``: found by whole keys, whatever others have written in their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Table, event, select, update

from queuepool.stores.commands import CommandOutcome, RemoteCommand
from queuepool.stores.due_log import DueLine, DueLog
from queuepool.stores.factory import Stores
from tests.support.drivers import DATABASES, connection_of, opened
from tests.support.each import each

POOL, BATCH, BOOK = "a1b2c3d4e5f6", "0123456789abcdef", "commands:a1b2c3d4e5f6"


@pytest.fixture
def sqlite(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with opened(connection_of("sqlite", request)) as stores:
        yield stores


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with opened(connection_of(request.param, request)) as stores:
        yield stores


def cache_of(stores: Stores) -> Table:
    return stores.client.tables.cache


def command() -> RemoteCommand:
    return RemoteCommand(POOL, "pause", {}, "jo@web1", 1_790_000_000.25, BATCH)


def write_page(stores: Stores, text: str) -> None:
    """In the row that says which texts the book has."""
    cache = cache_of(stores)
    changed = update(cache).where(cache.c.key.endswith(f"notes:{BOOK}")).values(value=text)
    assert 1 == stores.client.ask(lambda connection: connection.execute(changed).rowcount)


@contextmanager
def statements(stores: Stores) -> Iterator[list[tuple[str, object]]]:
    """Those that are sent meanwhile."""
    sent: list[tuple[str, object]] = []

    def note(connection: object, cursor: object, statement: str, parameters: object, *_: object) -> None:
        sent.append((statement, parameters))

    event.listen(stores.client.engine, "before_cursor_execute", note)
    yield sent
    event.remove(stores.client.engine, "before_cursor_execute", note)


def test_each_verb_finds_rows_by_their_keys_alone(sqlite):
    log = DueLog(sqlite.values)
    with statements(sqlite) as sent:
        for due in range(25):  # more than a schedule's log keeps
            log.write("nightly", DueLine(due, 1.0))
        log.last("nightly")
        [text] = sqlite.commands.send([command()])
        sqlite.commands.withdraw(command(), text)
        list(sqlite.commands.take(POOL))
        sqlite.commands.answer(command(), CommandOutcome.DONE, "paused")
        list(sqlite.commands.answers(BATCH))

    plans = [
        row[-1]
        for statement, parameters in sent
        if "cache" in statement and not statement.startswith("INSERT")
        for row in sqlite.client.ask(
            lambda connection, asked=(f"EXPLAIN QUERY PLAN {statement}", parameters): connection.exec_driver_sql(
                *asked
            ).all()
        )
    ]
    assert any("(key=?" in plan for plan in plans)
    assert [] == [plan for plan in plans if "cache" in plan and "(key=?" not in plan]


def test_of_an_empty_book_one_row_is_looked_for(sqlite):
    with statements(sqlite) as sent:
        list(sqlite.commands.take(POOL))

    assert 1 == sum("SELECT" in statement for statement, _ in sent)


@pytest.mark.every_store("database")
@pytest.mark.bad_input("B173")
@each("page", ["", "garbage", "5", "-1 5", "7 6", "9 9999999999999999", "1 99999999999999999999", "٣ ٤", "1 2 3"])
def test_a_wild_place_in_a_book_hides_no_later_command(database, page, caplog):
    before, after = command(), command()
    database.commands.send([before])
    write_page(database, page)
    caplog.clear()
    list(database.commands.send([after]))

    assert [after] == list(database.commands.take(POOL))
    assert [] == list(database.commands.take(POOL))
    assert 1 == caplog.text.count(f"the book {BOOK} in the table cache is damaged")


@pytest.mark.every_store("database")
@pytest.mark.bad_input("B173")
@each("page", ["garbage", "9999999999999998 9999999999999999"])
def test_a_pool_that_finds_a_wild_place_takes_what_comes_next(database, page):
    database.commands.send([command()])
    write_page(database, page)
    assert [] == list(database.commands.take(POOL))
    after = command()
    database.commands.send([after])

    assert [after] == list(database.commands.take(POOL))


def test_what_was_taken_leaves_no_row(database):
    database.commands.send([command(), command()])
    list(database.commands.take(POOL))
    cache = cache_of(database)
    keys = database.client.ask(
        lambda connection: connection.execute(select(cache.c.key).where(cache.c.key.contains("notes:"))).all()
    )

    assert [] == keys


def test_texts_that_have_expired_are_pruned_with_expired_states(sqlite):
    for number in range(3):
        sqlite.values.note(f"answers:{number}", "late", 10, -5.0)
    sqlite.values.note("journal", "kept", 10, 60.0)

    assert 6 == sqlite.values.prune_states()
    assert [b"kept"] == sqlite.values.notes("journal", 10)
