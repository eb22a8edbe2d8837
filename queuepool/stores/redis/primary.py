"""Connections that lead to the primary which Sentinels name, and to nothing else."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import redis

from queuepool.config import sentinels
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.sentinel import Whereabouts, whereabouts

#: seconds for a connection to come about: a host that is gone must not delay those that look for the next one
_CONNECTS = 0.5
#: what a server answers that is no longer the primary; redis-py has classes for the first two, without these words
_DEMOTED = re.compile(r"(^|[ -])(READONLY|MASTERDOWN|UNBLOCKED)\b")
_DEMOTED_TYPES = (redis.ReadOnlyError, redis.exceptions.MasterDownError)


class PrimaryClient(RedisClient):
    """As ``RedisClient``, to the primary wherever it is."""

    def __init__(self, url: str, **about: Any) -> None:
        servers = sentinels.of_servers(url)
        kind = SecuredToPrimary if servers.startswith("rediss") else PlainToPrimary
        self._whereabouts = whereabouts(url)
        super().__init__(servers, connection_class=kind, whereabouts=self._whereabouts, **about)

    def close(self) -> None:
        super().close()
        self._whereabouts.close()


class _ToPrimary:
    """What both have in common. Before it sends, a connection closes if the primary has moved, and opens there.

    An answer that only a server gives which is no longer the primary counts as a lost connection: whatever was sent is
    sent again, or not, by the rules for lost replies.
    """

    host: str
    port: int
    pid: int
    disconnect: Callable[[], None]
    _sock: Any

    def __init__(
        self, *, whereabouts: Whereabouts, redis_connect_func: Callable[[Any], None] | None = None, **about: Any
    ) -> None:
        #: that of the whereabouts at which it was opened, or is being opened; and whether it has greeted the primary
        self._epoch: int | None = None
        self._is_open = False
        #: its socket was shut down because the primary has moved
        self._is_severed = False
        self._whereabouts = whereabouts
        about["socket_connect_timeout"] = min(about["socket_connect_timeout"], _CONNECTS)
        super().__init__(redis_connect_func=partial(_greet, redis_connect_func), **about)  # type: ignore[call-arg]
        whereabouts.add(self)

    def connect(self) -> None:
        self._leave_if_moved()
        if self._sock:
            return
        self._is_open = self._is_severed = False
        epoch, self.host, self.port = self._whereabouts.primary()
        self._epoch = epoch
        try:
            super().connect()  # type: ignore[misc]
        except redis.RedisError:
            self._whereabouts.doubt(epoch)
            raise
        self._is_open = True
        self._whereabouts.trust()

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        self._leave_if_moved()
        if not self._sock:
            self.connect()
        super().send_packed_command(command, check_health)  # type: ignore[misc]

    def read_response(self, *args: Any, **about: Any) -> Any:
        try:
            return super().read_response(*args, **about)  # type: ignore[misc]
        except redis.AuthenticationError:
            raise
        except redis.ConnectionError as error:
            if self.has_moved():
                raise redis.ConnectionError("the primary has moved to another server") from error
            raise
        except redis.ResponseError as error:
            if not (isinstance(error, _DEMOTED_TYPES) or _DEMOTED.search(str(error))):
                raise
            self._whereabouts.doubt(self._whereabouts.epoch)
            self.disconnect()
            raise redis.ConnectionError(f"{self.host}:{self.port} is not the primary any more: {error}") from error

    @property
    def is_left(self) -> bool:
        """Whether it has ended, or will, because the primary is elsewhere; the server it led to may not know."""
        return self._is_severed or self.has_moved()

    def has_moved(self) -> bool:
        """Whether the primary is elsewhere now."""
        if self._epoch is None or (epoch := self._whereabouts.epoch) == self._epoch:
            return False
        if self._whereabouts.is_at(self.host, self.port):
            self._epoch = epoch
            return False
        return True

    def _leave_if_moved(self) -> None:
        if self._sock and self._is_open and self.has_moved():  # not in the middle of the greeting, which it would begin
            self.disconnect()

    def verify(self) -> None:
        """After the greeting: a sentinel may be behind, and a server that was started again is a replica by now."""
        self.send_command("ROLE")  # type: ignore[attr-defined]
        try:
            role = super().read_response()[0].decode()  # type: ignore[misc]
        except redis.ResponseError:  # we may not ask (ACL): a replica is noticed by the first write
            return
        if role != "master":
            raise redis.ConnectionError(f"{self.host}:{self.port} is a {role}, not the primary: no failover yet?")

    def sever(self) -> None:
        """Shut the socket down; may be called by other threads, and by a signal's handler."""
        if connected := self._sock:
            self._is_severed = True
            with suppress(OSError):
                self._shut_down(connected)

    @staticmethod
    def _shut_down(connected: Any) -> None:
        connected.shutdown(socket.SHUT_RDWR)


class PlainToPrimary(_ToPrimary, redis.Connection):
    """Without TLS."""


class SecuredToPrimary(_ToPrimary, redis.SSLConnection):
    """By TLS."""

    @staticmethod
    def _shut_down(connected: Any) -> None:
        # As a socket without TLS: its own method drops the TLS, and a reply that has come is read as it is, encrypted.
        plain: Any = super(type(connected), connected)
        plain.shutdown(socket.SHUT_RDWR)


def _greet(greeting: Callable[[Any], None] | None, connection: Any) -> None:
    if greeting:
        greeting(connection)
    else:
        connection.on_connect()
    connection.verify()
