"""The demo's jobs: some behave, some do what no job should."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import time

from diary import note

from queuepool import current, job


def begin() -> None:
    note("begun", id=current().id, name=current().name, attempt=current().attempts)


def end(**result: object) -> None:
    note("done", id=current().id, name=current().name, attempt=current().attempts, **result)


@job()
def greet(name: str) -> None:
    begin()
    end(greeting=f"Hello, {name}!")


@job()
async def add(left: int, right: int) -> None:
    begin()
    await asyncio.sleep(0.05)
    end(sum=left + right)


@job(tries=3, backoff=[0.1, 0.2])
def flaky() -> None:
    """Fails twice, then succeeds."""
    begin()
    if current().attempts < 3:
        raise ConnectionError("the other side is not there yet")
    end()


@job(tries=2)
def nap(seconds: float) -> None:
    begin()
    time.sleep(seconds)
    end()


@job(timeout=1)
def hang() -> None:
    """Runs for years in C code, which no Python exception or signal handler can interrupt."""
    begin()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2_000_000_000)
    end()


@job()
def crash() -> None:
    """Reads from address 0: a segmentation fault."""
    begin()
    ctypes.string_at(0)
    end()
