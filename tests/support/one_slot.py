"""What a real server is asked, script by script and key by key: on a cluster, all keys must be in one slot."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from tests.support.redis_cluster import TAGGED, Node

_WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
#: commands whose keys are not the first word behind them alone: up to which they are
_SEVERAL = {b"mget": None, b"del": None, b"unlink": None, b"blpop": -1, b"rpoplpush": 2}
_KEYLESS = {
    b"time", b"publish", b"subscribe", b"unsubscribe", b"echo", b"ping", b"info", b"cluster", b"client", b"scan",
    b"flushall", b"select", b"auth", b"script", b"command", b"config", b"monitor", b"replconf", b"psync", b"hello",
}  # fmt: skip


@contextmanager
def all_in_one_slot(node: Node) -> Iterator[None]:
    """Fails if anything meanwhile, also within a script, used a key without the tag."""
    connection = node.client.connection_pool.get_connection()
    connection.send_command("MONITOR")
    connection.read_response()
    try:
        yield
        end = secrets.token_hex(8).encode()
        node.say("ECHO", end)
        lines = list(_until(connection, end))
    finally:
        connection.disconnect()
        node.client.connection_pool.release(connection)
    outside = [line for line in lines if not all(key.startswith(TAGGED.encode()) for key in keys_in(line))]
    assert not outside, outside


def keys_in(line: bytes) -> list[bytes]:
    """The keys of one line of MONITOR; its words may be megabytes, and are read no further than needed."""
    words = (found[1] for found in _WORD.finditer(line, line.index(b"] ")))
    verb = next(words).lower()
    if verb in (b"eval", b"evalsha"):
        next(words)
        return list(islice(words, int(next(words))))
    if verb in _KEYLESS:
        return []
    return list(words)[: _SEVERAL[verb]] if verb in _SEVERAL else list(islice(words, 1))


def _until(connection: Any, end: bytes) -> Iterator[bytes]:
    while end not in (line := connection.read_response()):
        yield line
