"""Payloads for the tests, before and after a reservation, and the record of one that failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from queuepool.payload.lease import Lease
from queuepool.stores.contract import NewJob

_T = TypeVar("_T")

#: all that a store counts of a job's attempts
TALLIES = ("exceptions", "crashes", "suspects")


def made(value: _T | Callable[[], _T]) -> _T:
    """A parameter of a test. What is megabytes large is a function: every process of a run collects every test."""
    return value() if callable(value) else value


def payload(identity: str = "a", /, **fields: object) -> bytes:
    """A job with this id that ends like our own payloads: ``"attempts":0}``."""
    attempts = fields.pop("attempts", 0)
    known: dict[str, object] = {"uuid": identity, "displayName": "app.ok", "job": "app.ok", "data": {}, "id": identity}
    return json.dumps({**known, **fields, "attempts": attempts}, separators=(",", ":")).encode()


def new_jobs(*raws: bytes) -> list[NewJob]:
    """Jobs to push with these payloads, whose states nobody keeps."""
    return [NewJob(raw) for raw in raws]


def attempted(raw: bytes, attempts: int = 1) -> bytes:
    """A result of ``payload``, with this number of attempts."""
    head, _, _ = raw.rpartition(b":")
    return head + b":%d}" % attempts


def ids(leases: Sequence[Lease]) -> list[str]:
    return [json.loads(lease.receipt)["id"] for lease in leases]


_NUMBERS = iter(range(10_000))


def fresh(word: str = "job") -> str:
    """A job's name that no other test has registered."""
    return f"tests.{word}{next(_NUMBERS)}"


def record(lease: Lease, identity: str = "a") -> dict[str, Any]:
    """A row for the failed store."""
    facts = {"id": identity, "name": "app.ok", "queue": lease.queue, "connection": "default", "attempts": 1}
    return {**facts, "payload": lease.receipt.decode(), "exception": "RuntimeError: told to"}
