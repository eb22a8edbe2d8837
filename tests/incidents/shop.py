"""What the pools of both hosts run: jobs that go wrong, each in a way of its own. Each host has a copy of this file."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from queuepool import current, job

RATES = {"DE": 0.19, "FR": 0.2}
_kept: list[bytearray] = []


@job
def render(seconds: float) -> None:
    time.sleep(seconds)


@job
def charge(order: int, customer: int, country: str) -> float:
    if not customer:
        raise ValueError(f"order {order} has no customer")
    return order * RATES[country]


@job
def newsletter(customer: int) -> None: ...


@job
def invoice(order: int) -> None: ...


@job
def fingerprint(rounds: int) -> None:
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", rounds)


@job
def sync_stock() -> None:
    while True:
        time.sleep(0.1)


@job
def resize(megabytes: int) -> None:
    _kept.append(bytearray(os.urandom(1024) * 1024 * megabytes))


@job
def settle(order: int) -> None:
    if current().attempts == 1:
        os.kill(os.getpid(), 9)


@job
def report() -> None:
    Path("report.csv").read_text()


@job
def close_books() -> None: ...
