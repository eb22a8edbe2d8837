"""The timer of soft timeouts, in this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from queuepool import SoftTimeout
from queuepool.worker.invoker import _SIGNAL, SoftTimer


@pytest.fixture
def timer() -> Iterator[SoftTimer]:
    usual = signal.getsignal(_SIGNAL)
    yield SoftTimer()
    signal.signal(_SIGNAL, usual)


def test_a_signal_that_comes_before_the_handler_has_begun_is_not_lost(timer):
    """As where the process is stopped in between for as long as the timeout."""
    with pytest.raises(SoftTimeout):
        timer.call(lambda: threading.Event().wait(20), 1e-9)


def test_a_handler_that_ends_in_time_hears_nothing_of_it(timer):
    assert "done" == timer.call(lambda: "done", 20.0)
