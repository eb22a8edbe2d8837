"""Celery's chord: prefork, with the result backend that its documentation recommends for chords."""

from __future__ import annotations

import os
import struct
import time

from celery import Celery, chord

app = Celery("chords", broker=os.environ["REDIS"], backend=os.environ["REDIS"])
app.conf.update(worker_prefetch_multiplier=64, result_expires=3600)


@app.task
def number(n: int) -> int:
    return n


@app.task
def total(numbers: list[int], at: float) -> None:
    right = sum(numbers) == sum(range(len(numbers)))
    with open(os.environ["TRAIL"], "ab", buffering=0) as trail:
        trail.write(struct.pack("=ddq", at if right else -1.0, time.monotonic(), os.getpid()))


def dispatch(size: int) -> None:
    """A chord of so many."""
    chord([number.s(n) for n in range(size)])(total.s(time.monotonic()))
