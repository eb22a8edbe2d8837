"""Where the primary of a name is, as Redis Sentinels say.

After a forced or mistaken failover both servers call themselves the primary for some ten seconds, and what the old one
acknowledges then is lost. So a connection is not believed because it works: each command compares the epoch, which is
raised whenever the primary has moved.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from functools import cache
from math import inf
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from queuepool.config import sentinels
from queuepool.config.urls import bracketed
from queuepool.stores.redis.connections import Connection
from queuepool.unix.originals import is_readable

#: seconds between two looks
PERIOD = 1.0
#: what asking a sentinel may raise
SILENT = (redis.RedisError, OSError)
#: seconds after which a sentinel counts as silent: it has nothing else to do
_TIMEOUT = 0.5
#: seconds for which a silent one is asked only if nobody else answers
_SPARED = 10.0
_UNKNOWN_HERE = "No such master"
#: what the sentinel that leads a failover publishes first, and what each of them does a moment later
_NEWS = ("+promoted-slave", "+switch-master")


class Said(NamedTuple):
    """What one sentinel says of the primary."""

    #: Sentinel's count of failovers: of two that differ, the one with the higher count knows better
    config_epoch: int
    host: str
    port: int
    #: all that it reports of it, by name
    facts: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.host} {self.port}"

    @property
    def statement(self) -> Statement:
        return Statement(self.config_epoch, self.place)


class Statement(NamedTuple):
    """Where the primary is, by whom knows of so many failovers."""

    config_epoch: int
    place: str


def believed(known: Statement | None, all_said: Sequence[Said], sentinels: int) -> Said | None:
    """Whom to believe of these, beside what is known; ``None``: nobody, so what is known holds.

    One that knows of more failovers is believed alone. One that knows of fewer may have been cut off, and two of one
    epoch cannot both be right: most of the sentinels must say so, as they do when they were set up again.
    """
    newest = max(all_said, key=lambda said: said.config_epoch)
    if known is None or newest.config_epoch > known.config_epoch or newest.statement == known:
        return newest
    statements = [said.statement for said in all_said]
    return next((said for said in all_said if statements.count(said.statement) > sentinels // 2), None)


class Told(Protocol):
    """Where a process that follows the sentinels writes what others read: a pool's board, or this process's memory."""

    store_epoch: int
    store_config_epoch: int
    store_at: str


class Sentinel:
    """One sentinel. Its methods raise redis-py's exceptions and ``OSError``."""

    def __init__(self, url: sentinels.SentinelUrl, host: str, port: int) -> None:
        self.name = url.name
        self.where = f"{host}:{port}"
        #: when it was last found silent, and last asked (monotonic)
        self._silent_at = -inf
        self.asked_at = 0.0
        self._url = f"{url.scheme}://{bracketed(host)}:{port}?{url.tls}"
        self._login = {"username": url.user, "password": url.password}
        self._connection: Connection | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it was found so a short while ago."""
        return time.monotonic() - self._silent_at < _SPARED

    def look(self) -> Said | None:
        """What it says of the primary; ``None`` if it does not know the name."""
        # In this order: if a failover comes in between, the place is newer than the epoch, and is looked at again.
        facts, place = self.ask(("SENTINEL", "MASTER", self.name), ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.name))
        if place is None or _UNKNOWN_HERE in str(facts):
            return None
        for refused in (facts, place):
            if isinstance(refused, redis.RedisError):
                raise refused
        known = pairs(facts)
        return Said(int(known["config-epoch"]), place[0].decode(), int(place[1]), known)

    def ask(self, *commands: Sequence[str]) -> list[Any]:
        """The answers to these commands, sent in one write; an error that is an answer is returned as an exception."""
        self.asked_at = time.monotonic()
        try:
            if self._connection:
                self._connection.refresh()  # one that was started again is not silent
            connection = self._connection = self._connection or Connection(self._opened())
            replies = connection.send_together(commands)
            answers = [_answer(replies) for _ in commands]
        except SILENT:
            self._silent_at = time.monotonic()
            self.close()
            raise
        self._silent_at = -inf
        return answers

    def news(self) -> Generator[str, None, None]:
        """Yields now, at each news of a failover, and once a ``PERIOD``; raises when the sentinel is gone.

        Each time why it refuses to send news, if it does, which it tells after the first time.
        """
        refusal = ""
        connection = self._opened()
        try:
            connection.send_command("SUBSCRIBE", *_NEWS)
            while True:
                yield refusal
                if is_readable(connection._sock.fileno(), PERIOD):
                    try:
                        connection.read_response()
                    except redis.exceptions.NoPermissionError as error:
                        refusal = f"may not subscribe to its news: {error}"
        finally:
            connection.disconnect()

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def forget(self) -> None:
        """In a forked process: the connection is that of the parent."""
        self._connection = None

    def _opened(self) -> Any:
        timeouts = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
        about: dict[str, Any] = {"retry": Retry(NoBackoff(), 0), "protocol": 2, **timeouts, **self._login}
        pool = redis.ConnectionPool.from_url(self._url, **about)
        connection = pool.connection_class(**pool.connection_kwargs)
        connection.connect()
        return connection


def pairs(words: Sequence[bytes]) -> dict[str, str]:
    """A sentinel's list of names and values."""
    texts = [word.decode() for word in words]
    return dict(zip(texts[::2], texts[1::2], strict=False))


