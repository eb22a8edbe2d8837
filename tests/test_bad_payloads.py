"""The catalogue of bad payloads: what becomes of each, and that not one byte of it is lost.

``Q``: set aside, by the reserve script or by the decoder. ``OK``: a job, every byte but the attempts as it was.
``F``: a job that fails at once and is recorded. The ids are those of the catalogue.
"""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import PREFIX
from samples import payload

from queuepool import payload as payloads
from queuepool.build import Stores
from queuepool.errors import BadArguments, BadPayload, JobError, JobExpired, UnknownJob
from queuepool.failures import record
from queuepool.payload import MOST_BYTES, OBJECT_JOB, Payload, decode, encode
from queuepool.php import arguments_in
from queuepool.policies import policy_of, timeout_of
from queuepool.registry import Handler, Options, Registry, Task, bound
from queuepool.settings import ConnectionSettings, PoolSettings
from queuepool.stores.base import Lease
from queuepool.verdict import may_start

READY = f"{PREFIX}queues:default"
DELAYED = f"{READY}:delayed"
DEEPEST = 999
SECONDS = 3.0
GADGET = (
    r'O:40:"Illuminate\Broadcasting\PendingBroadcast":2:{s:9:"\0*\0events";O:15:"Faker\Generator":1:'
    r'{s:13:"\0*\0formatters";a:1:{s:8:"dispatch";s:6:"system";}}s:8:"\0*\0event";s:2:"id";}'
).replace(r"\0", "\0")
ENCRYPTED = base64.b64encode(json.dumps({"iv": "aXY=", "value": "dmFsdWU=", "mac": "6d6163", "tag": ""}).encode())


@dataclass(frozen=True)
class Q:
    """Set aside."""

    raw: bytes


@dataclass(frozen=True)
class OK:
    """A job; ``receipt`` is what is to be reserved."""

    raw: bytes
    receipt: bytes
    attempts: int = 1


@dataclass(frozen=True)
class F:
    """A job that must not be tried again; ``words`` are in its record."""

    raw: bytes
    error: type[JobError]
    words: str = ""


def ok(template: str, given: str = "0", attempts: int = 1) -> OK:
    """``@`` is where the attempts stand."""
    raw, receipt = (template.replace("@", value).encode() for value in (given, str(attempts)))
    return OK(raw, receipt, attempts)


def with_field(field: str) -> str:
    """A template with this besides what a job needs."""
    return '{"id":"a","job":"app.ok",' + field + ',"attempts":@}'


def q(field: str) -> Q:
    return Q(with_field(field).replace("@", "0").encode())


def attempts(value: str) -> Q:
    return Q(f'{{"id":"a","job":"app.ok","attempts":{value}}}'.encode())


def nested(depth: int) -> str:
    """A template as deep as that, its own braces counted."""
    return with_field('"data":' + "[" * (depth - 1) + "]" * (depth - 1))


def command(text: str, name: str = "App\\Jobs\\Mail") -> bytes:
    """An object job of Laravel."""
    return payload("a", job=OBJECT_JOB, displayName=name, data={"commandName": name, "command": text})


def many_keys(count: int) -> str:
    return with_field('"data":{' + ",".join(f'"{number}":0' for number in range(count)) + "}")


