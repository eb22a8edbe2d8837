"""What is read for all who ask: at most so often, by one at a time."""

from __future__ import annotations

import threading

import pytest

from queuepool.web.threads import Fresh, WebThreads
from tests.support.eventually import eventually


@pytest.fixture
def threads():
    found = WebThreads()
    yield found
    found.close()


def test_what_nobody_has_asked_for_is_old_but_not_late(threads):
    gate, reads = threading.Event(), [0]

    def read() -> int:
        if reads[0]:
            assert gate.wait(30)
        reads[0] += 1
        return reads[0]

    fresh = Fresh(threads, read, 0.0, ())
    assert not fresh.is_known(60.0)
    assert 1 == fresh.get(30.0).value
    assert fresh.is_known(60.0)
    eventually(lambda: not fresh.is_known(2.1))

    asked = fresh.get(0.01)
    assert (1, "") == (asked.value, asked.problem), "the store was asked just now"
    eventually(lambda: "no answer for" in fresh.get(0.01).problem)
    gate.set()
    eventually(lambda: (fresh.get(1.0).value or 0) > 1)
    assert "" == fresh.get(30.0).problem
