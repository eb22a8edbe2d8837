"""Whoever reads a store for long leaves it half of its time."""

from __future__ import annotations

import time
from threading import Event

import pytest

from queuepool.stores.pace import StorePace

CALL = 0.03


def takes() -> None:
    """As a store that takes a while."""
    Event().wait(CALL)


def test_after_each_call_the_store_has_as_much_time_for_others() -> None:
    pace, began = StorePace(), time.monotonic()
    for _ in range(4):
        pace(takes)

    assert time.monotonic() - began >= 7 * CALL


def test_a_call_that_fails_is_paid_for_too() -> None:
    def fails() -> None:
        takes()
        raise ValueError

    pace, began = StorePace(), time.monotonic()
    with pytest.raises(ValueError):
        pace(fails)
    pace(lambda: None)

    assert time.monotonic() - began >= 2 * CALL
