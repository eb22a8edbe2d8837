"""Scripts whose writes count only once replicas have them: behind each goes a WAIT, in the same write.

WAIT asks for all that the server had written when it answered the script, so one that has nothing left to do, as an
earlier call has done it, waits for that. A script that was refused has written nothing: its WAIT is read and left.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import redis

from queuepool.config.values import ALL
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.connections import Connection, PendingReplies, PendingReply, ShortOfReplicas

#: Scripts that push, take, keep, settle and drop jobs, or say who holds them, or that one must not run. What only moves
#: jobs on (stage, reclaim), or is about them, is done again, or may be lost.
AWAITED = frozenset({
    "push", "push_with", "push_limited", "add_members", "start_flow", "fire", "admit", "refuse", "move", "requeue",
    "join", "retire", "reserve", "renew", "reassert", "enter", "step", "take_lock", "drop_held", "clear",
    "delete", "release", "postpone", "give_back", "finish", "fail", "cancel", "quarantine",
    "finish_member", "fail_member", "cancel_member", "retry", "retry_member", "resume_member", "stop_flow",
})  # fmt: skip
#: seconds for which ``all`` trusts its last count
_COUNTS = 1.0
#: a replica that has confirmed something: one that still loads its copy has not, and a backup (``redis-cli --rdb``)
#: never does; if these counted, all would wait for them, and go on waiting when they have left
_FOLLOWS = re.compile(rb"^slave\d+:.*state=online,offset=[1-9]", re.MULTILINE)
_GONE = redis.ConnectionError, redis.TimeoutError


class Replicas:
    """How many replicas must have what was written, and within how many seconds. One for all connections of a client.

    ``all``: as many as have followed its primary since this was made, and at least one. So one that leaves is missed,
    as a replica does that a forced failover has promoted.
    """

    def __init__(self, wanted: str, within: float) -> None:
        self.counts = wanted == ALL
        self.scripts: set[str] = set()
        self._wanted = 1 if self.counts else int(wanted)
        self._within = max(round(within * 1000), 1)  # 0 would be for ever
        self._primary = b""
        #: when the replicas were last counted over a socket (monotonic)
        self.counted_at = WeakKeyDictionary[Any, float]()

    def wait(self) -> tuple[str, int, int]:
        """The command that waits for them."""
        return "WAIT", self._wanted, self._within

    def count(self, connection: Any) -> None:
        """Ask the server of this connection of redis-py how many it has; another primary begins with its own."""
        connection.send_command("INFO", "replication")
        about = connection.read_response()
        (primary,) = re.findall(rb"master_replid:(\w+)", about)
        least = self._wanted if primary == self._primary else 1
        self._primary, self._wanted = primary, max(least, followers(about))

    def check(self, reached: int, needed: int) -> None:
        """Raise ``ShortOfReplicas`` if these are too few."""
        if reached < needed:
            raise ShortOfReplicas(
                f"the primary has done it, but after {self._within / 1000:g} s only {reached} of {needed} replicas have"
                " it (wait_replicas): it stands, unless a failover loses it"
            )


def followers(about: bytes) -> int:
    """How many replicas follow a primary, by its INFO."""
    return len(_FOLLOWS.findall(about))


class ReplicatedConnection(Connection):
    """Sends a WAIT behind each script that is awaited."""

    def __init__(self, connection: Any, replicas: Replicas) -> None:
        super().__init__(connection)
        self._replicas = replicas

    def ask(self, *words: Any) -> Any:
        if not self._is_awaited(words):
            return super().ask(*words)
        try:
            return self.send(*words).get()
        except redis.RedisError:
            raise
        except BaseException:
            self.close()  # a late reply must not answer the next command
            raise
        finally:
            self._outstanding = None

    def send(self, *words: Any) -> PendingReply:
        if not self._is_awaited(words):
            return super().send(*words)
        self._outstanding = reply = PendingReply(self._sent([words]))
        return reply

    def send_together(self, commands: Sequence[Sequence[Any]]) -> PendingReplies:
        self._outstanding = replies = PendingReplies(self._sent(commands), len(commands))
        return replies

    def _sent(self, commands: Sequence[Sequence[Any]]) -> _WithWaits:
        self.clear()
        if self._replicas.counts:
            self._count()
        wait = self._replicas.wait()
        waits = [wait if self._is_awaited(words) else None for words in commands]
        sent = [one for pair in zip(commands, waits, strict=True) for one in pair if one]
        self.raw.send_packed_command(self.raw.pack_commands(sent))
        return _WithWaits(self.raw, self._replicas, waits)

    def _is_awaited(self, words: Sequence[Any]) -> bool:
        return len(words) > 1 and words[1] in self._replicas.scripts

    def _count(self) -> None:
        """Count the replicas of a server that this connection has just reached, and again now and then."""
        self.raw.connect()  # unless it is
        if time.monotonic() >= self._replicas.counted_at.get(self.raw._sock, 0.0) + _COUNTS:
            self._replicas.count(self.raw)
            self._replicas.counted_at[self.raw._sock] = time.monotonic()


class _WithWaits:
    """A connection of redis-py, each of whose next replies is read with that of the WAIT behind it, if there is one."""

    def __init__(self, connection: Any, replicas: Replicas, waits: Sequence[tuple[str, int, int] | None]) -> None:
        self._raw = connection
        self._replicas = replicas
        self._waits = deque(waits)

    def read_response(self) -> Any:
        wait = self._waits.popleft()
        if wait is None:
            return self._raw.read_response()
        try:
            answer = self._raw.read_response()
        except _GONE:
            raise
        except redis.ResponseError:
            with suppress(redis.ResponseError):
                self._raw.read_response()
            raise
        self._replicas.check(self._reached(), wait[1])
        return answer

    def _reached(self) -> int:
        try:
            return int(self._raw.read_response())
        except redis.ResponseError as error:
            # Not the error of the script, which was carried out.
            raise ShortOfReplicas(f"it was done, but the server refuses to wait for replicas: {error}") from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class _Replicated:
    """What a client of any kind has besides, that waits for ``replicas``."""

    def __init__(self, *args: Any, replicas: Replicas, **about: Any) -> None:
        self._replicas = replicas
        super().__init__(*args, **about)

    def _source(self, name: str) -> tuple[str, str]:
        source: tuple[str, str] = super()._source(name)  # type: ignore[misc]
        if source[1] not in self._replicas.scripts and name.rpartition(":")[2] in AWAITED:
            self._replicas.scripts.update(source)
        return source

    def _wraps(self, connection: Any) -> Connection:
        return ReplicatedConnection(connection, self._replicas)


def replicated(kind: type[RedisClient]) -> Any:
    """The class of the clients of this kind that wait for replicas; it takes also ``replicas``."""
    return type(f"Replicated{kind.__name__}", (_Replicated, kind), {})
