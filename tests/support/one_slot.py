"""What a real server is asked, script by script and key by key: on a cluster, all keys must be in one slot."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

from queuepool.config.connections import tag_of
from queuepool.stores.redis.cluster import slot_of
from tests.support.redis_cluster import TAGGED, Cluster, Node

_WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
#: commands whose keys are not the first word behind them alone: up to which they are
_SEVERAL = {b"mget": None, b"exists": None, b"del": None, b"unlink": None, b"blpop": -1, b"rpoplpush": 2}
_KEYLESS = {
    b"time", b"publish", b"subscribe", b"unsubscribe", b"echo", b"ping", b"info", b"cluster", b"client", b"scan",
    b"flushall", b"select", b"auth", b"script", b"command", b"config", b"monitor", b"replconf", b"psync", b"hello",
}  # fmt: skip


@contextmanager
def each_in_one_slot(cluster: Cluster) -> Iterator[None]:
    """Fails if any call meanwhile, with all that its script does, used keys of several slots."""
    with ExitStack() as stack:
        lines = [stack.enter_context(_watching(node)) for node in cluster.masters()]
        yield
    calls = [call for several in lines for call in _calls(several)]
    spread = [call for call in calls if len({slot_of_key(key) for line in call for key in keys_in(line)}) > 1]
    assert not spread, spread


def slot_of_key(key: bytes) -> int:
    text = key.decode("utf-8", "surrogateescape")
    return slot_of(tag_of(text) or text)


def _calls(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Each command, a script with those that it runs."""
    call: list[bytes] = []
    for line in lines:
        if b" lua]" not in line and call:
            yield call
            call = []
        call.append(line)
    yield call


@contextmanager
def _watching(node: Node) -> Iterator[list[bytes]]:
    """The lines of MONITOR, once it ends."""
    connection = node.client.connection_pool.get_connection()
    connection.send_command("MONITOR")
    connection.read_response()
    lines: list[bytes] = []
    try:
        yield lines
        end = secrets.token_hex(8).encode()
        node.say("ECHO", end)
        lines += _until(connection, end)
    finally:
        connection.disconnect()
        node.client.connection_pool.release(connection)


@contextmanager
def all_in_one_slot(node: Node) -> Iterator[None]:
    """Fails if anything meanwhile, also within a script, used a key without the tag."""
    with _watching(node) as lines:
        yield
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
