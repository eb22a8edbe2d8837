"""One connection to a server, on which a command may be sent before somebody has time for its answer."""

from __future__ import annotations

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

    def ask(self, *words: Any) -> Any:
        """One command, and what the server says of it."""
        self.clear()
        self._connection.send_command(*words)
        return self._connection.read_response()

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
