"""Replies that are read one by one, on a connection that may end between any two of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import redis

from queuepool.stores.redis.connections import PendingReplies


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.fault("F45")
def test_a_connection_that_ends_right_behind_a_reply_is_found_by_the_next_read(server):
    """A server that is killed then sends the end of the connection along with what it has answered."""
    connection = redis.Connection(host="127.0.0.1", port=server.getsockname()[1])
    connection._sock = socket.create_connection(server.getsockname())
    connection._parser.on_connect(connection)
    there, _ = server.accept()
    there.sendall(b":1\r\n")
    there.close()
    replies = PendingReplies(connection, 2)

    assert 1 == replies.get()
    replies.look()
    assert replies.come_within(0.0)
    with pytest.raises(redis.ConnectionError):
        replies.get()
    assert replies.are_over
