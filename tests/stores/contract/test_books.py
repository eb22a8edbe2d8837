"""Books in every store: texts in their order, which are read, taken once, or dropped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.values import MAX_NOTE, MAX_TAKEN
from tests.support.asked_again import asked_again
from tests.support.drivers import PATIENCE
from tests.support.eventually import eventually

BOOK = "journal"


@pytest.fixture
def values(built):
    return built.values


def write(values, *texts: str, book: str = BOOK, most: int = 100) -> None:
    for text in texts:
        values.note(book, text, most, 60.0)


def test_texts_are_read_in_their_order_the_latest_last(values):
    write(values, "one", "two", "three", "two")

    assert [b"one", b"two", b"three", b"two"] == values.notes(BOOK, 10)
    assert [b"three", b"two"] == values.notes(BOOK, 2)
    assert [] == values.notes("journals", 10)


def test_a_book_keeps_its_last_texts(values):
    write(values, *map(str, range(7)), most=6)
    assert 6 == len(values.notes(BOOK, 10))
    write(values, "7", most=3)

    assert [b"5", b"6", b"7"] == values.notes(BOOK, 10)


def test_a_book_whose_name_another_begins_with_is_another(values):
    write(values, "one", book="commands:a")
    write(values, "two", book="commands:ab")

    assert [b"one"] == values.take_notes("commands:a", 100)
    assert [b"two"] == values.take_notes("commands:ab", 100)


def test_what_was_taken_is_gone(values):
    write(values, "one", "two")

    assert [b"one", b"two"] == values.take_notes(BOOK, 100)
    assert [] == values.take_notes(BOOK, 100)
    write(values, "three")
    assert [b"three"] == values.notes(BOOK, 10)


def test_of_many_who_take_each_text_goes_to_one(built, values):
    write(values, *map(str, range(40)))

    def taken(_: int) -> list[bytes]:
        with closing(Stores(built.settings, reply_timeout=PATIENCE)) as own:
            return asked_again(lambda: own.values.take_notes(BOOK, 100))

    with ThreadPoolExecutor(6) as several:
        found = [text for texts in several.map(taken, range(6)) for text in texts]

    assert sorted(b"%d" % number for number in range(40)) == sorted(found)


def test_of_many_who_write_into_a_book_that_is_taken_meanwhile_no_text_is_lost(built, values):
    def wrote(writer: int) -> None:
        with closing(Stores(built.settings, reply_timeout=PATIENCE)) as own:
            for number in range(10):
                asked_again(lambda text=f"{writer}.{number}": own.values.note(BOOK, text, 100, 60.0))

    found: list[bytes] = []
    with ThreadPoolExecutor(4) as several:
        writers = [several.submit(wrote, writer) for writer in range(4)]
        while not all(one.done() for one in writers):
            found += asked_again(lambda: values.take_notes(BOOK, 100))
        found += values.take_notes(BOOK, 100)

    assert [None] * 4 == [one.result() for one in writers]
    assert sorted(f"{writer}.{number}".encode() for writer in range(4) for number in range(10)) == sorted(found)


def test_a_text_is_dropped_once(values):
    write(values, "one", "two", "one")

    assert values.drop_note(BOOK, "one")
    assert [1, 1] == [values.notes(BOOK, 10).count(text) for text in (b"one", b"two")]
    assert values.drop_note(BOOK, "one")
    assert not values.drop_note(BOOK, "one")
    assert not values.drop_note("other", "two")


@pytest.mark.bad_input("B173")
def test_what_is_too_large_is_not_read(values):
    write(values, "x" * (MAX_NOTE + 1), "small", "y" * MAX_NOTE)

    assert [b"small", b"y" * MAX_NOTE] == values.notes(BOOK, 10)
    assert [b"small", b"y" * MAX_NOTE] == values.take_notes(BOOK, 100)
    assert [] == values.take_notes(BOOK, 100)


@pytest.mark.bad_input("B173")
def test_of_a_flood_only_the_last_is_taken_and_the_book_is_gone(values):
    for size in (1, MAX_NOTE):
        write(values, *(f"{number:02}".ljust(size, "x") for number in range(20)))
        last = [b"%02d" % number for number in range(20)][-MAX_TAKEN // MAX_NOTE :]
        found = values.take_notes(BOOK, 18)

        assert (last if size > 1 else [b"%02d" % number for number in range(2, 20)]) == [text[:2] for text in found]
        assert [] == values.notes(BOOK, 100)


def test_texts_that_have_expired_are_gone(built, values):
    values.note(BOOK, "old", 10, 1.0 if is_redis(built.settings.url) else 0.0)
    write(values, "of another book", book="other")

    eventually(lambda: [] == values.notes(BOOK, 10))
    assert [] == values.take_notes(BOOK, 100)
    assert [b"of another book"] == values.notes("other", 10)