CATALOGUE: dict[str, Q | OK | F] = {
    "B001 empty": Q(b""),
    "B002 no JSON": Q(b"not json"),
    "B003 truncated": Q(b'{"id":"a","attempts":0'),
    "B003 truncated where it looks whole": Q(b'{"id":"a","job":"app.ok","data":{"attempts":0}'),
    "B004 trailing garbage": Q(payload("a") + b"xx"),
    "B004 two payloads": Q(payload("a") + payload("b")),
    "B005 BOM": Q(b"\xef\xbb\xbf" + payload("a")),
    "B006 leading spaces": ok(" \t\r\n" + with_field('"data":1')),
    "B006 trailing spaces": ok(with_field('"data":1') + " \t\r\n"),
    "B006 spaces everywhere": ok('{ "id" : "a" , "job" : "app.ok" , "attempts" : @ }'),
    "B007 comment": Q(b"/* hello */" + payload("a")),
    "B007 comment inside": q('"data":1/* hello */'),
    "B008 single quotes": Q(b"{'id':'a','attempts':0}"),
    "B009 array": Q(b"[1,2]"),
    "B009 array of a job": Q(b"[" + payload("a") + b"]"),
    "B010 string": Q(b'"a job"'),
    "B011 number": Q(b"12"),
    "B012 null": Q(b"null"),
    "B013 true": Q(b"true"),
    "B014 attempts missing": OK(b'{"id":"a","job":"app.ok"}', b'{"attempts":1,"id":"a","job":"app.ok"}'),
    "B014 nothing but braces": OK(b"{}", b'{"attempts":1}'),
    "B015 attempts null": ok(with_field('"data":1'), "null"),
    "B016 attempts as a string": ok(with_field('"data":1'), '"3"', 4),
    "B017 attempts x": attempts('"x"'),
    "B018 attempts true": attempts("true"),
    "B019 attempts a list": attempts("[]"),
    "B019 attempts an object": attempts("{}"),
    "B020 attempts 1.5": attempts("1.5"),
    "B020 attempts 15e-1": attempts("15e-1"),
    "B021 attempts below zero": ok(with_field('"data":1'), "-5"),
    "B022 attempts 1e15": attempts("1e15"),
    "B022 attempts 2^53": attempts(str(2**53)),
    "B022 attempts 65536": attempts("65536"),
    "B022 attempts of a hundred digits": attempts("9" * 100),
    "B022 the most attempts": ok(with_field('"data":1'), "65534", 65535),
    "B023 attempts 1e309": attempts("1e309"),
    "B024 NaN": q('"data":NaN'),
    "B024 Infinity": q('"data":-Infinity'),
    "B025 1e400": q('"data":1e400'),
    "B026 hexadecimal": q('"data":0x10'),
    "B027 empty list": ok(with_field('"data":[]')),
    "B027 empty list, attempts first": ok('{"attempts":@,"id":"a","job":"app.ok","data":{"empty":[[],{}]}}'),
    "B028 long integers": ok(with_field('"data":[123456789012345,1234567890123456,1234567890123456789]')),
    "B028 long integers, attempts first": ok('{"attempts":@,"id":"a","job":"app.ok","data":[123456789012345]}'),
    "B029 2^53+1": ok('{"attempts":@,"id":"a","job":"app.ok","data":9007199254740993}'),
    "B030 a float": ok('{"attempts":@,"id":"a","job":"app.ok","data":0.30000000000000004}'),
    "B031 microseconds": ok('{"attempts":@,"id":"a","job":"app.ok","data":1735689600.123456}'),
    "B032 two ids": q('"id":"b"'),
    "B032 two keys deep inside": q('"data":[{"to":1,"to":2}]'),
    "B033 two attempts": q('"attempts":0'),
    "B033 two attempts, none at the end": Q(b'{"attempts":0,"attempts":0,"id":"a","job":"app.ok"}'),
    "B034 attempts only inside": OK(
        b'{"id":"a","job":"app.ok","data":{"attempts":7}}',
        b'{"attempts":1,"id":"a","job":"app.ok","data":{"attempts":7}}',
    ),
    "B035 attempts in a text": ok('{"data":"\\"attempts\\":0}","attempts":@,"id":"a","job":"\\"attempts\\":0,"}'),
    "B036 as deep as may be": ok(nested(DEEPEST)),
    "B036 as deep as may be, attempts first": ok(
        '{"attempts":@,"id":"a","job":"x","data":' + "[" * 998 + "]" * 998 + "}"
    ),
    "B036 too deep": Q(nested(DEEPEST + 1).replace("@", "0").encode()),
    "B036 a hundred thousand deep": Q(nested(100_000).replace("@", "0").encode()),
    "B037 half a pair, first": q(r'"data":"\ud800"'),
    "B037 half a pair, second": q(r'"data":"\udc00"'),
    "B037 a whole pair": ok(with_field(r'"data":"\ud83d\ude00"')),
    "B038 invalid UTF-8": Q(payload("a", data="@").replace(b"@", b"\xff\xfe")),
    "B038 overlong UTF-8": Q(payload("a", data="@").replace(b"@", b"\xc0\x80")),
    "B039 a line break in a text": Q(payload("a", data="@").replace(b"@", b"\n")),
    "B040 NUL in the id": Q(payload("a\0b")),
    "B040 NUL in the name": Q(payload("a", job="app\0ok")),
    "B040 NUL in the data": ok(with_field(r'"data":"\u0000"')),
    "B041 id missing": OK(b'{"job":"app.ok","attempts":0}', b'{"job":"app.ok","attempts":1}'),
    "B041 id empty": Q(payload("")),
    "B041 id a number": Q(payload("a", id=7)),
    "B041 id of a megabyte": Q(payload("a" * 2**20)),
    "B041 id of two lines": Q(payload("a\nb")),
    "B041 the longest id": ok('{"id":"' + "i" * 128 + '","job":"app.ok","attempts":@}'),
    "B042 uuid no uuid": ok(with_field('"uuid":"whatever"')),
    "B043 job missing": F(b'{"id":"a","attempts":0}', UnknownJob),
    "B043 job null": F(payload("a", job=None, displayName=None), UnknownJob),
    "B043 job a list": Q(payload("a", job=["app.ok"])),
    "B044 os.system": F(payload("a", job="os.system"), UnknownJob, "os.system"),
    "B044 __import__": F(payload("a", job="__import__"), UnknownJob),
    "B044 builtins.eval": F(payload("a", job="builtins.eval"), UnknownJob),
    "B044 ../x": F(payload("a", job="../x"), UnknownJob),
    "B044 a..b": F(payload("a", job="a..b"), UnknownJob),
    "B044 right to left": F(payload("a", job="app.\u202eko"), UnknownJob, r"\u202e"),
    "B044 a module that is not there": F(payload("a", job="antigravity.fly"), UnknownJob),
    "B044 very long": F(payload("a", job="App\\Jobs\\" + "X" * 1_000), UnknownJob),
    "B045 a PHP class": F(payload("a", job="App\\Jobs\\X@handle"), UnknownJob, "register it"),
    "B045 an object of a PHP class": F(command('O:10:"App\\Jobs\\X":0:{}', "App\\Jobs\\X"), UnknownJob, "App"),
    "B046 an argument missing": F(payload("a", job="app.mail", data={}), BadArguments, "'to'"),
    "B046 an argument too many": F(payload("a", job="app.mail", data={"to": 1, "cc": 2}), BadArguments, "cc"),
    "B046 a list too long": F(payload("a", job="app.mail", data=[1, 2, 3]), BadArguments),
    "B046 a scalar for nothing": F(payload("a", data="x"), BadArguments),
    "B046 an argument called self": F(payload("a", job="app.mail", data={"to": 1, "self": 2}), BadArguments),
    "B047 tries below zero": q('"maxTries":-1'),
    "B047 tries 0": ok(with_field('"maxTries":0')),
    "B047 tries a string": q('"maxTries":"5"'),
    "B047 tries 1e9": q('"maxTries":1e9'),
    "B047 tries null": ok(with_field('"maxTries":null')),
    "B047 tries true": q('"maxTries":true'),
    "B047 exceptions below zero": q('"maxExceptions":-1'),
    "B048 timeout 0": ok(with_field('"timeout":0')),
    "B048 timeout below zero": ok(with_field('"timeout":-1')),
    "B048 timeout abc": ok(with_field('"timeout":"abc"')),
    "B048 timeout beyond the lease": ok(with_field('"timeout":86400')),
    "B048 timeout of 400 digits": ok(with_field('"timeout":' + "9" * 400)),
    "B049 backoff list": ok(with_field('"backoff":"1,5,30"')),
    "B049 backoff 1,2,x": ok(with_field('"backoff":"1,2,x"')),
    "B049 backoff below zero": ok(with_field('"backoff":-5')),
    "B049 backoff an object": ok(with_field('"backoff":{"1":2}')),
    "B050 retryUntil past": F(payload("a", retryUntil=1_000_000_000), JobExpired),
    "B050 retryUntil in the year 9999": ok(with_field('"retryUntil":253402300799')),
    "B050 retryUntil a string": ok(with_field('"retryUntil":"soon"')),
    "B051 delay": ok('{"id":"a","job":"app.ok","attempts":@,"delay":86400}'),
    "B052 phpredis serializer": Q(b's:52:"' + payload("a") + b'";'),
    "B053 a PHP object": Q(b'O:8:"stdClass":0:{}'),
    "B054 pickle": Q(pickle.dumps({"id": "a", "attempts": 0})),
    "B055 gadget chain": F(command(GADGET), BadArguments),
    "B056 encrypted": F(command(ENCRYPTED.decode()), BadArguments, "encrypted"),
    "B057 length bomb": F(command('O:1:"A":1:{s:1:"x";a:1000000000:{'), BadArguments),
    "B057 nested": F(command('O:1:"A":1:{s:1:"x";' + "a:1:{i:0;" * 100_000), BadArguments, "deeper"),
    "B057 a cycle": F(command('O:1:"A":1:{s:1:"x";R:1;}'), BadArguments, "reference"),
    "B057 an object cycle": F(command('O:1:"A":1:{s:1:"x";r:1;}'), BadArguments, "reference"),
    "B058 gzip": Q(gzip.compress(payload("a"))),
    "B058 msgpack": Q(b"\x82\xa2id\xa1a\xa8attempts\x00"),
    "B059 too large": Q(payload("a", data="x" * MOST_BYTES)),
    "B060 a million keys": ok(many_keys(1_000_000)),
}

