"""A value of the dashboard that many ask for and few reads renew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from queuepool.web.threads import Fresh, WebThreads
from tests.support.eventually import eventually


@pytest.fixture
def threads() -> Iterator[WebThreads]:
    made = WebThreads(1)
    yield made
    made.close()


def value_of(threads: WebThreads, read: Callable[[], int]) -> Fresh[int]:
    return Fresh(threads.lists, read, 0.05, (ValueError,))


def test_one_that_nobody_has_asked_for_in_a_while_is_waited_for_again(threads):
    numbers = iter(range(100))
    value = value_of(threads, lambda: next(numbers))
    assert not value.is_known
    assert (0, True) == (value.get(20.0).value, value.is_known)

    eventually(lambda: not value.is_known)

    again = value.get(20.0)
    assert (1, "") == (again.value, again.problem)


def test_one_that_takes_long_to_read_is_not_read_as_often_as_somebody_doubts_it(threads):
    numbers, never = iter(range(1, 100)), threading.Event()

    def read() -> int:
        never.wait(0.4)  # then it rests for 8 s
        return next(numbers)

    value = value_of(threads, read)

    def doubted() -> int:
        value.doubt()
        return value.get(0.0).value or 0

    assert 1 == value.get(20.0).value
    eventually(lambda: 2 == doubted())
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        assert 2 == doubted()


def test_one_whose_read_hangs_keeps_its_old_value_and_nobody_waits(threads):
    is_held, goes_on = threading.Event(), threading.Event()

    def read() -> int:
        if is_held.is_set():
            goes_on.wait(30)
        return 7

    value = value_of(threads, read)
    assert 7 == value.get(20.0).value
    is_held.set()
    try:
        eventually(lambda: value.get(0.0).problem.startswith("no answer for"))
        assert (7, True) == (value.get(0.0).value, value.is_known)
    finally:
        goes_on.set()
