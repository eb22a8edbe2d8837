"""Counting an attempt changes nothing else in a payload, for any JSON object."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
import redis
from hypothesis import example, given
from hypothesis import strategies as st

from queuepool.errors import BadPayload
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from queuepool.stores.records import Quarantined
from tests.support.effort import effort, patient
from tests.support.payload_strategies import PHP, anywhere, as_bytes, laravels, others, styles, values
from tests.support.samples import new_jobs

pytestmark = patient
MANY, SOME = effort(250), effort(100)


@pytest.fixture
def store(stores: Stores) -> Any:
    return stores.queue


def pushed_and_reserved(store: Any, raw: bytes) -> Any:
    store.clear("default")
    store.push("default", new_jobs(raw))
    [lease] = store.reserve(["default"], 1, 1).leases
    return lease


@MANY
@given(sample=anywhere() | laravels())
@example(sample=('{"attempts":@@}', 0))
@example(sample=('{"data":{"attempts":1},"attempts":@@,"x":[{"attempts":2}]}', 3))
def test_a_reservation_raises_the_top_level_attempts_and_no_other_byte(store, sample):
    template, attempts = sample

    lease = pushed_and_reserved(store, as_bytes(template, attempts))

    assert as_bytes(template, attempts + 1) == lease.receipt


@SOME
@given(sample=anywhere() | laravels())
def test_a_job_given_back_is_byte_for_byte_what_was_pushed(store, sample):
    raw = as_bytes(*sample)

    store.give_back([pushed_and_reserved(store, raw)])

    assert raw == store.sizes("default").oldest


@pytest.mark.thorough("one such payload is in a list below")
@SOME
@given(fields=others, style=styles)
def test_a_payload_without_attempts_gets_them_in_front(store, fields, style):
    raw = style.written(fields)

    lease = pushed_and_reserved(store, raw.encode())

    assert ('{"attempts":1' + ("," if fields else "") + raw.removeprefix("{")).encode() == lease.receipt


@pytest.mark.thorough("several attempts; one in test_a_reservation_raises_the_top_level_attempts_and_no_other_byte")
@SOME
@given(sample=anywhere() | laravels(), count=st.integers(1, 4))
def test_attempt_for_attempt_nothing_but_the_count_changes(store, sample, count):
    template, attempts = sample
    lease = pushed_and_reserved(store, as_bytes(template, attempts % 1_000))
    for _ in range(count):
        store.release(lease, 0.0, "a")
        [lease] = store.reserve(["default"], 1, 1).leases

    assert as_bytes(template, attempts % 1_000 + count + 1) == lease.receipt


rubbish = st.binary(max_size=60) | st.text(string.printable, max_size=60).map(str.encode)


@pytest.mark.fault("F61")
@MANY
@given(raw=rubbish | values.map(PHP.written).map(str.encode))
def test_whatever_bytes_are_pushed_they_are_reserved_or_set_aside(stores, raw):
    store = stores.queue
    store.client.command("FLUSHALL")
    store.push("default", new_jobs(raw))

    by_script = store.reserve(["default"], 1, 1)
    for lease in by_script.leases:
        settle_unless_a_job(store, lease)

    sizes, set_aside = store.sizes("default"), [entry.payload for entry in entries(stores)]
    assert (0, 1) == (sizes.ready, sizes.reserved + sizes.quarantined)
    assert not by_script.quarantined or [raw] == set_aside


def settle_unless_a_job(store: Any, lease: Lease) -> None:
    try:
        decode(lease.receipt)
    except BadPayload as bad:
        store.quarantine(lease, bad.reason)


def entries(stores: Stores) -> list[Quarantined]:
    return list(stores.records.quarantined("default"))


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (b'{"id":7,"attempts":3}', b'{"id":7,"attempts":3}'),
        (b'{"id":7}', b'{"attempts":0,"id":7}'),
        (b'{"id":7,"attempts":null}', b'{"id":7,"attempts":0}'),
        (b'{"id":7,"attempts":"3"}', b'{"id":7,"attempts":3}'),
        (b'{"id":7,"attempts":-5}', b'{"id":7,"attempts":0}'),
    ],
)
def test_what_the_decoder_sets_aside_is_what_was_pushed_its_attempts_as_they_were_taken(stores, raw, kept):
    stores.queue.quarantine(pushed_and_reserved(stores.queue, raw), "id")

    assert [kept] == [entry.payload for entry in entries(stores)]


def test_attempts_are_found_in_front_of_any_number_of_namesakes(store):
    raw = json.dumps({"attempts": 0, "job": "app.ok", "data": [{"attempts": number} for number in range(9)]})

    assert raw.replace("0", "1", 1).encode() == pushed_and_reserved(store, raw.encode()).receipt


def test_a_job_at_the_most_attempts_is_given_back_as_it_was(store):
    raw = b'{"id":"a","job":"app.ok","attempts":65535}'

    store.give_back([pushed_and_reserved(store, raw)])

    assert raw == store.sizes("default").oldest


def test_attempts_in_scientific_notation_are_set_aside_and_the_queue_flows_on(stores):
    stores.queue.push(
        "default", new_jobs(b'{"job":"x","id":"1","attempts":1E+0,"z":1}', b'{"id":"2","job":"ok","attempts":0}')
    )

    reservation = stores.queue.reserve(["default"], 1, 1)

    assert [("default", "attempts")] == reservation.quarantined
    assert 1 == len(reservation.leases)


# Too long for a search

LONG = json.dumps({"command": 'O:1:"J":1:{s:1:"x";s:9:"attempts":1}' * 2**16})
HORIZON = '"type":"job","tags":["App\\\\Order:1","a:\\"attempts\\":7"],"silenced":false,"pushedAt":"1754500000.1"'


@pytest.mark.by_turns("attempts")
@pytest.mark.parametrize(
    "template",
    [
        '{"uuid":"u","job":"app.ok","data":%s,"id":"u","attempts":@@,' + HORIZON + "}",
        '{"uuid":"u","job":"app.ok","data":%s,"attempts":@@,"delay":null,"tags":[],"at":{"x":[{}]}}\n',
        '{"tags":["\\"attempts\\":5"],"x":{"attempts":5},"attempts":@@,"data":%s,"job":"app.ok"}',
        '{"attempts" : @@ , "job": "app.ok", "data": %s}',
        '{"data": %s, "job": "app.ok", "attempts" : @@ , "x\\"attempts":5}',
    ],
)
@pytest.mark.parametrize("attempts", [0, 9, 65_535])
def test_the_attempts_of_a_long_payload_are_found_near_its_ends(stores, template, attempts):
    raw, receipt = (template.replace("@@", str(number)) % LONG for number in (attempts, attempts + 1))

    lease = pushed_and_reserved(stores.queue, raw.encode())
    stores.queue.give_back([lease])

    assert len(raw) > 2**20
    assert receipt.encode() == lease.receipt
    assert raw.encode() == stores.queue.sizes("default").oldest


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ('{"a":%s,"attempts":0,"b":%s}', "too-large"),
        ('{"a":%s,"x":{"attempts":0}}', "too-large"),
        ('{"a":%s,"x":[{"attempts":0}],"b":1}', "too-large"),
        ('{"attempts":"0","a":%s}', "too-large"),
        ('{"a":%s,"attempts":1E+0}', "too-large"),
        ('{"a":%s,"attempts":1.5,"b":1}', "too-large"),
        ('[%s,{"attempts":0}]', "too-large"),
        ('{"a":%s', "too-large"),
        ('{"a":%s,"attempts":65536,"b":1}', "attempts"),
    ],
)
def test_a_long_payload_whose_attempts_are_not_found_is_set_aside(stores, template, reason):
    raw = template.replace("%s", LONG).encode()
    stores.queue.push("default", new_jobs(raw))

    assert [("default", reason)] == stores.queue.reserve(["default"], 1, 1).quarantined
    assert [raw] == [entry.payload for entry in entries(stores)]


def test_a_long_payload_costs_no_search(server, stores):
    """It costs the server less time of a processor than half as many bytes in payloads that are searched."""

    def cost(parts: int) -> float:
        stores.queue.push("default", new_jobs(b'{"a":"' + b'\\"attempts\\":1,' * parts + b'","attempts":0,"b":1}'))
        before = spent(server)
        assert 1 == len(stores.queue.reserve(["default"], 1, 1).leases)
        return spent(server) - before

    searched = sum(cost(parts=70_000) for _ in range(8))  # just below the longest that is

    assert cost(parts=1_000_000) < searched


def spent(server: redis.Redis) -> float:
    """Seconds of a processor that the server has used."""
    found = server.info("cpu")
    return float(found["used_cpu_user"] + found["used_cpu_sys"])
