"""Talks to redis-py, with ``line``, and nobody else does: connections, scripts, and its exceptions made ours."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from queuepool.errors import StoreDown, TagRetired
from queuepool.stores.redis.connection import Line, Lines
from queuepool.stores.redis.refusals import translated
from queuepool.stores.redis.scripts import script

#: seconds that the server takes to confirm a subscription
_CONFIRMS = 2.0
#: so that who only listens finds within a minute that the other side is gone without a word; the kernel takes 2 hours
_KEEPALIVE = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))
    if hasattr(socket, name)
}


class Client:
    """Commands to one server; ``shared`` between threads, else one connection for one loop.

    ``store``: how errors name it.
    redis-py's own retries are off: after a lost reply it would push twice or reserve twice.
    """

    def __init__(
        self,
        url: str,
        *,
        longest_wait: float = 0.0,
        shared: bool = False,
        patience: float = _CONFIRMS,
        store: str = "",
    ) -> None:
        self._open = partial(
            redis.Redis.from_url,
            url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=longest_wait + patience,
            socket_connect_timeout=patience,
            single_connection_client=not shared,
            client_name="queuepool",
            protocol=2,
            **({} if url.startswith("unix") else {"socket_keepalive": True, "socket_keepalive_options": _KEEPALIVE}),
        )
        self._shared = shared
        self._store = store
        self._waits = longest_wait + patience
        self._heard: tuple[str, ...] = ()
        #: commands that were sent, perhaps, and not answered: each may still be carried out
        self.unanswered = 0

    @cached_property
    def _redis(self) -> Any:
        # A client of one connection connects when it is made: not before the first command, which may say so.
        return self._open()

    @cached_property
    def _line(self) -> Line:
        return Line(self._redis.connection)

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._redis.connection_pool.make_connection)

    def reach(self) -> None:
        """Connect, unless that is done. Not where it is ``shared``."""
        with self._translating("connect", ()):
            self._line.open()

    def command(self, *words: Any) -> Any:
        """One command; raises ``StoreDown`` or ``StoreError``."""
        with self._translating(str(words[0]).lower(), words[1:2]):
            if not self._shared:
                self._line.clear()
            return self._redis.execute_command(*words)

    def blocking(self, *words: Any) -> Any:
        """One command that a signal handler may raise out of."""
        with self._translating(str(words[0]).lower(), words[1:2]):
            return self._ask(*words)

    def script(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one of our Lua files."""
        return self._run(name, keys, args, self._ask)

    def script_in_time(self, name: str, keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
        """As ``script``, for what people ask: it is not carried out once they have been told that it failed."""
        seconds, micros = self.command("TIME")
        return self.script(name, keys, [*args, int(seconds) + int(micros) / 1e6 + self._waits])

    def script_ahead(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Callable[[], Any]:
        """As ``script``, but only sent: call what it gives for the answer, later. Not where it is ``shared``."""
        text, digest = script(name)
        with self._translating(name, keys, text):
            answer = self._line.send("EVALSHA", digest, len(keys), *keys, *args)
        return lambda: self._run(name, keys, args, lambda *_: answer.get())

    def _run(self, name: str, keys: Sequence[str], args: Sequence[Any], first: Callable[..., Any]) -> Any:
        """NOSCRIPT means that nothing was executed, so it is safe to send again."""
        text, digest = script(name)
        with self._translating(name, keys, text):
            try:
                return first("EVALSHA", digest, len(keys), *keys, *args)
            except redis.exceptions.NoScriptError:
                return self._ask("EVAL", text, len(keys), *keys, *args)

    @contextmanager
    def _translating(self, verb: str, names: Sequence[Any], source: str = "") -> Iterator[None]:
        """redis-py's exceptions as ``translated`` says."""
        try:
            yield
        except redis.RedisError as error:
            found = translated(error, verb, names, source)
            self.unanswered += isinstance(found, (StoreDown, TagRetired))  # either way another tag is needed
            raise type(found)(str(found), self._store) from error

    def _ask(self, *words: Any) -> Any:
        return self._lines.ask(*words) if self._shared else self._line.ask(*words)

    def hear(self, channels: tuple[str, ...], timeout: float) -> bool:
        """Block until something is published on these channels, or the time is over, to the millisecond.

        (The server ends a blocked command only at its next tick, up to 100 ms late.) A connection of its own; a signal
        handler may raise out of it.
        """
        try:
            if self._heard != channels:
                self._subscribe(channels)
                return True  # what was said before we listened is not known
            return self._ears.get_message(timeout=timeout) is not None
        except redis.RedisError as error:
            self._stop_hearing()
            found = translated(error, "subscribe", channels)
            raise type(found)(str(found), self._store) from error

    def _subscribe(self, channels: tuple[str, ...]) -> None:
        self._ears.subscribe(*channels)
        for _ in channels:
            self._ears.get_message(timeout=_CONFIRMS)  # the server confirms each
        self._heard = channels

    @cached_property
    def _ears(self) -> Any:
        client: Any = self._open()
        return client.pubsub()

    def close(self) -> None:
        """Give the connection back; the next command would open it again."""
        if "_redis" in vars(self):
            self._redis.close()
            del self._redis
            for name in ("_line", "_lines"):
                vars(self).pop(name, None)
        self._stop_hearing()

    def _stop_hearing(self) -> None:
        self._heard = ()
        if "_ears" in vars(self):
            self._ears.close()
            del self._ears
