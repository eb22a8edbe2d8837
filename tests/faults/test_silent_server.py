"""A server accepts connections and never answers: a producer gives up after its timeout."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from queuepool.errors import StoreDown
from queuepool.jobs.connecting import connect


@pytest.fixture
def silent_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # the kernel accepts
        yield int(listener.getsockname()[1])


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{}", "postgresql://u@127.0.0.1:{}/d", "mysql://u@127.0.0.1:{}/d"])
def test_a_push_to_a_silent_server_is_given_up_after_two_seconds(silent_port, url):
    with closing(connect(url.format(silent_port))) as queue:
        began = time.monotonic()
        with pytest.raises(StoreDown):
            queue.push("app.ok")

    assert 40 > time.monotonic() - began  # it was a minute on databases
