"""A bad network: a relay on a unix socket in front of the server, a thread for each direction of each connection."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path


class Proxy:
    """Passes everything on, but for what it has been told to delay, to drop, or to swallow."""

    def __init__(self, server: str, path: Path) -> None:
        self.path = str(path)
        self.dropped = 0
        self._server = server
        self._chance = random.Random(0)
        self._open: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self.heal()

    def heal(self) -> None:
        """A good network from now on."""
        #: seconds that each reply takes longer; the share of replies after which the line is cut instead; whether
        #: nothing gets through, in either direction, and nobody is told
        self.delay, self.drop, self.silent = 0.0, 0.0, False

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
        """Every connection, in the middle of whatever it is saying."""
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        """One connection, for as long as both sides want it."""
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            self._open |= {client, server}
            replies = threading.Thread(target=self._relay, args=(server, client, True), daemon=True)
            replies.start()
            self._relay(client, server, False)
            replies.join()
            self._open -= {client, server}

    def _relay(self, source: socket.socket, target: socket.socket, is_reply: bool) -> None:
        with suppress(OSError):
            while (data := source.recv(1 << 16)) and self._passes(is_reply):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _passes(self, is_reply: bool) -> bool:
        while self.silent:
            time.sleep(0.01)
        if not is_reply:
            return True
        if self.delay:
            time.sleep(self._chance.uniform(0, self.delay))
        if self._chance.random() >= self.drop:
            return True
        self.dropped += 1
        return False
