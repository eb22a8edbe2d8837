"""Records the moment of each worker's death: ``python -m tests.chaos.watcher``, a process of its own for precision."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

from tests.chaos.own_ledger import LEDGER


class Watcher:
    """Workers announce themselves on a socket; the kernel reports when one is gone."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._pids: dict[int, int] = {}

    def run(self) -> None:
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._socket.fileno():
                    self._welcome(int(self._socket.recv(32)))
                else:
                    self._bury(fd)

    def _welcome(self, pid: int) -> None:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            LEDGER.write("death", pid=pid)
            return
        self._pids[fd] = pid
        self._poll.register(fd, select.POLLIN)

    def _bury(self, fd: int) -> None:
        LEDGER.write("death", pid=self._pids.pop(fd))
        self._poll.unregister(fd)
        os.close(fd)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Watcher(sys.argv[1]).run()
