"""A network that delivers a request after its socket was closed, as TCP's retransmission does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path


class LateProxy:
    """Relays requests and replies on a unix socket, with a thread for each direction of each connection."""

    def __init__(self, server: str, folder: Path) -> None:
        self.path = str(folder / "late.sock")
        self._server = server
        self._wanted: list[bytes] = []
        self._lock = threading.Lock()
        self._held: list[tuple[socket.socket, bytes]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()

    def __enter__(self) -> LateProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for server, _ in self._held:
            server.close()

    def hold_the_next(self, *words: bytes) -> None:
        """Hold the next request with the first words, after it the next with the second, and so on.

        The client's connection is closed, the server has not received the request. All are named in one call because
        the second request can follow the first at once.
        """
        self._wanted = list(words)

    @property
    def held(self) -> int:
        """How many requests are held."""
        return len(self._held)

    def deliver(self) -> bytes:
        """Deliver what was held to the server; returns the reply, which no client reads."""
        server, request = self._held.pop()
        with server:
            server.sendall(request)
            return server.recv(1 << 20)

    def _accept(self) -> None:
        with suppress(OSError):  # closed: the test is over
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        answers = threading.Thread(target=self._answers, args=(server, client), daemon=True)
        answers.start()
        while request := _received(client):
            if self._is_wanted(request):
                late = socket.socket(socket.AF_UNIX)
                late.connect(self._server)
                self._held.append((late, request))
                break
            server.sendall(request)
        client.close()
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        answers.join()
        server.close()

    def _is_wanted(self, request: bytes) -> bool:
        with self._lock:
            if not self._wanted or self._wanted[0] not in request:
                return False
            del self._wanted[0]
            return True

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(1 << 20):
                client.sendall(answer)
            client.shutdown(socket.SHUT_RDWR)


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(1 << 20)
    except OSError:
        return b""
