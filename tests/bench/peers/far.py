"""A server far away: ``python -m tests.bench.peers.far SOCKET PORT FOLDER SECONDS``, a relay that delays replies.

Each reply arrives so many seconds later, however many are on their way. It listens on a port, and on a socket too.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue

_CHUNK = 1 << 16


def main(server: str, port: str, near: str, delay: str) -> None:
    for family, place in ((socket.AF_INET, ("127.0.0.1", int(port))), (socket.AF_UNIX, near)):
        listener = socket.socket(family)
        listener.bind(place)
        listener.listen(128)
        threading.Thread(target=_accept, args=(listener, server, float(delay))).start()


def _accept(listener: socket.socket, server: str, delay: float) -> None:
    while True:
        near, _ = listener.accept()
        if near.family == socket.AF_INET:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far = socket.socket(socket.AF_UNIX)
        far.connect(server)
        threading.Thread(target=_there, args=(near, far), daemon=True).start()
        line: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        threading.Thread(target=_listen, args=(far, line, delay), daemon=True).start()
        threading.Thread(target=_back, args=(near, line), daemon=True).start()


def _there(near: socket.socket, far: socket.socket) -> None:
    with suppress(OSError):
        while data := near.recv(_CHUNK):
            far.sendall(data)
    with suppress(OSError):
        far.shutdown(socket.SHUT_RDWR)


def _listen(far: socket.socket, line: SimpleQueue[tuple[float, bytes]], delay: float) -> None:
    data = b"-"
    while data:
        try:
            data = far.recv(_CHUNK)
        except OSError:
            data = b""
        line.put((time.monotonic() + delay, data))


def _back(near: socket.socket, line: SimpleQueue[tuple[float, bytes]]) -> None:
    with near, suppress(OSError):
        while (reply := line.get())[1]:
            time.sleep(max(0.0, reply[0] - time.monotonic()))
            near.sendall(reply[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
