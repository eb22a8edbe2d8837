"""Connections to a server, on which a command can be sent long before its reply is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import redis

from queuepool.stores.redis.nodes import Nodes, Owner
from queuepool.unix.originals import is_readable


class ShortOfReplicas(redis.ResponseError):
    """A script was carried out, but too few replicas are known to have what it has written."""


class PendingReply:
    """The reply to a command that was sent; it is read on demand, or before the next command is sent."""

    def __init__(self, connection: Any) -> None:
        self._raw = connection
        self._is_read = False
        self._reply: Any = None
        self._error: redis.RedisError | None = None

    def read(self) -> None:
        """Read the reply or its error, once, and keep it."""
        if not self._is_read:
            self._is_read = True
            try:
                self._reply = self._raw.read_response()
            except redis.RedisError as error:
                self._error = error

    def get(self) -> Any:
        """The reply; raises redis-py's exception for an error."""
        self.read()
        if self._error:
            raise self._error
        return self._reply


class PendingReplies:
    """The replies to commands that were sent together, one of which may be answered only after a while."""

    def __init__(self, connection: Any, number: int) -> None:
        self._raw = connection
        self._left = number
        #: whether the next reply was received together with the one before
        self._has_come = False

    @property
    def are_over(self) -> bool:
        """Whether all were read, or given up, or the connection has ended."""
        return not self._left

    @property
    def are_left(self) -> bool:
        """Whether we have left the server, which may carry out what it was sent."""
        return getattr(self._raw, "is_left", False)

    def get(self) -> Any:
        """The next reply; raises redis-py's exception for an error."""
        self._left -= 1
        try:
            return self._raw.read_response()
        except (redis.ConnectionError, redis.TimeoutError):
            self._left = 0
            raise

    def come_within(self, seconds: float) -> bool:
        """Whether the next one begins to come in this time; see ``Connection.await_reply``."""
        return self._has_come or (not self.are_over and is_readable(self._raw._sock.fileno(), seconds))

    def fileno(self) -> int:
        """The socket's, to wait for several connections at once."""
        return int(self._raw._sock.fileno())

    def look(self) -> None:
        """After a reply: check whether the next one has come with it, or the end of the connection."""
        try:
            self._has_come = self._raw.can_read()
        except redis.ConnectionError:
            self._has_come = True  # reading it raises the same

    def give_up(self) -> None:
        """Close the connection."""
        self._left = 0
        self._raw.disconnect()

    def read(self) -> None:
        """Another command is to be sent, which must not wait for these: close the connection, unless all were read."""
        if self._left:
            self.give_up()


class Connection:
    """A redis-py connection without redis-py's client, which takes more time than the command itself.

    Raises redis-py's exceptions.
    """

    def __init__(self, connection: Any) -> None:
        self.raw = connection
        self._outstanding: PendingReply | PendingReplies | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self.raw._sock is not None

    def open(self) -> None:
        """Connect, unless connected."""
        self.raw.connect()

    def ask(self, *words: Any) -> Any:
        """Send one command and return its reply; a signal handler may raise out of it."""
        self.clear()
        try:
            self.raw.send_command(*words)
            return self.raw.read_response()
        except redis.RedisError:
            raise
        except BaseException:
            self.raw.disconnect()  # a late reply must not answer the next command
            raise

    def await_reply(self, words: Sequence[Any], seconds: float) -> Any:
        """As ``ask``, for a command that may be answered only after a while; waits up to ``seconds``.

        Waits in the kernel's poll(): a signal handler could not raise out of a library's wait that runs other code
        meanwhile, such as gevent's.
        """
        self.clear()
        try:
            self.raw.send_command(*words)
            if not is_readable(self.raw._sock.fileno(), seconds):
                raise redis.TimeoutError("Timeout reading from socket")
            return self.raw.read_response()
        except redis.ConnectionError:
            raise
        except BaseException:
            self.raw.disconnect()  # as above
            raise

    def send(self, *words: Any) -> PendingReply:
        """Send one command; its reply can be read later."""
        self.clear()
        self.raw.send_command(*words)
        self._outstanding = reply = PendingReply(self.raw)
        return reply

    def send_together(self, commands: Sequence[Sequence[Any]]) -> PendingReplies:
        """Send these commands in one write; their replies can be read later."""
        self.clear()
        self.raw.send_packed_command(self.raw.pack_commands(commands))
        self._outstanding = replies = PendingReplies(self.raw, len(commands))
        return replies

    def clear(self) -> None:
        """Read an outstanding reply, so that the next command does not get it."""
        if self._outstanding:
            self._outstanding.read()
            self._outstanding = None

    def refresh(self) -> None:
        """If the server has closed the connection, close it too, so that the next command opens it again."""
        try:
            is_open = not self.raw.can_read()
        except (redis.RedisError, OSError):
            is_open = False
        if not is_open:
            self.close()

    def close(self) -> None:
        """Close the connection; the next command would open it again."""
        self.raw.disconnect()


def server_of(connection: Any) -> str:
    """The ``run_id`` of the server that a redis-py connection leads to; empty if it does not report it."""
    try:
        connection.send_command("INFO", "server")
        found = re.search(rb"run_id:(\w+)", connection.read_response())
    except redis.ResponseError:  # we may not ask (ACL), or it knows no INFO
        return ""
    return found[1].decode() if found else ""


class ConnectionPool:
    """A pool of connections for threads: each takes one per command. A forked process opens its own."""

    def __init__(self, make: Callable[[], Connection]) -> None:
        self._make = make
        self._pid = os.getpid()
        self._free: list[Connection] = []

    def ask(self, *words: Any) -> Any:
        """As ``Connection.ask``."""
        connection = self._take()
        try:
            reply = connection.ask(*words)
        except (redis.ConnectionError, redis.TimeoutError):
            self._drop(connection)
            raise
        except BaseException:
            self._give_back(connection)
            raise
        self._give_back(connection)
        return reply

    def close(self) -> None:
        """Close those that no thread has taken."""
        while self._free:
            self._free.pop().close()

    def _take(self) -> Connection:
        if self._pid != os.getpid():
            self._pid, self._free = os.getpid(), []
        try:
            connection = self._free.pop()
        except IndexError:
            return self._make()
        connection.refresh()
        return connection

    def _give_back(self, connection: Connection) -> None:
        self._free.append(connection)

    def _drop(self, connection: Connection) -> None:
        """Close it, for good: checking whether it is open would open it and wait for the server again."""
        connection.close()


class LentConnections(ConnectionPool):
    """As ``ConnectionPool``, of connections that others use, too. ``make`` makes one of redis-py's to the owner."""

    def __init__(self, nodes: Nodes, owner: Owner, make: Callable[[], Any], wraps: Callable[[Any], Connection]) -> None:
        super().__init__(lambda: wraps(make()))
        self._nodes = nodes
        self._owner = owner
        self._wraps = wraps

    def close(self) -> None:
        self._nodes.close()

    def _take(self) -> Connection:
        raw = self._nodes.take(self._owner)
        if raw is None:
            return self._make()
        raw.owner = self._owner
        connection = self._wraps(raw)
        connection.refresh()
        return connection

    def _give_back(self, connection: Connection) -> None:
        if connection.is_open:
            self._nodes.give(connection.raw)

    def _drop(self, connection: Connection) -> None:
        self._nodes.failed((connection.raw.host, connection.raw.port))
        super()._drop(connection)
