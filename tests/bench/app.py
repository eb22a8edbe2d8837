"""The jobs that are timed: each notes when it began, in one write."""

from __future__ import annotations

import hashlib
import os
import struct
import time

from queuepool import job


def note(stamp: float) -> None:
    """When a job began, beside the moment that its payload names: monotonic seconds, one clock for all processes."""
    os.write(_trail(), struct.pack("=ddq", stamp, time.monotonic(), os.getpid()))


@job("noop")
def noop(n: int = 0, padding: str = "") -> None:
    pass


@job("nap")
def nap(n: int) -> None:
    time.sleep(0.01)


@job("stamp")
def stamp(at: float) -> None:
    note(at)


@job("wait", tries=0)
def wait(at: float) -> None:
    note(at)
    time.sleep(60)


@job("hang", tries=1, timeout=0.2)
def hang(at: float) -> None:
    note(at)
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2_000_000_000)


def _trail() -> int:
    global _fd
    if _fd < 0:
        _fd = os.open(os.environ["TRAIL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    return _fd


_fd = -1


PHP_NOOP = "App\\Jobs\\Noop"
#: what Laravel's trait of that name adds to a job, except for ``chained``
QUEUEABLE = (
    "connection", "queue", "chainConnection", "chainQueue", "chainCatchCallbacks", "delay", "afterCommit", "middleware",
)  # fmt: skip


@job(PHP_NOOP)
def php_noop(number: int) -> None:
    """An object job of Laravel that does nothing."""


@job("number")
def number(n: int) -> int:
    """What a member of a group returns for the job that follows all of them."""
    return n


@job("total")
def total(at: float, numbers: list[int]) -> None:
    note(at if sum(numbers) == sum(range(len(numbers))) else -1.0)
