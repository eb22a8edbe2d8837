"""What is kept of the steps of an encrypted job is encrypted with the key of the job."""

from __future__ import annotations

import json

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadArguments
from queuepool.payload.encrypter import Encrypter, encrypted
from queuepool.payload.envelope import decode
from queuepool.payload.kept_step import StepsEnd
from queuepool.payload.lease import Lease
from queuepool.settlement.sealing import Sealer

KEY, OTHER = b"0123456789abcdef" * 2, b"fedcba9876543210" * 2
RAW = b'{"card":"4711"}'


def sealer(*keys: bytes) -> Sealer:
    return Sealer(ConnectionSettings(app_key=keys[0] if keys else b"", previous_keys=keys[1:]))


def job(data: object) -> bytes:
    return json.dumps({"id": "a", "job": "do", "data": data, "attempts": 1}).encode()


SECRET = decode(job(encrypted({"card": "4711"}, Encrypter("AES-256-CBC", [KEY]))))
PLAIN = decode(job({"card": "4711"}))


def test_only_those_of_an_encrypted_job_are():
    sealed = sealer(KEY).sealed(SECRET, RAW)

    assert b"4711" not in sealed
    assert RAW == sealer(KEY).opened(SECRET, sealed)
    assert RAW == sealer(OTHER, KEY).opened(SECRET, sealed)
    assert RAW == sealer(KEY).sealed(PLAIN, RAW) == sealer().opened(PLAIN, RAW)


def test_without_its_key_nothing_is_kept_or_read():
    sealed = sealer(KEY).sealed(SECRET, RAW)

    for act in (lambda: sealer().sealed(SECRET, RAW), lambda: sealer(OTHER).opened(SECRET, sealed)):
        with pytest.raises(BadArguments):
            act()


def test_the_place_of_a_cursor_is_too_and_without_a_key_it_is_left_out():
    lease = Lease("default", b"", steps=StepsEnd("a", places=(("~rows", RAW),)))
    ended = sealer(KEY).ended(lease, SECRET).steps

    [(name, place)] = ended.places
    assert name == "~rows"
    assert RAW == sealer(KEY).opened(SECRET, place)
    assert StepsEnd("a") == sealer().ended(lease, SECRET).steps
    assert StepsEnd("a", forget=True) == sealer(KEY).ended(lease, SECRET, forget=True).steps
    assert lease.steps == sealer().ended(lease, PLAIN).steps
