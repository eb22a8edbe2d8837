"""A connection of PyMySQL without what it leaves undone. Imported where MySQL or MariaDB is the store."""

from __future__ import annotations

import socket

import pymysql
from pymysql.connections import Connection

#: what MySQL itself calls a statement beyond max_allowed_packet
_TOO_LARGE = 1153
#: and an answer that does not come
_SILENT = 1159


class Tidy(Connection):  # type: ignore[misc]
    """PyMySQL's, which leaves a unix socket open that nobody answers at, and sends what the server will not take.

    The server closes the connection then, in the middle of the statement, which looks as if it had gone away.
    """

    #: of one statement; ``None``: the server was not asked yet
    most_bytes: int | None = None

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        raw = sql.encode(self.encoding) if isinstance(sql, str) else sql
        if self.most_bytes and len(raw) >= self.most_bytes:
            words = f"a statement of {len(raw)} bytes is more than the server's max_allowed_packet, {self.most_bytes}"
            raise pymysql.DataError(_TOO_LARGE, words)
        super()._execute_command(command, raw)

    def ping(self, reconnect: bool = False) -> None:
        try:
            super().ping(reconnect)
        except pymysql.OperationalError as error:
            if not isinstance(error.__context__, TimeoutError):
                raise
            # No lost connection, to be opened anew: the silent server would be waited for twice.
            raise pymysql.OperationalError(_SILENT, "the server says nothing") from error

    def connect(self, sock: socket.socket | None = None) -> None:
        if sock is None and self.unix_socket:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(self.connect_timeout)
            try:
                sock.connect(self.unix_socket)
            except OSError as error:
                sock.close()
                raise pymysql.OperationalError(2002, f"cannot connect: {error.strerror or error}") from error
            self._secure = True  # as PyMySQL says of a socket that it has opened itself
        super().connect(sock)
