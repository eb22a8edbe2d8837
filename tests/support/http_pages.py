"""Read pages of a pool's web process."""

from __future__ import annotations

import socket
from http.client import HTTPConnection
from typing import Any

from tests.support.redis_server import free_port


class Pages:
    """The web process at a free port, or at a Unix socket."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._port = 0 if path else free_port()

    @property
    def address(self) -> str:
        return f"unix:{self._path}" if self._path else f"127.0.0.1:{self._port}"

    def get(self, page: str) -> tuple[int, str]:
        """Its status and its text. Raises ``OSError``."""
        connection = _UnixConnection(self._path) if self._path else HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("GET", page)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def status(self, page: str) -> int:
        """Its status; 0 while nothing answers."""
        try:
            return self.get(page)[0]
        except OSError:
            return 0

    def value(self, sample: str) -> float | None:
        """The value of the metric's sample with these labels, in any order; ``None`` without it, or an answer."""
        try:
            text = self.get("/metrics")[1]
        except OSError:  # a pool is ready before its web process listens
            return None
        lines = (line.rpartition(" ") for line in text.splitlines())
        return next((float(value) for found, _, value in lines if _parts(found) == _parts(sample)), None)


def _parts(sample: str) -> tuple[str, frozenset[str]]:
    name, _, labels = sample.rstrip("}").partition("{")
    return name, frozenset(labels.split(","))


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock: Any = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
