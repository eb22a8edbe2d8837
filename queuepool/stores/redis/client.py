"""Commands and scripts, and what a server refuses; few modules beside this one use redis-py.

Refusals and redis-py's exceptions become our errors; a cluster's nodes (see ``cluster``) and Sentinels are refused.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from queuepool.errors import (
    LoginRefused,
    NotReplicated,
    RefusesNew,
    StoreDenied,
    StoreDown,
    StoreError,
    StoreUnfit,
    TagRetired,
)
from queuepool.stores import certificates
from queuepool.stores.redis.connections import Connection, ConnectionPool, PendingReplies, ShortOfReplicas, server_of
from queuepool.stores.redis.scripts import STEPS, ScriptCall, script
from queuepool.unix.originals import is_readable

#: seconds that the server takes to confirm a subscription
_CONFIRMS = 2.0
#: keys that the server reads in one step of a scan
PAGE = 1000
#: a connection that only listens notices within a minute that its peer is gone, not after the usual 2 hours
_KEEPALIVE = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))
    if hasattr(socket, name)
}
#: redis-py's classes for temporary errors; it removes the code from their text
_GONE = (
    redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, redis.exceptions.MasterDownError,
)  # fmt: skip
#: redis-py's classes for errors that only a cluster's node returns
_CLUSTERS = (
    redis.exceptions.AskError, redis.exceptions.TryAgainError, redis.exceptions.ClusterDownError,
    redis.exceptions.ClusterCrossSlotError,
)  # fmt: skip
#: words in the errors of a server that may soon recover
_PASSING = (
    "LOADING", "MASTERDOWN", "READONLY", "MISCONF", "NOREPLICAS", "BUSY", "UNBLOCKED", "max number of clients", "LATE",
)  # fmt: skip
_KINDS = {
    "cluster": "this is a node of a Redis Cluster: write redis+cluster:// and a prefix with a hash tag, such as {app}:",
    "sentinel": "this is a Sentinel, which holds no jobs: write redis+sentinel://HOST:26379,HOST,HOST/NAME/0",
}
_CLUSTER_MESSAGES = re.compile("cluster mode|cluster node|hash to the same slot|Hash slot not served|different slots")
_UNKNOWN = re.compile(r"unknown command [`'](\w+)")
#: how a server reports what its user may not do in a script
_DENIED = re.compile("executing the script can't|ACL failure in script|NOPERM")


class RedisClient:
    """Commands to one server; ``shared`` between threads, else one connection for one loop.

    ``longest_wait`` and ``reply_timeout``, in seconds, add up to the socket's timeout. Errors name it by ``store``;
    ``about`` is for redis-py's connections.
    redis-py's own retries are off: after a lost reply they would push or reserve twice.
    """

    _wraps: Callable[[Any], Connection] = Connection

    def __init__(
        self,
        url: str,
        *,
        longest_wait: float = 0.0,
        shared: bool = False,
        reply_timeout: float = _CONFIRMS,
        store: str = "",
        **about: Any,
    ) -> None:
        self._open = partial(
            redis.Redis.from_url,
            url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=longest_wait + reply_timeout,
            socket_connect_timeout=reply_timeout,
            single_connection_client=not shared,
            client_name="queuepool",
            protocol=2,
            **about,
            **({} if url.startswith("unix") else {"socket_keepalive": True, "socket_keepalive_options": _KEEPALIVE}),
        )
        self._shared = shared
        self._store = store
        self._socket_timeout = longest_wait + reply_timeout
        self._subscribed: tuple[str, ...] = ()
        #: the scripts that were once sent as texts before a wait
        self._known: set[str] = set()
        #: the run_id of the server that knows our tag, empty if it does not say; ``None``: any server will do
        self._server: str | None = None
        #: commands that may have been sent but were not answered, as each may still be carried out; and changes of the
        #: server, as the new one may not know what the old one has answered
        self.unanswered = 0
        #: called when another server answers than before, before it is sent anything; and what it must answer first
        self.changed: Callable[[], object] = bool
        self.proof: tuple[str, ...] = ()

    @cached_property
    def _redis(self) -> Any:
        # A client of one connection connects when created, so create it at the first command, which may raise.
        return self._open() if self._shared else self._open(redis_connect_func=self._greet)

    def _greet(self, connection: Any) -> None:
        """Greet the server and notice a change: a floating address may now lead to a promoted replica."""
        connection.on_connect()
        if self._server is not None:
            server = server_of(connection)
            if not self._server or server != self._server:
                self._prove(connection)
                self.unanswered += 1
                self.changed()
            self._server = server  # last: what is cut short is repeated by the next connection

    def _prove(self, connection: Any) -> None:
        """Raise unless it can answer: a server may say who it is long before that."""
        if self.proof:
            connection.send_packed_command(connection.pack_command(*self.proof))
            with suppress(redis.exceptions.NoPermissionError):
                connection.read_response()

    @cached_property
    def _connection(self) -> Connection:
        return self._wraps(self._redis.connection)

    @cached_property
    def _connections(self) -> ConnectionPool:
        pool = self._redis.connection_pool
        # Not the pool's own make_connection(): it counts what it has ever made, 100 at most from redis-py 8 on.
        return ConnectionPool(lambda: self._wraps(pool.connection_class(**pool.connection_kwargs)))

    def reach(self) -> None:
        """Connect, unless connected. Not for a ``shared`` client."""
        with self._translating("connect", ()):
            self._connection.open()

    def follow_server(self, changed: Callable[[], object]) -> None:
        """Have this called by the next connection, and whenever another server answers. Not for a ``shared`` client."""
        self.changed, self._server = changed, ""

    def note_server(self) -> None:
        """Remember the server, to notice at a reconnect that another one answers. Does nothing if ``shared``."""
        if self._shared:
            return
        self.reach()
        with self._translating("info", ()):
            self._connection.clear()
            self._server = server_of(self._redis.connection)

    def command(self, *words: Any) -> Any:
        """Send one command and return its reply. Raises ``StoreDown`` or ``StoreError``, as all methods do."""
        with self._translating(str(words[0]).lower(), words[1:2]):
            if not self._shared:
                self._connection.clear()
            return self._redis.execute_command(*words)

    def blocking(self, *words: Any) -> Any:
        """As ``command``, but a signal handler may raise out of it."""
        with self._translating(str(words[0]).lower(), words[1:2]):
            if self._shared:
                return self._ask(*words)
            return self._connection.await_reply(words, self._socket_timeout)

    def scan(self, pattern: str) -> Iterator[set[bytes]]:
        """All keys of this pattern, each once, page by page: KEYS would block the server."""
        seen: set[bytes] = set()
        cursor = 0
        while True:
            cursor, page = self.command("SCAN", cursor, "MATCH", pattern, "COUNT", PAGE)
            yield (fresh := set(page) - seen)
            seen |= fresh
            if not int(cursor):
                return

    def script(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one of our Lua files and return its reply."""
        try:
            return self._run(name, keys, args, self._ask)
        except StoreDenied:
            if not name.startswith(STEPS):
                raise
        # Whatever is wrong with the steps, the lease ends. Rights are asked for before the script begins: nothing was
        # done, and if the steps are not what is denied, this is denied, too.
        return self._run(name.removeprefix(STEPS), keys[:-1], args[: -2 - int(args[-2])], self._ask)

    def _source(self, name: str) -> tuple[str, str]:
        return script(name)

    def script_in_time(self, name: str, keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
        """As ``script``, for people's commands: not carried out after it was reported as failed."""
        seconds, micros = self.command("TIME")
        return self.script(name, keys, [*args, int(seconds) + int(micros) / 1e6 + self._socket_timeout])

    def script_ahead(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Callable[[], Any]:
        """As ``script``, but only sends it: call the result later to read the reply. Not for a ``shared`` client."""
        text, digest = self._source(name)
        with self._translating(name, keys, text):
            answer = self._connection.send("EVALSHA", digest, len(keys), *keys, *args)
        return lambda: self._run(name, keys, args, lambda *_: answer.get())

    def script_behind(
        self,
        wait: Sequence[Any],
        name: str,
        keys: Sequence[str],
        args: Sequence[Any],
        before: Sequence[Any] = (),
        instead: ScriptCall | None = None,
    ) -> PendingReplies:
        """Send ``wait``, a command that blocks, and behind it a script, in one write; returns their replies.

        With ``before``, other arguments, the script is also carried out at once, before the wait; or another script
        ``instead`` of that. Any other call that comes before the last reply was read closes the connection. Not for a
        ``shared`` client.
        """
        text, digest = self._source(name)
        run = ("EVALSHA", digest, len(keys), *keys)
        with self._translating(name, keys, text):
            first = [self._taught(*instead)] if instead else [(*run, *before)] if before else []
            return self._connection.send_together([*first, wait, (*run, *args)])

    def _taught(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> tuple[Any, ...]:
        """The command that runs this script, the first time by its text, as it is not repeated if it is not known."""
        text, digest = self._source(name)
        how = ("EVALSHA", digest) if name in self._known else ("EVAL", text)
        self._known.add(name)
        return (*how, len(keys), *keys, *args)

    def await_replies(self, replies: PendingReplies) -> None:
        """Block until the next of these replies begins to come; a signal handler may raise out of it."""
        with self._translating("blpop", ()):
            if not replies.come_within(self._socket_timeout) and not replies.are_over:
                replies.give_up()
                raise redis.TimeoutError("Timeout reading from socket")

    def reply(self, replies: PendingReplies, *words: Any) -> Any:
        """The next of these replies, to the command that begins with ``words``."""
        with self._translating(str(words[0]).lower(), words[1:2]):
            return replies.get()

    def script_reply(self, replies: PendingReplies, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """The last of these replies, to a script; one that the server does not know is run now."""
        return self._run(name, keys, args, lambda *_: replies.get())

    def give_up(self, replies: PendingReplies) -> None:
        """Close the connection: what was sent may still be carried out."""
        replies.give_up()
        self.unanswered += 1

    def _run(self, name: str, keys: Sequence[str], args: Sequence[Any], first: Callable[..., Any]) -> Any:
        """Run a script by digest, else by its text: NOSCRIPT means that nothing was executed, so a retry is safe."""
        text, digest = self._source(name)
        with self._translating(name, keys, text):
            try:
                return first("EVALSHA", digest, len(keys), *keys, *args)
            except redis.exceptions.NoScriptError:
                return self._ask("EVAL", text, len(keys), *keys, *args)

    @contextmanager
    def _translating(self, verb: str, names: Sequence[Any], source: str = "") -> Iterator[None]:
        """Raise redis-py's exceptions as ours (see ``translated``)."""
        try:
            yield
        except redis.RedisError as error:
            found = translated(error, verb, names, source)
            self.unanswered += isinstance(found, (StoreDown, TagRetired))  # either way another tag is needed
            if isinstance(error, (redis.ConnectionError, redis.TimeoutError)) and not self._shared:
                self._close_pubsub()  # it broke as well, and would later look like a second outage
            raise type(found)(str(found), self._store) from error

    def _ask(self, *words: Any) -> Any:
        return self._connections.ask(*words) if self._shared else self._connection.ask(*words)

    def wait_for_message(self, channels: tuple[str, ...], timeout: float) -> str | None:
        """Block until a message is published on these channels, or ``timeout`` seconds are over; returns its channel.

        The empty name after a subscription: a message before it would have been missed.

        Precise to the millisecond, whereas the server ends a blocked command at its next tick, up to 100 ms late. Uses
        a separate connection; a signal handler may raise out of it.
        """
        try:
            if self._subscribed != channels:
                self._subscribe(channels)
                return ""
            heard = self._heard()
            return self._heard() if heard is None and self._is_readable(timeout) else heard
        except redis.RedisError as error:
            self._close_pubsub()
            found = translated(error, "subscribe", channels)
            raise type(found)(str(found), self._store) from error

    def _subscribe(self, channels: tuple[str, ...]) -> None:
        self._pubsub.subscribe(*channels)
        for _ in channels:
            self._pubsub.get_message(timeout=_CONFIRMS)  # the server confirms each
        self._subscribed = channels

    def _heard(self) -> str | None:
        message = self._pubsub.get_message(timeout=0.0)
        return None if message is None else message["channel"].decode("utf-8", "replace")

    def _is_readable(self, timeout: float) -> bool:
        return is_readable(self._pubsub.connection._sock.fileno(), timeout)  # see ``Connection.await_reply``

    @cached_property
    def _pubsub(self) -> Any:
        client: Any = self._open()
        return client.pubsub()

    def close(self) -> None:
        """Close the connections; the next command would open them again."""
        if "_redis" in vars(self):
            self._redis.close()
            del self._redis
            vars(self).pop("_connection", None)
            if pool := vars(self).pop("_connections", None):
                pool.close()
        self._close_pubsub()

    def _close_pubsub(self) -> None:
        self._subscribed = ()
        if "_pubsub" in vars(self):
            self._pubsub.close()
            del self._pubsub


def translated(error: redis.RedisError, verb: str, names: Sequence[Any], source: str = "") -> StoreError:
    """A redis-py exception as one of ours; it never contains the URL, and so never the password.

    ``verb``: the command, or the script with this ``source``; ``names``: its keys or channels.
    """
    text = certificates.explained(" ".join(str(error).split()) or type(error).__name__)
    if found := _own_refusal(error, text):
        return found
    if isinstance(error, redis.AuthenticationError):
        return LoginRefused(f"the server rejected the user or password: {text}")
    is_cluster = isinstance(error, _CLUSTERS) and not isinstance(error, redis.exceptions.MasterDownError)
    if found := _unfit_by(text, is_cluster=is_cluster):
        return found
    if isinstance(error, redis.exceptions.NoPermissionError) or _DENIED.search(text):
        return StoreDenied(denial(text, verb, names, source))
    if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in text:
        return RefusesNew(text)
    if isinstance(error, _GONE) or any(word in text for word in _PASSING):
        return StoreDown(text)
    return StoreError(text)


def _own_refusal(error: redis.RedisError, text: str) -> StoreError | None:
    """What our scripts refuse, and our waits for replicas."""
    if isinstance(error, ShortOfReplicas):
        return NotReplicated(text)
    return TagRetired(text) if text.startswith("RETIRED") else None


def denial(text: str, verb: str, names: Sequence[Any], source: str) -> str:
    """What the server's ACL forbids, by name. Before 7.2, servers name only the line of a command in a script."""
    if "key" in text or "channel" in text:
        return f"the user may not use a key or channel of {verb!r}: {' '.join(map(str, names))} (ACL)"
    commands = re.findall(r"the '(\S+)' command", text)
    line = re.search(r"@user_script:(\d+)", text)
    if line and source and not commands:
        commands = re.findall(r"redis\.p?call(?:\(|, )'(\w+)'", source.splitlines()[int(line[1]) - 1])
    if source and not commands:
        return f"the user may not run a command that {verb!r} needs (ACL): `queuepool check` names it"
    return f"the user may not run {' or '.join(map(repr, dict.fromkeys(commands or [verb])))} (ACL)"


def explained(text: str, name: str) -> str:
    """The text for a server's error that this script has caught."""
    return denial(text, name, (), script(name)[0]) if _DENIED.search(text) else text


def examine(mode: str) -> None:
    """Raise ``StoreUnfit`` if the server's ``redis_mode`` is unsuitable."""
    if mode in _KINDS:
        raise StoreUnfit(_KINDS[mode])


def _unfit_by(text: str, *, is_cluster: bool) -> StoreUnfit | None:
    """The error, if this text means an unfit server; ``is_cluster``: only a cluster's node raises such an error."""
    if is_cluster or _CLUSTER_MESSAGES.search(text):
        return StoreUnfit(_KINDS["cluster"])
    if text.startswith("no sentinel knows"):
        return StoreUnfit(text)
    if unknown := _UNKNOWN.search(text):
        kinds = "is it a Sentinel, or a proxy? Or was the command renamed there?"
        return StoreUnfit(f"the server has no command {unknown[1]}: {kinds}")
    return None
