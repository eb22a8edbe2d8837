"""A bad network: a relay on a unix socket in front of the server, with a thread per direction of each connection."""

from __future__ import annotations

import random
import select
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

#: seconds between checks whether the network is well again
_MOMENT = 0.01
#: a connection's first requests, which log in: if faults hit them too, few connections would get any further
_OPENING = 4
#: seconds that a server gets to carry out what was delivered after its client had gone
_CARRIED_OUT = 0.5


class Proxy:
    """Relays everything, except what it is set to delay, drop, swallow or deliver late."""

    def __init__(self, server: str, path: Path) -> None:
        self.path = str(path)
        self.dropped = 0
        self.server = server
        self.chance = random.Random(0)
        #: connections whose client has given up, but whose last request will still reach the server
        self.on_its_way: set[Connection] = set()
        self._open: set[Connection] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self.heal()

    def heal(self) -> None:
        """Make the network good from now on."""
        #: seconds by which each reply is delayed; the share of replies after which the line is cut instead; whether
        #: nothing gets through in either direction, without an error
        self.delay, self.drop, self.silent = 0.0, 0.0, False
        #: the share of requests with which a connection goes silent by itself; seconds after its client has closed it
        #: until the server gets what had been sent
        self.strikes, self.late = 0.0, (0.5, 6.0)

    def start(self) -> None:
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self.heal()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Cut every connection, in the middle of whatever it sends."""
        for connection in list(self._open):
            connection.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        """Relay one connection until either side closes it."""
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self.server)
            connection = Connection(self, client, server)
            self._open.add(connection)
            try:
                connection.relay()
            finally:
                self._open.discard(connection)


class Connection:
    """A client's connection and the matching one to the server."""

    def __init__(self, network: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._network = network
        self._client = client
        self._server = server
        self._is_struck = self._is_left = False
        self._requested = 0

    def relay(self) -> None:
        replies = threading.Thread(target=self._replies, daemon=True)
        replies.start()
        with suppress(OSError):
            self._requests()
        self.cut()
        replies.join()

    def cut(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    @property
    def _is_silent(self) -> bool:
        return self._network.silent or (self._is_struck and self._network.strikes > 0)

    def _requests(self) -> None:
        while data := self._client.recv(1 << 16):
            self._strike()
            data = self._held(data)
            if self._is_left:
                self._deliver_late(data)
                return
            self._server.sendall(data)

    def _strike(self) -> None:
        self._requested += 1
        if self._requested > _OPENING and self._network.chance.random() < self._network.strikes:
            self._is_struck = True

    def _held(self, data: bytes) -> bytes:
        """With all that the client says until the network is well again, or it has given up."""
        while self._is_silent:
            if select.select([self._client], [], [], _MOMENT)[0]:
                more = self._client.recv(1 << 16)
                if not more:
                    self._is_left = True
                    return data
                data += more
        return data

    def _deliver_late(self, data: bytes) -> None:
        """As TCP does, which sends again what was not confirmed, also after its socket was closed."""
        self._network.on_its_way.add(self)
        try:
            while self._network.silent:
                time.sleep(_MOMENT)
            time.sleep(self._network.chance.uniform(*self._network.late))
            self._server.sendall(data)
            time.sleep(_CARRIED_OUT)
        finally:
            self._network.on_its_way.discard(self)

    def _replies(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                while self._is_silent and not self._is_left:
                    time.sleep(_MOMENT)
                if self._is_left:
                    continue  # no client is left to read it
                if not self._passes():
                    break
                self._client.sendall(data)
        if not self._is_left:
            self.cut()

    def _passes(self) -> bool:
        network = self._network
        if network.delay:
            time.sleep(network.chance.uniform(0, network.delay))
        if network.chance.random() >= network.drop:
            return True
        network.dropped += 1
        return False