CATALOGUE["B036 as deep as may be, without an id"] = ok('{"job":"x","data":' + "[" * 998 + "]" * 998 + ',"attempts":@}')


def rows(kind: type) -> list[Any]:
    return [_case(name, row) for name, row in CATALOGUE.items() if isinstance(row, kind)]


def _case(name: str, row: Q | OK | F) -> Any:
    return pytest.param(row, id=name.replace(" ", "-"))


@pytest.fixture
def registry() -> Registry:
    """Two handlers: one without arguments, one with some."""

    def mail(to: str, template: str = "welcome") -> Task: ...

    registry = Registry()
    registry.add(Handler("app.ok", lambda: None, Options()))  # type: ignore[arg-type,return-value]
    registry.add(Handler("app.mail", mail, Options()))
    registry.add(Handler("App\\Jobs\\Mail", mail, Options()))
    return registry


def reserve(stores: Stores, raw: bytes) -> list[Lease]:
    stores.queue.push("default", [raw])
    began = time.monotonic()
    leases = stores.queue.reserve(["default"], 1, 1).leases
    assert time.monotonic() - began < SECONDS
    return leases


def ruling(found: Payload, registry: Registry, now: float) -> None:
    """What an attempt asks before it runs the handler."""
    handler = registry.find(found.name)
    refusal = may_start(found.name, found.attempts, policy_of(found, handler.options, PoolSettings()), now)
    if refusal:
        raise refusal.error
    bound(handler, arguments_in(found.data) if OBJECT_JOB == found.job else found.data)


