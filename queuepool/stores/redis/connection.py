"""Connections to a server, on which a command can be sent long before its reply is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import redis

from queuepool.unix.readiness import is_readable


class PendingReply:
    """The reply to a command that was sent; read on demand, or before the next command is sent."""

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


class Connection:
    """A connection of redis-py without its client, which takes more time around a command than the command itself.

    Raises redis-py's exceptions.
    """

    def __init__(self, connection: Any) -> None:
        self._raw = connection
        self._outstanding: PendingReply | None = None

    def open(self) -> None:
        """Connect, unless connected."""
        self._raw.connect()

    def ask(self, *words: Any) -> Any:
        """Send one command and return its reply; a signal handler may raise out of it."""
        self.clear()
        try:
            self._raw.send_command(*words)
            return self._raw.read_response()
        except redis.RedisError:
            raise
        except BaseException:
            self._raw.disconnect()  # a late reply must not answer the next command
            raise

    def await_reply(self, words: Sequence[Any], seconds: float) -> Any:
        """As ``ask``, for a command that is answered late, or not at all within ``seconds``.

        It waits by the kernel's poll(): out of the wait of a library that runs other code meanwhile, as gevent's, a
        signal handler could raise nothing.
        """
        self.clear()
        try:
            self._raw.send_command(*words)
            if not is_readable(self._raw._sock.fileno(), seconds):
                raise redis.TimeoutError("Timeout reading from socket")
            return self._raw.read_response()
        except redis.ConnectionError:
            raise
        except BaseException:
            self._raw.disconnect()  # as above
            raise

    def send(self, *words: Any) -> PendingReply:
        """Send one command; its reply can be read later."""
        self.clear()
        self._raw.send_command(*words)
        self._outstanding = PendingReply(self._raw)
        return self._outstanding

    def clear(self) -> None:
        """Read an outstanding reply, so that it is not taken for the reply to the next command."""
        if self._outstanding:
            self._outstanding.read()
            self._outstanding = None

    def refresh(self) -> None:
        """If the server has closed the connection, close it too, so that the next command opens it again."""
        try:
            is_open = not self._raw.can_read()
        except (redis.RedisError, OSError):
            is_open = False
        if not is_open:
            self.close()

    def close(self) -> None:
        """Close the connection; the next command would open it again."""
        self._raw.disconnect()


def server_of(connection: Any) -> str:
    """The ``run_id`` of the server that a connection of redis-py leads to; empty if it does not say."""
    try:
        connection.send_command("INFO", "server")
        found = re.search(rb"run_id:(\w+)", connection.read_response())
    except redis.ResponseError:  # we may not ask (ACL), or it knows no INFO
        return ""
    return found[1].decode() if found else ""


class ConnectionPool:
    """A pool of connections for threads: each takes one per command. A forked process opens its own."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._pid = os.getpid()
        self._free: list[Connection] = []

    def ask(self, *words: Any) -> Any:
        """As ``Connection.ask``."""
        connection = self._take()
        try:
            reply = connection.ask(*words)
        except (redis.ConnectionError, redis.TimeoutError):
            connection.close()  # and drop it: the check whether it is open would open it, and wait for the server again
            raise
        except BaseException:
            self._free.append(connection)
            raise
        self._free.append(connection)
        return reply

    def _take(self) -> Connection:
        if self._pid != os.getpid():
            self._pid, self._free = os.getpid(), []
        try:
            connection = self._free.pop()
        except IndexError:
            return Connection(self._connect())
        connection.refresh()
        return connection
