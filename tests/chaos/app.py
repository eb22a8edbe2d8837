"""The jobs of the chaos run: each writes ``start`` first and ``finish`` last, and in between acts out its mode.

A mode misbehaves only at a job's first attempt, so every job can end; one that does not is the pool's fault.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

from queuepool import SoftTimeout, around, current, job, on
from queuepool.events import WorkerStarting
from queuepool.jobs.current_job import Current
from tests.chaos import async_soft_modes
from tests.chaos.async_modes import ASYNC
from tests.chaos.lane_modes import IN_LANES, IN_THREADS
from tests.chaos.limited import KINDS
from tests.chaos.modes import MODES
from tests.chaos.overruns import OVERRUN
from tests.chaos.own_ledger import LEDGER
from tests.chaos.soft_modes import SOFT_TIMEOUT, act
from tests.chaos.steps import STEP, UNIQUE
from tests.chaos.traced import has_span

_began = 0.0


@around
def surround(job: Current) -> Iterator[None]:
    """What a tracer does: a span of each attempt, which ends with it."""
    global _began
    _began = time.monotonic()
    raised = {}
    try:
        yield
    except BaseException as error:
        raised = {"e": type(error).__name__}
        raise
    finally:
        if has_span(job.id):
            LEDGER.write("span", id=job.id, a=job.attempts, pid=os.getpid(), **raised)


@job("Chaos@run")
def run(
    m: str = "", due: int = 0, timeout: float = 0.0, grace: float = 0.0, at: Sequence[str] = (), **options: float
) -> None:
    """``due``: monotonic nanoseconds before which it must not start; ``grace``: what the mode robs the alarm of;
    ``at``: the keys at which it has places.
    """
    me = current()
    if not m:
        LEDGER.attempt("start", me.id, me.attempts)
        LEDGER.attempt("finish", me.id, me.attempts)
        return
    overruns = m in OVERRUN and me.attempts == 1
    deadline = {"d": time.monotonic_ns() + int(timeout * 1e9), "grace": grace} if overruns else {}
    about = ({"due": due} if due else {}) | ({"at": at} if at else {})
    LEDGER.write("start", id=me.id, a=me.attempts, pid=os.getpid(), n=me.name, m=m, **about, **deadline)
    worker = os.getpid()
    if MODES[m](me.attempts, LEDGER, **options) is not False and os.getpid() == worker:
        LEDGER.attempt("finish", me.id, me.attempts)


@job("Chaos@loop")
async def loop(m: str, timeout: float = 0.0, grace: float = 0.0, **options: float) -> None:
    """As ``run``, on the worker's loop."""
    me = current()
    LEDGER.write("start", id=me.id, a=me.attempts, pid=os.getpid(), n=me.name, m=m)
    try:
        await ASYNC[m](me.attempts, LEDGER, **options)
    except BaseException:  # cancelled, it may go back to its queue at once
        LEDGER.attempt("die", me.id, me.attempts)
        raise
    LEDGER.attempt("finish", me.id, me.attempts)


@job("Chaos@soft", soft_timeout=SOFT_TIMEOUT, retry_on=(SoftTimeout,))
def soft(m: str, timeout: float = 0.0, grace: float = 0.0) -> None:
    """As ``run``, with a soft timeout; whatever else it raises fails it at once."""
    me = current()
    LEDGER.write("start", id=me.id, a=me.attempts, pid=os.getpid(), n=me.name, m=m)
    act(m, me.attempts, LEDGER, _began)


@job("Chaos@soft_loop", soft_timeout=SOFT_TIMEOUT, retry_on=(SoftTimeout,))
async def soft_loop(m: str, timeout: float = 0.0, grace: float = 0.0) -> None:
    """As ``soft``, on the worker's loop."""
    me = current()
    LEDGER.write("start", id=me.id, a=me.attempts, pid=os.getpid(), n=me.name, m=m)
    await async_soft_modes.act(m, me.attempts, LEDGER, _began)


@job("Chaos@wide")
async def wide(m: str, timeout: float, **options: float) -> None:
    """As ``run``, beside others on the worker's loop."""
    me = _begun_beside(m, timeout)
    try:
        await IN_LANES[m](me.attempts, LEDGER, **options)
    except BaseException:  # at its deadline, on a busy machine any
        LEDGER.attempt("die", me.id, me.attempts)
        raise
    LEDGER.attempt("finish", me.id, me.attempts)


@job("Chaos@thread")
def in_a_thread(m: str, timeout: float, **options: float) -> None:
    """As ``wide``, in a thread."""
    me = _begun_beside(m, timeout)
    IN_THREADS[m](me.attempts, LEDGER, **options)
    LEDGER.attempt("finish", me.id, me.attempts)


def _begun_beside(m: str, timeout: float) -> Current:
    me, until = current(), time.monotonic_ns() + int(timeout * 1e9)
    LEDGER.write("start", id=me.id, a=me.attempts, pid=os.getpid(), n=me.name, m=m, until=until)
    return me


def step(number: int, facts: dict[str, Any]) -> None:
    """As ``run``; its arguments are in one, as PHP's names of a job's settings are none of its arguments."""
    run(**facts)


job(STEP)(step)
job(UNIQUE, unique_id=lambda number, facts: number)(step)


def limited(tenant: str, facts: dict[str, Any]) -> None:
    """As ``step``, with limits."""
    run(**facts)


for _kind, _limits in KINDS.items():
    job(_kind, limits=_limits)(limited)


@on(WorkerStarting)
def announce(event: WorkerStarting) -> None:
    """Tell the watcher that this worker is there: it writes down the moment of its death. And whose worker it is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as watcher:
        watcher.sendto(b"%d" % os.getpid(), os.environ["CHAOS_WATCHER"])
    lanes = {"lanes": int(os.environ["CHAOS_LANES"])} if "CHAOS_LANES" in os.environ else {}
    LEDGER.write("worker", pid=os.getpid(), master=os.getppid(), **lanes)