@pytest.mark.parametrize("row", rows(Q))
def test_what_cannot_be_a_job_is_set_aside_with_every_byte(stores, row):
    for lease in reserve(stores, row.raw):
        with pytest.raises(BadPayload) as bad:
            decode(lease.receipt)
        stores.queue.quarantine(lease, bad.value.reason)

    [entry] = stores.quarantine.entries("default")
    assert row.raw == entry.payload
    assert 0 == stores.queue.sizes("default").total
    assert " " not in entry.reason


@pytest.mark.parametrize("row", rows(OK))
def test_what_can_be_a_job_is_reserved_with_no_byte_changed_but_the_attempts(stores, server, row):
    [lease] = reserve(stores, row.raw)

    assert row.receipt == lease.receipt
    assert [row.receipt] == server.zrange(f"{READY}:reserved", 0, -1)
    assert row.attempts == decode(lease.receipt).attempts


@pytest.mark.parametrize("row", rows(F))
def test_what_must_not_be_tried_again_fails_and_is_recorded(stores, registry, row):
    [lease] = reserve(stores, row.raw)
    found = decode(lease.receipt)

    with pytest.raises(row.error) as refused:
        ruling(found, registry, stores.queue.now())
    assert stores.queue.fail(lease, found.id, record(found, lease, "default", refused.value))
    [failed] = stores.failed.page()
    assert lease.receipt.decode() == failed.payload
    assert row.words in failed.exception


def test_a_name_in_a_payload_is_never_imported(stores, registry):
    before = set(sys.modules)
    [lease] = reserve(stores, payload("a", job="antigravity.fly"))
    with pytest.raises(UnknownJob):
        ruling(decode(lease.receipt), registry, 0.0)

    assert before == set(sys.modules)


# What an accepted oddity means


def read(field: str) -> Payload:
    return decode(with_field(field).replace("@", "1").encode())


