"""Keys of a payload that we do not know (Horizon's, an application's own) survive every verb, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.support.redis_server import PREFIX
from tests.support.store_contract import OURS, RETRY_AFTER, Clock, record, reserved

#: what another JSON writer would change: escapes, empty objects and lists, numbers of many digits, order, white space
UNKNOWN = (
    r'"type":"job","tags":["App\\Order:1","caf\u00e9","a\/b"],"silenced":false,"pushedAt":"1754500000.1234",'
    r'"empty":{},"none":[],"long":12345678901234567890,"exact":1754500000.123456789,"tiny":1e-07,"one":1.0,'
    r'"nested":{"attempts":7,"x\"attempts":5,"é":[{"attempts":9}]} , "spaced" : [ 1 , null ]'
)
JOB = r'"uuid":"a","displayName":"app.ok","job":"app.ok","data":{"attempts":3,"text":"\"attempts\":4}"}'
PAYLOADS = {
    "Horizon": f'{{{JOB},"id":"a","attempts":@@,{UNKNOWN}}}',
    "Horizon of 13": f'{{{JOB},"id":"a","attempts":@@,"delay":null,{UNKNOWN}}}',
    "last": f'{{{UNKNOWN},{JOB},"id":"a","attempts":@@}}',
    "first": f'{{"attempts" : @@ ,{UNKNOWN},{JOB},"id":"a"}}',
}
each_payload = pytest.mark.parametrize("template", PAYLOADS.values(), ids=PAYLOADS)


def fail_and_retry(built: Stores, lease: Lease, at: Clock) -> None:
    assert built.queue.fail(lease, "a", record(lease))
    if built.forwarder:
        built.forwarder.forward()
    [failed] = built.failed.page()
    assert built.failed.retry(failed)


def set_aside_and_put_back(built: Stores, lease: Lease, at: Clock) -> None:
    assert built.queue.quarantine(lease, "odd")
    [entry] = built.records.quarantined("default")
    assert built.records.requeue("default", entry.id)


def release_later(built: Stores, lease: Lease, at: Clock) -> None:
    assert built.queue.release(lease, 5.0, "a", "exceptions")
    at.advance(6.0)


def reclaim(built: Stores, lease: Lease, at: Clock) -> None:
    built.queue.retire(OURS)
    assert [lease] == built.queue.reclaim(["default"], OURS, 10.0, [])


#: by the attempt that follows the second one
WAYS: dict[str, tuple[int, Callable[[Stores, Lease, Clock], object]]] = {
    "release": (3, lambda built, lease, at: built.queue.release(lease, 0.0, "a", "crashes")),
    "release later": (3, release_later),
    "the lease ends": (3, lambda built, lease, at: at.advance(RETRY_AFTER + 2.0)),
    "give back": (2, lambda built, lease, at: built.queue.give_back([lease])),
    "reclaim": (2, reclaim),
    "fail and retry": (1, fail_and_retry),
    "quarantine and put back": (2, set_aside_and_put_back),
}


def in_second_attempt(built: Stores, template: str) -> Lease:
    [lease] = reserved(built.queue, template.replace("@@", "0").encode())
    assert built.queue.release(lease, 0.0, "a")
    [lease] = built.queue.reserve(["default"], OURS, 1).leases
    return lease


def as_found(template: str, lease: Lease, attempts: int) -> bytes:
    """Redis keeps the attempts in the payload, a table in a column of its own."""
    return template.replace("@@", str(attempts) if lease.row is None else "0").encode()


@pytest.mark.by_turns("template")
@each_payload
@pytest.mark.parametrize(("attempts", "way"), WAYS.values(), ids=WAYS)
def test_unknown_keys_survive(built: Stores, at: Clock, template: str, attempts: int, way: Any) -> None:
    lease = in_second_attempt(built, template)
    assert as_found(template, lease, 2) == lease.receipt

    way(built, lease, at)

    [lease] = built.queue.reserve(["default"], OURS + 1, 1).leases
    assert as_found(template, lease, attempts) == lease.receipt


@pytest.fixture
def apart(redis_url: str, sqlite_url: str) -> Iterator[Stores]:
    """A queue in Redis, and its failed jobs in Laravel's table."""
    client = SqlClient(sqlite_url, create=True)
    migrate(client)
    client.close()
    stores = Stores(ConnectionSettings(url=redis_url, failed_url=sqlite_url, prefix=PREFIX))
    yield stores
    stores.close()


@each_payload
def test_unknown_keys_survive_a_failed_store_elsewhere(apart: Stores, template: str) -> None:
    fail_and_retry(apart, in_second_attempt(apart, template), Clock(apart.queue))

    [lease] = apart.queue.reserve(["default"], OURS, 1).leases
    assert as_found(template, lease, 1) == lease.receipt


@each_payload
def test_unknown_keys_are_no_hindrance_to_the_reader(template: str) -> None:
    payload = decode(template.replace("@@", "1").encode())

    assert ("a", "app.ok", ()) == (payload.id, payload.name, payload.warnings)
    assert json.loads(template.replace("@@", "1"))["data"] == payload.data
