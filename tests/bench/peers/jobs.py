"""The jobs that every queue runs here: each notes in one write which it is, when it began, and in which process."""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
import time
from collections.abc import Callable, Coroutine
from typing import Any

#: number, monotonic seconds, pid; with_laravel.php writes the same
RECORD = struct.Struct("=qdq")
#: seconds that a job sleeps
NAPS = {"noop": 0.0, "nap1": 0.001, "nap10": 0.01, "hang": 60.0}
#: seconds that a runaway may run, as each queue is told in its own way
LIMIT = 1


def noop(n: int) -> None:
    note(n)


def nap1(n: int) -> None:
    note(n)
    time.sleep(NAPS["nap1"])


def nap10(n: int) -> None:
    note(n)
    time.sleep(NAPS["nap10"])


def hang(n: int) -> None:
    note(n)
    time.sleep(NAPS["hang"])


def stuck(n: int) -> None:
    """Hears of no exception, whoever raises it in here."""
    note(n)
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            continue


def stuck_in_c(n: int) -> None:
    """No line of Python runs here for longer than anybody waits."""
    note(n)
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2_000_000_000)


JOBS = {"noop": noop, "nap1": nap1, "nap10": nap10, "hang": hang}
RUNAWAYS = {"stuck": stuck, "stuck_in_c": stuck_in_c}
EVERY = {**JOBS, **RUNAWAYS}


def limit(job: str, word: str, a_second: int = 1) -> dict[str, int]:
    """How long it may run, by the word and in the unit of a queue; of a job without a limit, nothing."""
    return {word: LIMIT * a_second} if job in RUNAWAYS else {}


def coroutine(job: str) -> Callable[[int], Coroutine[Any, Any, None]]:
    """The same for a queue that runs coroutines, under the job's name."""

    async def run(n: int) -> None:
        await as_coroutine(job, n)

    run.__name__ = run.__qualname__ = job
    return run


async def as_coroutine(job: str, n: int) -> None:
    """Others may run while this one sleeps."""
    if job == "stuck_in_c":
        stuck_in_c(n)
    note(n)
    while job == "stuck":
        try:
            await asyncio.sleep(0.01)
        except BaseException:
            continue
    if NAPS[job]:
        await asyncio.sleep(NAPS[job])


def note(n: int) -> None:
    os.write(_trail(), RECORD.pack(n, time.monotonic(), os.getpid()))


def _trail() -> int:
    global _fd
    if _fd < 0:
        _fd = os.open(os.environ["BENCH_TRAIL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    return _fd


_fd = -1
