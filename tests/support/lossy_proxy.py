"""A network that may lose a reply: a relay in front of the server, for one connection at a time."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from pathlib import Path


class LossyProxy:
    """Relays everything, until it is to lose a reply after the server has acted."""

    def __init__(self, server: str, folder: Path) -> None:
        self.path = str(folder / "proxy.sock")
        self._server = server
        #: what the request contains whose reply is to be lost; in one word, as requests come meanwhile
        self._wanted: bytes | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> LossyProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def lose_the_next_reply(self, to: bytes = b"") -> None:
        """Lose the reply to the next request that contains these bytes."""
        self._wanted = to

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed: the test is over
            with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):  # the client has left meanwhile
                server.connect(self._server)
                self._relay(client, server)

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        """In both directions: a request may have several replies, and the last of them may come only after a while."""
        while True:
            ready, _, _ = select.select([client, server], [], [])
            if server in ready:
                client.sendall(_some(server))
            else:
                request = _some(client)
                server.sendall(request)
                if self._wanted is not None and self._wanted in request:
                    self._wanted = None
                    server.recv(1 << 20)  # received here alone: it was carried out
                    return


def _some(end: socket.socket) -> bytes:
    """What has come. Raises ``OSError`` at the end."""
    if came := end.recv(1 << 20):
        return came
    raise ConnectionError("closed")
