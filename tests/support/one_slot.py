"""What a real server is asked, script by script and key by key: on a cluster, all keys must be in one slot."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.redis_cluster import TAGGED, Node

_WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
#: commands whose keys are not the first word alone: how many are, from where to where
_SEVERAL = {b"mget": (1, None), b"del": (1, None), b"unlink": (1, None), b"blpop": (1, -1), b"rpoplpush": (1, 3)}
_KEYLESS = {
    b"time", b"hello", b"publish", b"subscribe", b"unsubscribe", b"echo", b"ping", b"info", b"cluster", b"client", b"scan",
    b"flushall", b"select", b"auth", b"script", b"command", b"config", b"monitor", b"replconf", b"psync",
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
    """The keys of one line of MONITOR."""
    words = _WORD.findall(line.partition(b"] ")[2])
    verb = words[0].lower()
    if verb in (b"eval", b"evalsha"):
        return list(words[3 : 3 + int(words[2])])
    if verb in _KEYLESS:
        return []
    first, end = _SEVERAL.get(verb, (1, 2))
    return list(words[first:end])


def _until(connection: Any, end: bytes) -> Iterator[bytes]:
    while end not in (line := connection.read_response()):
        yield line
