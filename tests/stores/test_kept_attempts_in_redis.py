"""What only Redis does with the records of attempts: it has scripts of its own for them, and may be full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from queuepool.errors import StoreDenied, TagRetired
from queuepool.payload.envelope import decode
from queuepool.payload.lease import AttemptRecord, Lease
from queuepool.settlement.attempts import AttemptRecords
from queuepool.settlement.verdict import RanBy, Run
from queuepool.steward.attempts import RecordLost, TrimAttempts
from queuepool.stores.factory import Stores
from tests.support.kept_attempts import ENDINGS, each_ending, ended, kept, kept_ids, noted
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, reserved

MANY = 1_000_000


def test_a_reserve_ahead_keeps_what_it_ends(stores):
    leases = reserved(stores.queue, payload("a"), payload("b"))
    read = stores.queue.reserve_ahead(["default"], OURS, 1, list(map(noted, leases)))

    assert [] == read().refused
    assert ["a", "b"] == kept_ids(stores)


def test_a_reserve_that_waits_keeps_what_it_ends_before(stores):
    leases = reserved(stores.queue, payload("a"))
    reply = stores.queue.reserve_waiting(["default"], 30.0, OURS, 1, list(map(noted, leases)))
    assert [] == reply.deleted().refused
    assert ["a"] == kept_ids_by_another(stores)
    push_by_another(stores)
    reply.wait()

    assert ["b"] == ids(reply.read().leases)


def kept_ids_by_another(stores: Stores) -> list[str]:
    """By another connection, as this one waits."""
    with closing(Stores(stores.settings)) as other:
        return kept_ids(other)


def push_by_another(stores: Stores) -> None:
    with closing(Stores(stores.settings)) as other:
        other.queue.push("default", new_jobs(payload("b")))


def test_a_retired_tag_keeps_nothing(stores):
    [lease] = reserved(stores.queue, payload("a"))
    stores.queue.retire(OURS)
    with pytest.raises(TagRetired):
        stores.queue.reserve(["default"], OURS, 1, [noted(lease)])

    assert [] == kept(stores)


@each_ending
def test_a_key_of_another_type_costs_the_record_alone(stores, end):
    [lease] = reserved(stores.queue, payload("a"))
    stores.client.command("SET", stores.queue.keys.attempts("default"), "theirs")

    assert end(stores.queue, noted(lease))
    assert b"theirs" == stores.client.command("GET", stores.queue.keys.attempts("default"))


@pytest.fixture
def narrow(own_server, connection) -> Iterator[Stores]:
    """Those of a user who may do all that a worker does, but not write records."""
    names = ["queues:*", "tags", "tallies:*", "failed*", "quarantine:*", "job:*"]
    allowed = [f"~{connection.prefix}{'' if name.startswith('queues') else 'queuepool:'}{name}" for name in names]
    own_server.say("ACL", "SETUSER", "narrow", "on", ">narrow", "+@all", "&*", *allowed)
    with closing(Stores(replace(connection, url=f"unix://narrow:narrow@{own_server.path}"))) as stores:
        yield stores


def test_a_user_who_may_not_write_records_ends_each_lease_all_the_same(narrow):
    for name, end in ENDINGS.items():
        with closing(Stores(narrow.settings)) as stores:
            [lease] = reserved(stores.queue, payload("a"), queue=name)
            assert end(stores.queue, noted(lease)), name


def test_what_no_lease_ends_is_left_out_where_the_user_may_not_write_it(narrow):
    take_what_no_lease_ends(narrow)


def take_what_no_lease_ends(stores: Stores) -> None:
    """Of a lost lease and of a lost pool; and trim: none of it raises."""
    lease = Lease("default", payload("a"), OURS)
    AttemptRecords(60.0, "p", RanBy(1, 1, 1), stores.attempts).note_lost(lease, decode(lease.receipt), Run())
    worker = {"role": "worker", "number": 3, "pid": 77, "job": {"name": "x", "id": "a", "queue": "default"}}
    RecordLost(stores.attempts, 60.0)({"host": "web2", "pool": "p", "at": 1.0, "processes": [worker]})
    TrimAttempts(stores.attempts, ["default"]).run(0.0)


def test_what_no_lease_ends_is_asked_once_of_a_store_that_is_away(narrow, own_server):
    lease, records = Lease("default", payload("a"), OURS), AttemptRecords(60.0, "p", RanBy(1, 1, 1), narrow.attempts)
    own_server.kill()
    records.note_lost(lease, decode(lease.receipt), Run())
    unanswered = narrow.queue.unanswered
    records.note_lost(lease, decode(lease.receipt), Run())

    assert 0 < unanswered == narrow.queue.unanswered


def test_of_what_was_sent_ahead_and_denied_nothing_was_done_and_the_next_one_has_no_records(narrow):
    leases = list(map(noted, reserved(narrow.queue, payload("a"), payload("b"))))
    with pytest.raises(StoreDenied):
        narrow.queue.reserve_ahead(["default"], OURS, 1, leases[:1])()
    assert [] == narrow.queue.reserve_ahead(["default"], OURS, 1, leases[:1])().refused

    with closing(Stores(narrow.settings)) as other:
        reply = other.queue.reserve_waiting(["default"], 30.0, OURS, 1, leases[1:])
        with pytest.raises(StoreDenied):
            reply.deleted()
        reply.give_up()
        reply = other.queue.reserve_waiting(["default"], 30.0, OURS, 1, leases[1:])
        assert [] == reply.deleted().refused
        reply.give_up()


def test_a_server_that_has_never_kept_a_record_keeps_that_of_a_reserve_that_waits(own_server, connection):
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        leases = reserved(stores.queue, payload("a"))
        own_server.say("SCRIPT", "FLUSH")
        reply = stores.queue.reserve_waiting(["default"], 30.0, OURS, 1, list(map(noted, leases)))
        assert [] == reply.deleted().refused
        assert ["a"] == kept_ids_by_another(stores)
        reply.give_up()


def test_what_a_record_says_of_its_process_counts_among_those_of_others(stores):
    one, other = reserved(stores.queue, payload("a"), payload("b"))
    one, other = noted(one), noted(other)
    assert one.record
    assert other.record
    mixed = [
        one._replace(record=one.record._replace(by=',"pid":1')),
        other._replace(record=other.record._replace(by=',"pid":2')),
    ]
    stores.queue.delete(mixed)

    assert {"a": 1, "b": 2} == {(facts := json.loads(found.text))["id"]: facts["pid"] for found in kept(stores)}


def test_a_full_server_takes_no_record_and_ends_each_lease(own_server, connection):
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        leases = {name: reserved(stores.queue, payload("a"), queue=name)[0] for name in ENDINGS}
        own_server.say("CONFIG", "SET", "maxmemory", 1)
        assert [] == [name for name, end in ENDINGS.items() if not end(stores.queue, noted(leases[name]))]
        take_what_no_lease_ends(stores)
        own_server.say("CONFIG", "SET", "maxmemory", 0)

        assert [] == [one for name in (*ENDINGS, "default") for one in kept(stores, name)]


def test_the_records_of_a_queue_that_nobody_trims_end(stores):
    ended(stores, "a")
    stores.attempts.note("other", [AttemptRecord("b", '"id":"b"', "", 60.0)])
    assert 60 < stores.client.command("TTL", stores.queue.keys.attempts("default")) <= 3660
    assert 60 < stores.client.command("TTL", stores.queue.keys.attempts("other")) <= 3660


def test_to_trim_lets_those_that_stay_live_on(stores):
    ended(stores, "a")
    stores.client.command("EXPIRE", stores.queue.keys.attempts("default"), 5)
    stores.attempts.trim("default", MANY, MANY)

    assert 60 < stores.client.command("TTL", stores.queue.keys.attempts("default")) <= 3660


def test_what_is_too_much_for_one_call_is_removed_by_several(stores):
    large = [payload(str(number), data={"text": "x" * 3000}) for number in range(600)]
    for first in range(0, 600, 20):
        leases = reserved(stores.queue, *large[first : first + 20])
        stores.queue.delete([noted(lease, -5.0) for lease in leases])
    key = stores.queue.keys.attempts("default")
    assert 600 == len(kept(stores))  # which takes more than one step to read, too
    removed, is_more = stores.client.script("trim_attempts", [key], [MANY, 10 * MANY * MANY])
    assert (True, 1) == (0 < removed < 30, is_more)

    while kept(stores):
        assert stores.attempts.trim("default", MANY, 10 * MANY * MANY)


def test_a_key_of_another_type_does_not_hold_up_the_other_queues(stores):
    ended(stores, "a", queue="other", seconds=-5.0)
    stores.client.command("SET", stores.queue.keys.attempts("default"), "theirs")
    TrimAttempts(stores.attempts, ["default", "other"]).run(0.0)

    assert [] == kept(stores, "other")
