"""The quarantine keeps what is no job, byte for byte."""

from __future__ import annotations

import pytest

from queuepool.stores.factory import Stores
from tests.support.samples import attempted, payload
from tests.support.store_contract import EMPTY, drained, reserved

pytestmark = pytest.mark.usefixtures("at")


def test_what_is_set_aside_keeps_its_bytes_its_reason_and_its_time(built, at):
    built.queue.quarantine(reserved(built.queue, payload("a"))[0], "odd")

    entries = list(built.quarantine.entries("default"))

    assert [("default", "odd", at.now, payload("a"))] == [
        (entry.queue, entry.reason, entry.at, entry.payload) for entry in entries
    ]


def test_the_quarantine_is_read_oldest_first_however_long_it_is(built):
    raws = [payload(f"job-{number}") for number in range(250)]
    for lease in reserved(built.queue, *raws):
        built.queue.quarantine(lease, "odd")

    assert raws == [entry.payload for entry in built.quarantine.entries("default")]


def set_aside(built: Stores) -> str:
    built.queue.quarantine(reserved(built.queue, payload("a"))[0], "odd")
    return next(built.quarantine.entries("default")).id


def test_what_was_set_aside_is_put_back_as_it_was(built):
    entry = set_aside(built)

    assert built.quarantine.requeue("default", entry)
    assert [attempted(payload("a"))] == drained(built.queue)
    assert not built.quarantine.requeue("default", entry)


def test_what_was_set_aside_may_be_mended_before_it_is_put_back(built):
    built.quarantine.requeue("default", set_aside(built), payload("b"))

    assert [attempted(payload("b"))] == drained(built.queue)


def test_what_was_set_aside_may_be_dropped(built):
    entry = set_aside(built)

    assert built.quarantine.drop("default", entry)
    assert EMPTY == built.queue.sizes("default")
    assert not built.quarantine.drop("default", entry)


def test_of_two_equal_entries_one_is_put_back(built):
    for lease in reserved(built.queue, payload("a"), payload("a")):
        built.queue.quarantine(lease, "odd")
    first, second = built.quarantine.entries("default")

    assert built.quarantine.requeue("default", first.id)
    assert [second] == list(built.quarantine.entries("default"))
    assert 1 == built.queue.sizes("default").ready


def test_an_entry_of_another_queue_is_not_there(built):
    entry = set_aside(built)

    assert not built.quarantine.requeue("high", entry)
    assert not built.quarantine.drop("high", entry)
