"""A wait ends when there is something to do."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import pytest

from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import (
    LONG,
    OURS,
    QUEUES,
    QUICK,
    RETRY_AFTER,
    THEIRS,
    Clock,
    record,
    reserved,
)

pytestmark = pytest.mark.usefixtures("at")


def put_back(built: Stores, at: Clock, lease: Lease) -> None:
    built.queue.quarantine(lease, "odd")
    built.records.requeue("default", next(built.records.quarantined("default")).id)


def retry(built: Stores, at: Clock, lease: Lease) -> None:
    built.queue.fail(lease, "a", record(lease))
    built.failed.retry(built.failed.page()[0])


def expire(built: Stores, at: Clock, lease: Lease) -> None:
    at.advance(RETRY_AFTER + 1)
    built.queue.stage(["default"])


WAYS_BACK: dict[str, Callable[[Stores, Clock, Lease], object]] = {
    "released": lambda built, at, lease: built.queue.release(lease, 0.0, "a"),
    "given back": lambda built, at, lease: built.queue.give_back([lease]),
    "reclaimed": lambda built, at, lease: built.queue.reclaim(["default"], OURS, 0.0, known=()),
    "expired": expire,
    "retried": retry,
    "put back": put_back,
}


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("way", WAYS_BACK.values(), ids=WAYS_BACK)
def test_a_job_that_becomes_ready_again_ends_a_wait(built, at, way):
    way(built, at, reserved(built.queue, payload("a"))[0])
    began = time.monotonic()

    built.queue.wait(QUEUES, timeout=LONG)

    assert time.monotonic() - began < QUICK
    assert 1 == len(built.queue.reserve(["default"], THEIRS, 1).leases)  # what is reclaimed was of a retired tag


@pytest.mark.fault("F60")
@pytest.mark.parametrize("queue", QUEUES)
def test_a_wait_ends_at_once_where_a_job_is_ready(store, queue):
    store.push(queue, new_jobs(payload("a")))
    began = time.monotonic()

    store.wait(QUEUES, timeout=LONG)

    assert time.monotonic() - began < QUICK


@pytest.mark.parametrize("queue", QUEUES)
def test_a_wait_ends_when_a_job_is_pushed(built, store, queue, connection):
    began = time.monotonic()
    with Elsewhere(connection, store.clock) as elsewhere:
        elsewhere.do(lambda there: there.push(queue, new_jobs(payload("a"))))
        store.wait(QUEUES, timeout=LONG)

    assert time.monotonic() - began < QUICK
    assert ["a"] == ids(store.reserve(QUEUES, OURS, 1).leases)


def test_a_wait_for_nothing_ends_after_its_timeout(store):
    began = time.monotonic()

    store.wait(QUEUES, timeout=0.2)

    assert 0.15 < time.monotonic() - began < QUICK


def test_a_wait_without_time_does_not_block(store):
    began = time.monotonic()

    store.wait(QUEUES, timeout=0.0)

    assert time.monotonic() - began < QUICK


def test_where_nothing_changes_the_wait_for_a_change_ends_after_its_timeout(store):
    store.wait_for_change(QUEUES, timeout=0.01)
    began = time.monotonic()

    assert not store.wait_for_change(QUEUES, timeout=0.2)
    assert 0.15 < time.monotonic() - began < QUICK


def test_what_a_signal_breaks_off_is_not_the_answer_to_the_next_verb(store):
    store.push("default", new_jobs(payload("a")))
    store.reserve(["default"], OURS, 1)

    with pytest.raises(Rung), ringing(store.wait, every=0.1):
        store.wait(QUEUES, timeout=LONG)

    assert 1 == store.sizes("default").reserved


class Rung(BaseException):
    """What the handler raises."""


@contextmanager
def ringing(verb: Any, every: float) -> Iterator[None]:
    """A signal comes again and again; the first that comes during ``verb``, a bound method, raises ``Rung`` there."""
    is_over = threading.Event()

    def ring(signum: int, frame: FrameType | None) -> None:
        if is_within(verb.__func__.__code__, frame) and not is_over.is_set():
            is_over.set()
            raise Rung

    def go_on() -> None:
        while not is_over.wait(every):
            os.kill(os.getpid(), signal.SIGUSR1)

    before, bell = signal.signal(signal.SIGUSR1, ring), threading.Thread(target=go_on)
    bell.start()
    try:
        yield
    finally:
        is_over.set()
        bell.join()
        signal.signal(signal.SIGUSR1, before)


def is_within(code: CodeType, frame: FrameType | None) -> bool:
    """Whether the frame is of a call of this code, or of what it has called."""
    while frame and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


class Elsewhere:
    """Another connection, in a thread of its own."""

    def __init__(self, connection: Any, clock: str) -> None:
        self._stores: Any = Stores(connection)
        self._stores.queue.clock = clock
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Elsewhere:
        return self

    def do(self, verb: Callable[[Any], object]) -> None:
        """While the test waits."""
        self._thread = threading.Timer(0.1, verb, (self._stores.queue,))
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._thread:
            self._thread.join()
        self._stores.close()
