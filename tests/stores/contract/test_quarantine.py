"""The quarantine keeps what is no job, byte for byte."""

from __future__ import annotations

import pytest

from queuepool.errors import BadPayload
from queuepool.payload.envelope import decode
from queuepool.stores.factory import Stores
from tests.support.each import each
from tests.support.hostile_texts import hostile
from tests.support.samples import attempted, new_jobs, payload
from tests.support.store_contract import EMPTY, drained, reserved

pytestmark = pytest.mark.usefixtures("at")


def test_what_is_set_aside_keeps_its_bytes_its_reason_and_its_time(built, at):
    built.queue.quarantine(reserved(built.queue, payload("a"))[0], "odd")

    entries = list(built.records.quarantined("default"))

    assert [("default", "odd", at.now, payload("a"))] == [
        (entry.queue, entry.reason, entry.at, entry.payload) for entry in entries
    ]


def test_the_quarantine_is_read_oldest_first_however_long_it_is(built):
    raws = [payload(f"job-{number}") for number in range(250)]
    for lease in reserved(built.queue, *raws):
        built.queue.quarantine(lease, "odd")

    assert raws == [entry.payload for entry in built.records.quarantined("default")]


def set_aside(built: Stores) -> str:
    built.queue.quarantine(reserved(built.queue, payload("a"))[0], "odd")
    return next(built.records.quarantined("default")).id


def test_what_was_set_aside_is_put_back_as_it_was(built):
    entry = set_aside(built)

    assert built.records.requeue("default", entry)
    assert [attempted(payload("a"))] == drained(built.queue)
    assert not built.records.requeue("default", entry)


def test_what_was_set_aside_may_be_mended_before_it_is_put_back(built):
    built.records.requeue("default", set_aside(built), payload("b"))

    assert [attempted(payload("b"))] == drained(built.queue)


def test_what_was_set_aside_may_be_dropped(built):
    entry = set_aside(built)

    assert built.records.drop_quarantined("default", entry)
    assert EMPTY == built.queue.sizes("default")
    assert not built.records.drop_quarantined("default", entry)


def test_of_two_equal_entries_one_is_put_back(built):
    for lease in reserved(built.queue, payload("a"), payload("a")):
        built.queue.quarantine(lease, "odd")
    first, second = built.records.quarantined("default")

    assert built.records.requeue("default", first.id)
    assert [second] == list(built.records.quarantined("default"))
    assert 1 == built.queue.sizes("default").ready


def test_an_entry_of_another_queue_is_not_there(built):
    entry = set_aside(built)

    assert not built.records.requeue("high", entry)
    assert not built.records.drop_quarantined("high", entry)


#: a whole job, or one that does not count, and something behind it
BEHIND_ITS_END = [
    job + rest
    for job in (payload("a"), b'{"id":"a","job":"app.ok"}', payload("a") + b" ")
    for rest in (b"\0", b"\0xx", b'\0{"attempts":7}', b"xx", payload("b"), b'{"attempts":7} ')
]


def set_aside_by_its_reader(built: Stores, raw: bytes) -> list[tuple[str, bytes]]:
    """By the store, or by the worker that gets it."""
    for lease in reserved(built.queue, raw):
        with pytest.raises(BadPayload) as bad:
            decode(lease.receipt, lease.attempts)
        built.queue.quarantine(lease, bad.value.reason)
    found = [(entry.reason, entry.payload) for entry in built.records.quarantined("default")]
    for entry in list(built.records.quarantined("default")):
        built.records.drop_quarantined("default", entry.id)
    return found


@pytest.mark.bad_input("B004")
@each("raw", BEHIND_ITS_END)
def test_what_has_something_behind_its_end_is_set_aside_whoever_reads_it_with_every_byte(built, raw):
    if b"\0" in raw and built.settings.url.startswith("postgresql"):
        return  # it cannot hold it

    assert [("json", raw)] == set_aside_by_its_reader(built, raw)


@pytest.mark.thorough("megabytes: test_a_long_payload_costs_no_search of a script, and of Python test_hostile_texts")
@pytest.mark.megabytes
@pytest.mark.fault("F61")
def test_no_text_keeps_a_store_busy(built):
    """Each would take it a quarter of an hour if each byte were compared with each other."""
    for raw in hostile(300 * 1024).values():
        built.queue.push("default", new_jobs(raw))
        for lease in built.queue.reserve(["default"], 7, 1).leases:
            built.queue.quarantine(lease, "odd")

    assert 0 == built.queue.sizes("default").total
