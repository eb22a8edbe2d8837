"""Talks to redis-py, with ``line``, and nobody else does: connections, scripts, and its exceptions made ours."""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.stores import unfit
from queuepool.stores.redis.line import Line, Lines

#: seconds that the server takes to confirm a subscription
_CONFIRMS = 2.0
#: so that who only listens finds within a minute that the other side is gone without a word; the kernel takes 2 hours
_KEEPALIVE = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))
    if hasattr(socket, name)
}
#: redis-py's own classes for what may pass; it takes the code out of their text
_GONE = (
    redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, redis.exceptions.OutOfMemoryError,
    redis.exceptions.MasterDownError,
)  # fmt: skip
#: those for what only a cluster's node says
_CLUSTERS = (
    redis.exceptions.AskError, redis.exceptions.TryAgainError, redis.exceptions.ClusterDownError,
    redis.exceptions.ClusterCrossSlotError,
)  # fmt: skip
#: what a server says that may answer again in a moment
_PASSING = (
    "LOADING", "MASTERDOWN", "READONLY", "MISCONF", "NOREPLICAS", "BUSY", "OOM", "UNBLOCKED", "max number of clients",
)  # fmt: skip

#: what a server says of what its user may not do within a script
_DENIED = re.compile("executing the script can't|ACL failure in script|NOPERM")


class Client:
    """Commands to one server; ``shared`` between threads, else one connection for one loop.

    redis-py's own retries are off: after a lost reply it would push twice or reserve twice.
    """

    def __init__(
        self, url: str, *, longest_wait: float = 0.0, shared: bool = False, patience: float = _CONFIRMS
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
        self._heard: tuple[str, ...] = ()

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
        with _translating("connect", ()):
            self._line.open()

    def command(self, *words: Any) -> Any:
        """One command; raises ``StoreDown`` or ``StoreError``."""
        with _translating(str(words[0]).lower(), words[1:2]):
            if not self._shared:
                self._line.clear()
            return self._redis.execute_command(*words)

    def blocking(self, *words: Any) -> Any:
        """One command that a signal handler may raise out of."""
        with _translating(str(words[0]).lower(), words[1:2]):
            return self._ask(*words)

    def script(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one of our Lua files."""
        return self._run(name, keys, args, self._ask)

    def script_ahead(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Callable[[], Any]:
        """As ``script``, but only sent: call what it gives for the answer, later. Not where it is ``shared``."""
        text, digest = _script(name)
        with _translating(name, keys, text):
            answer = self._line.send("EVALSHA", digest, len(keys), *keys, *args)
        return lambda: self._run(name, keys, args, lambda *_: answer.get())

    def _run(self, name: str, keys: Sequence[str], args: Sequence[Any], first: Callable[..., Any]) -> Any:
        """NOSCRIPT means that nothing was executed, so it is safe to send again."""
        text, digest = _script(name)
        with _translating(name, keys, text):
            try:
                return first("EVALSHA", digest, len(keys), *keys, *args)
            except redis.exceptions.NoScriptError:
                return self._ask("EVAL", text, len(keys), *keys, *args)

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
            raise translated(error, "subscribe", channels) from error

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


@contextmanager
def _translating(verb: str, names: Sequence[Any], source: str = "") -> Iterator[None]:
    """redis-py's exceptions as ``translated`` says."""
    try:
        yield
    except redis.RedisError as error:
        raise translated(error, verb, names, source) from error


def translated(error: redis.RedisError, verb: str, names: Sequence[Any], source: str = "") -> StoreError:
    """A redis-py exception as one of ours; the URL, and so the password, is never in it.

    ``verb``: the command, or the script of this ``source``; ``names``: the keys or channels that it was about.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, redis.AuthenticationError):
        return StoreDown(f"the server does not accept user and password: {text}")
    is_cluster = isinstance(error, _CLUSTERS) and not isinstance(error, redis.exceptions.MasterDownError)
    if found := unfit.by_words(text, is_cluster=is_cluster):
        return found
    if isinstance(error, redis.exceptions.NoPermissionError) or _DENIED.search(text):
        return StoreDenied(denial(text, verb, names, source))
    if isinstance(error, _GONE) or any(word in text for word in _PASSING):
        return StoreDown(text)
    return StoreError(text)


def denial(text: str, verb: str, names: Sequence[Any], source: str) -> str:
    """What the server's ACL forbids, by name. Of a command in a script a server before 7.2 says the line only."""
    if "key" in text or "channel" in text:
        return f"the user may not use a key or channel of {verb!r}: {' '.join(map(str, names))} (ACL)"
    commands = re.findall(r"the '(\S+)' command", text)
    line = re.search(r"@user_script:(\d+)", text)
    if line and source and not commands:
        commands = re.findall(r"redis\.p?call(?:\(|, )'(\w+)'", source.splitlines()[int(line[1]) - 1])
    if source and not commands:
        return f"the user may not run a command that {verb!r} needs (ACL): `queuepool check` names it"
    return f"the user may not run {' or '.join(map(repr, dict.fromkeys(commands or [verb])))} (ACL)"


def explained(text: str, script: str) -> str:
    """A server's error that a script has caught."""
    return denial(text, script, (), _script(script)[0]) if _DENIED.search(text) else text


@cache
def _script(name: str) -> tuple[str, str]:
    folder = files(__package__) / "lua"
    text = (folder / f"{name}.lua").read_text()
    included = re.search(r"^-- include: (.*)$", text, re.MULTILINE)
    parts = [(folder / "include" / f"{part}.lua").read_text() for part in (included[1].split() if included else ())]
    whole = "\n".join([*parts, text])
    return whole, hashlib.sha1(whole.encode()).hexdigest()
