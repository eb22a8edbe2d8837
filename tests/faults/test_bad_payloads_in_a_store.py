"""The store takes each bad payload of the corpus by itself, and keeps every byte of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.errors import BadPayload
from queuepool.jobs.job_options import Options
from queuepool.payload import envelope as payloads
from queuepool.payload.envelope import MAX_BYTES, Envelope, Payload, decode, encode
from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from queuepool.worker.plan import timeout_of
from tests.faults.corpus.cases import case
from tests.faults.corpus.payloads import CATALOGUE, OK, Q, with_field
from tests.support.each import each
from tests.support.redis_server import PREFIX
from tests.support.samples import new_jobs, payload

READY = f"{PREFIX}queues:default"
DELAYED = f"{READY}:delayed"
SECONDS = 20.0


def rows(kind: type) -> list[Any]:
    return [case(name, row) for name, row in CATALOGUE.items() if isinstance(row, kind)]


def reserve(stores: Stores, raw: bytes) -> list[Lease]:
    stores.queue.push("default", new_jobs(raw))
    began = time.monotonic()
    leases = stores.queue.reserve(["default"], 1, 1).leases
    assert time.monotonic() - began < SECONDS
    return leases


@pytest.mark.fault("F61")
@each("row", rows(Q))
def test_what_cannot_be_a_job_is_set_aside_with_every_byte(stores, server, row):
    server.flushall()
    for lease in reserve(stores, row.raw):
        with pytest.raises(BadPayload) as bad:
            decode(lease.receipt)
        stores.queue.quarantine(lease, bad.value.reason)

    [entry] = stores.records.quarantined("default")
    assert row.raw == entry.payload
    assert 0 == stores.queue.sizes("default").total
    assert " " not in entry.reason


@each("row", rows(OK))
def test_what_can_be_a_job_is_reserved_with_no_byte_changed_but_the_attempts(stores, server, row):
    server.flushall()
    [lease] = reserve(stores, row.raw)

    assert row.receipt == lease.receipt
    assert [row.receipt] == server.zrange(f"{READY}:reserved", 0, -1)
    assert row.attempts == decode(lease.receipt).attempts


# What an accepted oddity means


def read(field: str) -> Payload:
    return decode(with_field(field).replace("@", "1").encode())


def test_a_job_without_an_id_has_one_that_stays_from_attempt_to_attempt():
    first, second = (decode(b'{"job":"app.ok","attempts":%d}' % attempts) for attempts in (1, 2))

    assert first.id == second.id
    assert not first.identified


@pytest.mark.bad_input("B048")
@each(("field", "timeout"), [("0", 0.0), ("-1", 60.0), ('"abc"', 60.0), ("300", 300.0)])
def test_a_timeout_that_is_none_is_the_pools(field, timeout):
    assert (timeout, "") == timeout_of(read(f'"timeout":{field}').options, Options(), PoolSettings())


@pytest.mark.bad_input("B048")
@each("field", ["0", "300"])
def test_without_renewal_no_timeout_outlasts_the_lease(field):
    pool = PoolSettings(connection=ConnectionSettings(renew=False, retry_after=90.0), grace=1.0)

    most, warning = timeout_of(read(f'"timeout":{field}').options, Options(), pool)

    assert 88.0 == most
    assert "cut to 88" in warning


@pytest.mark.bad_input("B048")
def test_a_timeout_that_is_none_is_told():
    assert ("timeout 'abc' is not a number of seconds",) == read('"timeout":"abc"').warnings


@pytest.mark.bad_input("B049")
@each(
    ("field", "backoff"),
    [('"1,5,30"', (1, 5, 30)), ("[1,5]", (1, 5)), ("7", (7,)), ('"1,2,x"', (1, 2)), ("-5", None), ("null", None)],
)
def test_a_backoff_keeps_its_numbers(field, backoff):
    assert backoff == read(f'"backoff":{field}').options.backoff


@pytest.mark.bad_input("B049")
@each("field", ['"1,2,x"', "-5", '{"1":2}'])
def test_a_backoff_that_is_none_is_told(field):
    assert 1 == len(read(f'"backoff":{field}').warnings)


@pytest.mark.bad_input("B050")
def test_a_retry_until_that_is_no_time_does_not_count():
    found = read('"retryUntil":"soon"')

    assert None is found.options.retry_until
    assert 1 == len(found.warnings)


@pytest.mark.fault("F66")
@pytest.mark.bad_input("B059")
def test_a_payload_that_is_too_large_is_refused_where_it_is_made():
    with pytest.raises(BadPayload):
        encode("app.ok", "x" * MAX_BYTES, Envelope(created_at=0))


@pytest.mark.fault("F66")
@pytest.mark.bad_input("B059")
def test_the_largest_payload_is_a_job(stores):
    raw = payload("a", data="")
    raw = raw.replace(b'""', b'"%s"' % (b"x" * (payloads.MAX_BYTES - len(raw))))

    assert [MAX_BYTES] == [len(lease.receipt) for lease in reserve(stores, raw)]


@pytest.mark.bad_input("B060")
def test_keys_made_to_collide_are_read_in_no_time():
    keys = ",".join(f'"{number * (2**61 - 1)}":0' for number in range(100_000))
    began = time.monotonic()

    read('"data":{' + keys + "}")

    assert time.monotonic() - began < SECONDS


# Odd rows of the delayed set, and keys of the wrong type


@pytest.mark.bad_input("B062")
@pytest.mark.parametrize("score", ["-inf", "-1e300", "0", "1"])
def test_a_delayed_row_that_is_no_job_is_set_aside_once_when_it_is_due(stores, server, score):
    server.execute_command("ZADD", DELAYED, score, b"not json")

    stores.queue.stage(["default"])
    stores.queue.reserve(["default"], 1, 1)

    assert [b"not json"] == [entry.payload for entry in stores.records.quarantined("default")]
    assert 0 == stores.queue.sizes("default").total


@pytest.mark.bad_input("B062")
@pytest.mark.parametrize("score", ["+inf", "1e300"])
def test_a_row_that_is_never_due_stays_and_keeps_nobody_waiting(stores, server, score):
    server.execute_command("ZADD", DELAYED, score, payload("never"))
    server.execute_command("ZADD", DELAYED, 1, payload("a"))

    assert 1 == stores.queue.stage(["default"]).moved
    assert 1 == len(stores.queue.reserve(["default"], 1, 1).leases)
    assert [payload("never")] == server.zrange(DELAYED, 0, -1)


@pytest.mark.bad_input("B063")
@pytest.mark.parametrize("kind", ["string", "hash"])
def test_a_queue_that_is_no_list_is_reported_and_kept_while_the_others_go_on(stores, server, kind):
    server.set(READY, "x") if "string" == kind else server.hset(READY, "x", "y")
    stores.queue.push("other", new_jobs(payload("a")))

    reservation = stores.queue.reserve(["default", "other"], 1, 1)

    assert (["default"], 1) == ([queue for queue, _ in reservation.problems], len(reservation.leases))
    assert kind.encode() == server.type(READY)
