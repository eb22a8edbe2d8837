"""Connections to a server, on which a command may be sent before somebody has time for its answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import redis


class Answer:
    """To a command that was sent; read when it is asked for, or before the next command is sent."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._is_read = False
        self._said: Any = None
        self._error: redis.RedisError | None = None

    def read(self) -> None:
        """Keep it, whatever it is."""
        if not self._is_read:
            self._is_read = True
            try:
                self._said = self._connection.read_response()
            except redis.RedisError as error:
                self._error = error

    def get(self) -> Any:
        """What the server said; raises what it refused."""
        self.read()
        if self._error:
            raise self._error
        return self._said


class Line:
    """redis-py's connection without its client: what that does around each command takes longer than the command.

    Raises redis-py's exceptions.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._unread: Answer | None = None

    def open(self) -> None:
        """Connect, unless that is done."""
        self._connection.connect()

    def ask(self, *words: Any) -> Any:
        """One command, and what the server says of it; a signal handler may raise out of it."""
        self.clear()
        try:
            self._connection.send_command(*words)
            return self._connection.read_response()
        except redis.RedisError:
            raise
        except BaseException:
            self._connection.disconnect()  # a late reply must not answer the next command
            raise

    def send(self, *words: Any) -> Answer:
        """One command; its answer may come while something else is done."""
        self.clear()
        self._connection.send_command(*words)
        self._unread = Answer(self._connection)
        return self._unread

    def clear(self) -> None:
        """Read what is still to come: it must not be taken for the answer to something else."""
        if self._unread:
            self._unread.read()
            self._unread = None

    def refresh(self) -> None:
        """The server may have closed it since: then the next command opens it again."""
        try:
            is_open = not self._connection.can_read()
        except (redis.RedisError, OSError):
            is_open = False
        if not is_open:
            self.close()

    def close(self) -> None:
        """The next command would open it again."""
        self._connection.disconnect()


class Lines:
    """For threads: each takes one for a command. A process that was forked opens its own."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._pid = os.getpid()
        self._free: list[Line] = []

    def ask(self, *words: Any) -> Any:
        """As ``Line.ask``."""
        line = self._take()
        try:
            answer = line.ask(*words)
        except (redis.ConnectionError, redis.TimeoutError):
            line.close()  # and not kept: to look whether it is open would open it, and wait for the server once more
            raise
        except BaseException:
            self._free.append(line)
            raise
        self._free.append(line)
        return answer

    def _take(self) -> Line:
        if self._pid != os.getpid():
            self._pid, self._free = os.getpid(), []
        try:
            line = self._free.pop()
        except IndexError:
            return Line(self._connect())
        line.refresh()
        return line
