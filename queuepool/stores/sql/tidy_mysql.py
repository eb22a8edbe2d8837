"""A PyMySQL connection with some faults corrected. Imported only if MySQL or MariaDB is the store."""

from __future__ import annotations

import socket

import pymysql
from pymysql.connections import Connection

#: MySQL's own error number for a statement beyond max_allowed_packet
_TOO_LARGE = 1153
#: and for a reply that does not come
_SILENT = 1159


class Tidy(Connection):  # type: ignore[misc]
    """Closes the Unix socket of a failed connect, and refuses statements that are too large: PyMySQL does neither.

    The server would close the connection in the middle of such a statement, as if it had gone away.
    """

    #: most bytes of a statement; ``None``: not yet known
    most_bytes: int | None = None

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        raw = sql.encode(self.encoding) if isinstance(sql, str) else sql
        if self.most_bytes and len(raw) >= self.most_bytes:
            words = f"a statement of {len(raw)} bytes exceeds the server's max_allowed_packet, {self.most_bytes}"
            raise pymysql.DataError(_TOO_LARGE, words)
        super()._execute_command(command, raw)

    def ping(self, reconnect: bool = False) -> None:
        try:
            super().ping(reconnect)
        except pymysql.OperationalError as error:
            if not isinstance(error.__context__, TimeoutError):
                raise
            # Not as a lost connection, which would be opened again: that would wait for the silent server twice.
            raise pymysql.OperationalError(_SILENT, "the server does not respond") from error

    def connect(self, sock: socket.socket | None = None) -> None:
        if sock is None and self.unix_socket:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(self.connect_timeout)
            try:
                sock.connect(self.unix_socket)
            except OSError as error:
                sock.close()
                raise pymysql.OperationalError(2002, f"cannot connect: {error.strerror or error}") from error
            self._secure = True  # as PyMySQL does for a socket that it opens itself
        super().connect(sock)
