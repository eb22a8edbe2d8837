"""Reads all connections of a configuration, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from queuepool.cli import output
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError
from queuepool.unix.exit_codes import FAILED, OK

T = TypeVar("T")


class Reading:
    """Reads each connection. If there are several, one that is away is reported, and does not hide the others."""

    def __init__(self, connections: Sequence[ConnectionSettings]) -> None:
        self._connections = connections
        #: the exit code of the command
        self.code = OK

    @property
    def is_of_several(self) -> bool:
        """Whether rows must show their connection."""
        return len(self._connections) > 1

    def each(self, read: Callable[[ConnectionSettings], Iterable[T]]) -> Iterator[T]:
        """What ``read`` finds on each. Raises ``StoreError`` if there is only one."""
        for connection in self._connections:
            try:
                yield from read(connection)
            except StoreError as error:
                if not self.is_of_several:
                    raise
                self.refuse(f"connection {connection.name}: {error}")

    def refuse(self, words: str) -> None:
        """Report what cannot be shown, and why."""
        output.complain(words)
        self.code = FAILED

    def place(self, connection: ConnectionSettings) -> dict[str, str]:
        """The column that a row begins with: none if there is only one connection."""
        return {"connection": connection.name} if self.is_of_several else {}