def test_a_job_without_an_id_has_one_that_stays_from_attempt_to_attempt():
    first, second = (decode(b'{"job":"app.ok","attempts":%d}' % attempts) for attempts in (1, 2))

    assert first.id == second.id
    assert not first.identified


@pytest.mark.parametrize(("field", "timeout"), [("0", 0.0), ("-1", 60.0), ('"abc"', 60.0), ("300", 300.0)])
def test_b048_a_timeout_that_is_none_is_the_pools(field, timeout):
    assert (timeout, "") == timeout_of(read(f'"timeout":{field}'), Options(), PoolSettings())


@pytest.mark.parametrize("field", ["0", "300"])
def test_b048_without_renewal_no_timeout_outlasts_the_lease(field):
    pool = PoolSettings(connection=ConnectionSettings(renew=False, retry_after=90.0), grace=1.0)

    most, warning = timeout_of(read(f'"timeout":{field}'), Options(), pool)

    assert 88.0 == most
    assert "cut to 88" in warning


def test_b048_a_timeout_that_is_none_is_told():
    assert ("timeout 'abc' is not a number of seconds",) == read('"timeout":"abc"').oddities


@pytest.mark.parametrize(
    ("field", "backoff"),
    [('"1,5,30"', (1, 5, 30)), ("[1,5]", (1, 5)), ("7", (7,)), ('"1,2,x"', (1, 2)), ("-5", None), ("null", None)],
)
def test_b049_a_backoff_keeps_its_numbers(field, backoff):
    assert backoff == read(f'"backoff":{field}').backoff


@pytest.mark.parametrize("field", ['"1,2,x"', "-5", '{"1":2}'])
def test_b049_a_backoff_that_is_none_is_told(field):
    assert 1 == len(read(f'"backoff":{field}').oddities)


def test_b050_a_retry_until_that_is_no_time_does_not_count():
    found = read('"retryUntil":"soon"')

    assert None is found.retry_until
    assert 1 == len(found.oddities)


def test_b059_a_payload_that_is_too_large_is_refused_where_it_is_made():
    with pytest.raises(BadPayload):
        encode("app.ok", "x" * MOST_BYTES, created_at=0)


def test_b059_the_largest_payload_is_a_job(stores):
    raw = payload("a", data="")
    raw = raw.replace(b'""', b'"%s"' % (b"x" * (payloads.MOST_BYTES - len(raw))))

    assert [MOST_BYTES] == [len(lease.receipt) for lease in reserve(stores, raw)]


def test_b060_keys_made_to_collide_are_read_in_no_time():
    keys = ",".join(f'"{number * (2**61 - 1)}":0' for number in range(100_000))
    began = time.monotonic()

    read('"data":{' + keys + "}")

    assert time.monotonic() - began < SECONDS


# Odd rows of the delayed set, and keys of the wrong type


@pytest.mark.parametrize("score", ["-inf", "-1e300", "0", "1"])
def test_b062_a_delayed_row_that_is_no_job_is_set_aside_once_when_it_is_due(stores, server, score):
    server.execute_command("ZADD", DELAYED, score, b"not json")

    stores.queue.stage(["default"])
    stores.queue.reserve(["default"], 1, 1)

    assert [b"not json"] == [entry.payload for entry in stores.quarantine.entries("default")]
    assert 0 == stores.queue.sizes("default").total


@pytest.mark.parametrize("score", ["+inf", "1e300"])
def test_b062_a_row_that_is_never_due_stays_and_keeps_nobody_waiting(stores, server, score):
    server.execute_command("ZADD", DELAYED, score, payload("never"))
    server.execute_command("ZADD", DELAYED, 1, payload("a"))

    assert 1 == stores.queue.stage(["default"]).moved
    assert 1 == len(stores.queue.reserve(["default"], 1, 1).leases)
    assert [payload("never")] == server.zrange(DELAYED, 0, -1)


@pytest.mark.parametrize("kind", ["string", "hash"])
def test_b063_a_queue_that_is_no_list_is_reported_and_kept_while_the_others_go_on(stores, server, kind):
    server.set(READY, "x") if "string" == kind else server.hset(READY, "x", "y")
    stores.queue.push("other", [payload("a")])

    reservation = stores.queue.reserve(["default", "other"], 1, 1)

    assert (["default"], 1) == ([queue for queue, _ in reservation.problems], len(reservation.leases))
    assert kind.encode() == server.type(READY)
