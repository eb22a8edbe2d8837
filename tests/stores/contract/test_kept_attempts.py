"""The records of attempts: written by the verb that ends the lease, and bounded."""

from __future__ import annotations

import json
from itertools import chain

import pytest

from queuepool.payload.lease import AttemptRecord, Ending
from queuepool.stores.attempts import MOST_PAYLOAD
from tests.support.kept_attempts import ENDINGS, ended, kept, kept_ids, noted
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, RETRY_AFTER, THEIRS, reserved

pytestmark = pytest.mark.usefixtures("at")

MANY = 1_000_000


def test_what_ends_a_lease_keeps_its_attempt_if_that_has_a_record(built):
    for name, end in ENDINGS.items():
        [bare] = reserved(built.queue, payload("b"), queue=name)
        assert end(built.queue, bare), name
        assert [] == kept(built, name)
        built.queue.clear(name)

        [lease] = reserved(built.queue, payload("a", data={"customer": 4711}), queue=name)
        assert end(built.queue, noted(lease, outcome="ended")), name
        [one] = kept(built, name)
        assert (name, {"id": "a", "outcome": "ended"}, False) == (one.queue, json.loads(one.text), one.is_lost)
        assert lease.receipt == one.payload


def test_of_a_lost_lease_it_is_kept_that_the_attempt_was_made(built, at):
    late = {name: reserved(built.queue, payload("a"), queue=name)[0] for name in ENDINGS}
    at.advance(RETRY_AFTER + 1)
    for name, end in ENDINGS.items():
        [theirs] = built.queue.reserve([name], THEIRS, 1).leases
        assert not end(built.queue, noted(late[name], by="late")), name
        assert built.queue.finish(noted(theirs, by="second"), Ending())
        found = {json.loads(one.text)["by"]: one.is_lost for one in kept(built, name)}
        assert {"late": True, "second": False} == found


def test_one_reserve_keeps_what_it_ends_of_several_queues_and_tags(built, at):
    built.queue.push("high", new_jobs(payload("a"), payload("b")))
    built.queue.push("default", new_jobs(payload("c"), payload("d")))
    done = built.queue.reserve(["high"], THEIRS, 1).leases
    done += built.queue.reserve(["high", "default"], OURS, 2).leases
    lost = done[1]
    assert built.queue.finish(lost, Ending())

    found = built.queue.reserve(["high", "default"], OURS, 9, list(map(noted, reversed(done))))
    assert (["d"], ["b"]) == (ids(found.leases), ids(found.refused))
    assert (["a", "b"], ["c"]) == (kept_ids(built, "high"), kept_ids(built))
    assert {"a": False, "b": True} == {json.loads(one.text)["id"]: one.is_lost for one in kept(built, "high")}
    payloads = {one.payload for queue in ("high", "default") for one in kept(built, queue)}
    assert {lease.receipt for lease in done} == payloads


def test_the_attempts_at_one_job_are_found_among_others(built):
    ended(built, "a", "b", "c", "b")
    ended(built, "b", queue="other")

    found = chain.from_iterable(built.attempts.of_job("default", "b"))
    assert ["b", "b"] == [json.loads(one.text)["id"] for one in found if json.loads(one.text)["id"] == "b"]
    assert [] == list(chain.from_iterable(built.attempts.of_job("default", "never")))


def test_a_long_payload_is_not_kept(built):
    [longest, too_long] = reserved(built.queue, payload("a"), payload("b", data={"text": "x" * MOST_PAYLOAD}))
    built.queue.delete([noted(longest), noted(too_long)])

    found = {json.loads(one.text)["id"]: one.payload for one in kept(built)}
    assert {"a": longest.receipt, "b": b""} == found


def test_any_text_is_kept(built):
    name = "ünïcödé \N{PILE OF POO} \n '%\"\\ \x7f"
    [lease] = reserved(built.queue, json.dumps({"uuid": "a", "id": "a", "job": "x", "data": name}).encode())
    built.queue.finish(noted(lease, name=name), Ending())

    [one] = kept(built)
    assert (name, name) == (json.loads(one.text)["name"], json.loads(one.payload)["data"])


@pytest.mark.thorough("1,010 of them; test_their_order_is_that_of_their_ends_however_long_they_are_kept")
def test_more_than_a_page_is_read_in_order(built):
    leases = reserved(built.queue, *(payload(f"{number:04}") for number in range(1010)))  # of a database two pages
    for first in range(0, len(leases), 84):
        built.queue.delete(list(map(noted, leases[first : first + 84])))

    assert ids(leases) == kept_ids(built)


def test_what_has_been_kept_for_long_enough_is_removed(built):
    ended(built, "a", "b", seconds=-5.0)

    assert 2 == built.attempts.trim("default", MANY, MANY)
    assert ([], 0) == (kept(built), built.attempts.trim("default", MANY, MANY))


def test_what_is_to_be_kept_for_longer_stays(built):
    ended(built, "a", "b")

    assert (0, ["a", "b"]) == (built.attempts.trim("default", MANY, MANY), kept_ids(built))


def test_each_is_kept_for_as_long_as_its_own_pool_has_said(built):
    ended(built, "a", seconds=-5.0)
    ended(built, "b", seconds=60.0)

    assert 1 == built.attempts.trim("default", MANY, MANY)
    assert ["b"] == kept_ids(built)


def test_their_order_is_that_of_their_ends_however_long_they_are_kept(built):
    ended(built, "a", seconds=600.0)
    ended(built, "b", seconds=60.0)

    assert 1 == built.attempts.trim("default", 1, MANY)
    assert ["b"] == kept_ids(built)


def test_of_too_many_the_first_are_removed(built):
    ended(built, *"abcde")
    ended(built, "x", "y", queue="other")

    assert 3 == built.attempts.trim("default", 2, MANY)
    assert ["d", "e"] == kept_ids(built)
    assert ["x", "y"] == kept_ids(built, "other")


def test_of_too_many_bytes_the_first_are_removed(built):
    ended(built, *"abcde")
    size = sum(len(one.text) + len(one.payload) for one in kept(built))

    assert 0 < built.attempts.trim("default", MANY, size // 2) < 5
    assert 2 * sum(len(one.text) + len(one.payload) for one in kept(built)) <= size


def test_attempts_that_no_lease_ends_are_noted_as_those_of_lost_leases(built):
    built.attempts.note("default", [AttemptRecord(name, f'"id":"{name}"', ',"host":"web1"', 60.0) for name in "ab"])

    assert ["a", "b"] == kept_ids(built)
    assert [("web1", b"", True)] * 2 == [
        (json.loads(one.text)["host"], one.payload, one.is_lost) for one in kept(built)
    ]
