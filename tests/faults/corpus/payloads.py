"""Payloads in a queue, and what becomes of each; no byte of them is lost.

``Q``: set aside, by the reserve script or by the decoder. ``OK``: a job, every byte but the attempts as it was.
``F``: a job that fails at once and is recorded. The ids are those of the catalogue.
"""

from __future__ import annotations

import base64
import gzip
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from queuepool.errors import BadArguments, JobError, JobExpired, UnknownJob
from queuepool.payload.envelope import MAX_BYTES, OBJECT_JOB
from tests.support.samples import made, payload

DEEPEST = 999
GADGET = (
    r'O:40:"Illuminate\Broadcasting\PendingBroadcast":2:{s:9:"\0*\0events";O:15:"Faker\Generator":1:'
    r'{s:13:"\0*\0formatters";a:1:{s:8:"dispatch";s:6:"system";}}s:8:"\0*\0event";s:2:"id";}'
).replace(r"\0", "\0")
ENCRYPTED = base64.b64encode(json.dumps({"iv": "aXY=", "value": "dmFsdWU=", "mac": "6d6163", "tag": ""}).encode())


@dataclass(frozen=True)
class Q:
    """Set aside."""

    given: bytes | Callable[[], bytes]

    @property
    def raw(self) -> bytes:
        return made(self.given)


@dataclass(frozen=True)
class OK:
    """A job; ``to_reserve`` is the receipt."""

    given: bytes | Callable[[], bytes]
    to_reserve: bytes | Callable[[], bytes]
    attempts: int = 1

    @property
    def raw(self) -> bytes:
        return made(self.given)

    @property
    def receipt(self) -> bytes:
        return made(self.to_reserve)


@dataclass(frozen=True)
class F:
    """A job that must not be tried again; ``words`` are in its record."""

    raw: bytes
    error: type[JobError]
    words: str = ""


def ok(template: str | Callable[[], str], given: str = "0", attempts: int = 1) -> OK:
    """``@`` is where the attempts stand."""
    return OK(partial(_filled, template, given), partial(_filled, template, str(attempts)), attempts)


def _filled(template: str | Callable[[], str], attempts: str) -> bytes:
    return made(template).replace("@", attempts).encode()


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
    "B004 NUL and more": Q(payload("a") + b'\0{"attempts":0} '),
    "B004 NUL after a job without attempts": Q(b'{"id":"a","job":"app.ok"}\0'),
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
    "B014 nothing but braces": F(b"{}", UnknownJob),
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
    "B036 as deep as may be, without an id": ok('{"job":"x","data":' + "[" * 998 + "]" * 998 + ',"attempts":@}'),
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
    "B042 uuid of a megabyte": ok(with_field('"uuid":"' + "u" * 2**20 + '"')),
    "B042 uuid of two lines": ok(with_field(r'"uuid":"a\nb"')),
    "B042 uuid an object": ok(with_field('"uuid":{"a":1}')),
    "B042 uuid of a megabyte of a job that fails": F(payload("a", job="nobody", uuid="u" * 2**20), UnknownJob),
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
    "B044 a megabyte": F(payload("a", job="App\\Jobs\\" + "X" * 2**20), UnknownJob),
    "B045 a PHP class": F(payload("a", job="App\\Jobs\\X@handle"), UnknownJob, "register it"),
    "B045 an object of a PHP class": F(command('O:10:"App\\Jobs\\X":0:{}', "App\\Jobs\\X"), UnknownJob, "App"),
    "B046 an argument missing": F(payload("a", job="app.mail", data={}), BadArguments, "'to'"),
    "B046 an argument too many": F(payload("a", job="app.mail", data={"to": 1, "cc": 2}), BadArguments, "cc"),
    "B046 a list too long": F(payload("a", job="app.mail", data=[1, 2, 3]), BadArguments),
    "B046 a scalar for nothing": F(payload("a", job="app.none", data="x"), BadArguments),
    "B046 an argument called self": F(payload("a", job="app.mail", data={"to": 1, "self": 2}), BadArguments),
    "B047 tries below zero": q('"maxTries":-1'),
    "B047 tries 0": ok(with_field('"maxTries":0')),
    "B047 tries a numeric string": ok(with_field('"maxTries":"5"')),
    "B047 tries 1e9": ok(with_field('"maxTries":1e9')),
    "B047 tries a string": q('"maxTries":"5x"'),
    "B047 tries null": ok(with_field('"maxTries":null')),
    "B047 tries true": q('"maxTries":true'),
    "B047 exceptions below zero": q('"maxExceptions":-1'),
    "B048 timeout 0": ok(with_field('"timeout":0')),
    "B048 timeout below zero": ok(with_field('"timeout":-1')),
    "B048 timeout abc": ok(with_field('"timeout":"abc"')),
    "B048 timeout beyond the lease": ok(with_field('"timeout":86400')),
    "B048 timeout beyond every timer": ok(with_field('"timeout":10000000000')),
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
    "B059 too large": Q(lambda: payload("a", data="x" * MAX_BYTES)),
    # Redis takes up to 512 MiB; four times what we allow is treated no other way, and bearable on a shared machine.
    "B059 much too large": Q(lambda: payload("a", data="x" * 4 * MAX_BYTES)),
    "B060 two hundred thousand keys": ok(lambda: many_keys(200_000)),
}