def _answer(replies: Any) -> Any:
    try:
        return replies.get()
    except redis.ConnectionError:
        raise
    except redis.ResponseError as error:
        return error


class Whereabouts:
    """Where the primary of one name is, for all connections of this process.

    In a pool the board says so, as the steward follows the sentinels. Any other process asks one of them as soon as
    something is sent and its last look is older than a ``PERIOD``: 0.1 ms a second.
    """

    def __init__(self, url: sentinels.SentinelUrl) -> None:
        self.url = url
        self.sentinels = self.own_sentinels()
        self._told: tuple[int, Told] | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._epoch = 0
        self._said: Said | None = None
        self._looked_at = 0.0
        #: the epoch in which the place was not a primary, or did not answer
        self._doubted = -1
        self._connections: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def own_sentinels(self) -> list[Sentinel]:
        """All of them, for one thread that asks them."""
        return [Sentinel(self.url, *one) for one in self.url.sentinels]

    def read(self, told: Told) -> None:
        """Read this from now on, and ask no sentinel. Not in processes forked later: nobody may write it any more."""
        self._told = os.getpid(), told

    @property
    def told(self) -> Told | None:
        """What is read instead of asking."""
        return self._told[1] if self._told and self._told[0] == os.getpid() else None

    @property
    def epoch(self) -> int:
        """Another number whenever the primary has moved."""
        if told := self.told:
            return told.store_epoch
        if time.monotonic() - self._looked_at >= PERIOD:
            self._look()
        return self._epoch

    def primary(self) -> tuple[int, str, int]:
        """The epoch, and the host and port of the primary. Raises redis-py's exceptions if no sentinel says so."""
        epoch = self.epoch  # before the place: if it moves meanwhile, that is noticed afterwards
        found = None if self._doubted == epoch else self._known()
        if found is None:
            said = self._asked()
            found = said.host, said.port
        return (epoch if self.told else self._epoch), *found

    def is_at(self, host: str, port: int) -> bool:
        """Whether the primary is there, as far as is known."""
        return self._known() == (host, port)

    def doubt(self, epoch: int) -> None:
        """What was said in this epoch led to no primary: ask a sentinel before the next try."""
        self._doubted = epoch

    def trust(self) -> None:
        """A primary has answered."""
        self._doubted = -1

    def add(self, connection: Any) -> None:
        """Remember this connection of redis-py, to ``sever`` it."""
        self._connections[id(connection)] = connection

    def sever(self) -> None:
        """End all that waits for an answer from where the primary was; called by other threads and signals' handlers.

        Only the sockets are shut down: those that wait see the end of their connections, and close them.
        """
        for reference in self._connections.valuerefs():
            connection = reference()
            if connection is not None and connection.pid == os.getpid() and connection.has_moved():
                connection.sever()

    def close(self) -> None:
        """Close the connections to the sentinels; the next look would open them again."""
        with self._own_lock():
            for one in self.sentinels:
                one.close()

    def _known(self) -> tuple[str, int] | None:
        told = self.told
        if told is None:
            return (self._said.host, self._said.port) if self._said else None
        host, _, port = told.store_at.rpartition(" ")  # any job of the pool may have written over it
        return (host, int(port)) if host and port.isdecimal() and int(port) < 65536 else None

    def _look(self) -> None:
        """Look again, unless another thread does; if nobody answers, what was known holds.

        Asks none that is silent, and not another one after that: what is sent meanwhile waits for this.
        """
        lock = self._own_lock()
        if lock.acquire(blocking=False):
            try:
                with suppress(*SILENT):
                    self._take(self._newest([one for one in self._in_turn() if not one.is_silent], until_silent=True))
            finally:
                self._looked_at = time.monotonic()
                lock.release()

    def _asked(self) -> Said:
        with self._own_lock():
            try:
                return self._take(self._newest(self._in_turn()))
            finally:
                self._looked_at = time.monotonic()

    def _take(self, said: Said) -> Said:
        if self._said is None or said.place != self._said.place:
            self._epoch += 1
        self._said = said
        return said

    def _in_turn(self) -> list[Sentinel]:
        """Each look begins with another one, as one that is cut off notices no failover; the silent come last."""
        return sorted(self.sentinels, key=lambda one: (one.is_silent, one.asked_at))

    def _newest(self, sentinels: Sequence[Sentinel], *, until_silent: bool = False) -> Said:
        """What is believed of what these say, asked one by one; ``until_silent``: none after one that is silent."""
        known = self._said.statement if self._said else None
        all_said: list[Said] = []
        problems: list[tuple[Sentinel, Exception | None]] = []
        for one in sentinels:
            try:
                said = one.look()
            except SILENT as error:
                problems.append((one, error))
                if until_silent:
                    break
                continue
            if said is None:
                problems.append((one, None))
                continue
            all_said.append(said)
            if found := believed(known, all_said, len(self.sentinels)):
                return found
        if self._said and all_said:
            return self._said
        raise _explained(self.url.name, problems)

    def _own_lock(self) -> threading.Lock:
        if self._pid != os.getpid():  # forked: what was open is the parent's, and a thread of its may hold the lock
            self._pid, self._lock = os.getpid(), threading.Lock()
            for one in self.sentinels:
                one.forget()
        return self._lock


def _explained(name: str, problems: Sequence[tuple[Sentinel, Exception | None]]) -> redis.RedisError:
    """Why nobody has said where the primary is."""
    for kind in (redis.AuthenticationError, redis.exceptions.NoPermissionError):
        for one, error in problems:
            if isinstance(error, kind):
                return kind(f"sentinel {one.where}: {error}")
    if not any(error for _, error in problems):
        return redis.ResponseError(f"no sentinel knows a primary named {name!r}")
    words = [f"{one.where}: {error or f'knows no primary named {name!r}'}" for one, error in problems]
    return redis.ConnectionError(f"no sentinel says where the primary is: {'; '.join(words)}")


@cache
def _whereabouts(place: str, url: sentinels.SentinelUrl) -> Whereabouts:
    return Whereabouts(url)


def whereabouts(url: str) -> Whereabouts:
    """Those of this URL, the same for all clients of this process."""
    found = sentinels.parsed(url)
    return _whereabouts(found.place, found._replace(database=0))
