"""The timer of soft timeouts, in this process."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Iterator

import pytest

from queuepool import SoftTimeout
from queuepool.unix.posix_timer import PosixTimer
from queuepool.worker import invoker
from queuepool.worker.invoker import _SIGNAL, SoftTimer


class Thing:
    """Can be referred to weakly."""


@pytest.fixture
def timer() -> Iterator[SoftTimer]:
    usual = signal.getsignal(_SIGNAL)
    yield SoftTimer()
    signal.signal(_SIGNAL, usual)


def test_a_signal_that_comes_before_the_handler_has_begun_is_not_lost(timer):
    """As where the process is stopped in between for as long as the timeout."""
    with pytest.raises(SoftTimeout):
        timer.call(lambda: threading.Event().wait(20), 1e-9)


def test_nor_is_one_that_comes_while_python_ignores_the_last_one(timer, monkeypatch):
    """As where the process is stopped in the hook for what a callback raises: the timer is set there once more."""
    at_once, again = threading.Event(), PosixTimer.arm

    def arm(own: PosixTimer, seconds: float) -> None:
        is_in_the_hook = seconds == invoker._AGAIN and at_once.is_set()
        at_once.clear()
        again(own, 1e-9 if is_in_the_hook else seconds)

    def handler() -> None:
        thing = Thing()
        reference = weakref.ref(thing, lambda _: at_once.set() or threading.Event().wait(20))
        del thing
        threading.Event().wait(20)
        del reference

    monkeypatch.setattr(PosixTimer, "arm", arm)
    with pytest.raises(SoftTimeout):
        timer.call(handler, 0.05)


def test_a_handler_that_ends_in_time_hears_nothing_of_it(timer):
    assert "done" == timer.call(lambda: "done", 20.0)
