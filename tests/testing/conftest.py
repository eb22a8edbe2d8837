"""What the tests of ``queuepool.testing`` begin with."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from queuepool import configure
from queuepool.jobs.client import Queue
from tests.testing.jobs import DONE


@pytest.fixture(autouse=True)
def done() -> list[object]:
    """What the jobs have done."""
    DONE.clear()
    return DONE


@pytest.fixture(autouse=True)
def queue() -> Iterator[Queue]:
    """The configured queue: a push that reaches its store is refused."""
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        yield configure(f"redis://127.0.0.1:{unheard.getsockname()[1]}/0")
