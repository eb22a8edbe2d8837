"""A service manager, as far as a service sees it: it gives the variables and receives the datagrams."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: a shell that becomes the command that follows, with its own pid in WATCHDOG_PID as systemd gives it
EXEC = 'WATCHDOG_PID=$$ exec "$@"'


@dataclass(frozen=True)
class Message:
    """One datagram, and the monotonic time at which it was read."""

    at: float
    lines: tuple[str, ...]

    def value(self, name: str) -> str | None:
        """What follows ``NAME=``; ``None`` if no line begins so."""
        return next((line.partition("=")[2] for line in self.lines if line.startswith(f"{name}=")), None)


@dataclass
class ServiceManager:
    """``watchdog``: seconds; 0 = none. Read often, as the times are those of reading."""

    address: str
    listener: socket.socket
    watchdog: float = 0.0
    messages: list[Message] = field(default_factory=list)

    def read(self) -> list[Message]:
        """All messages so far."""
        while True:
            try:
                raw = self.listener.recv(65536)
            except BlockingIOError:
                return self.messages
            self.messages.append(Message(time.monotonic(), tuple(raw.decode().splitlines())))

    def having(self, pattern: str) -> list[Message]:
        """The messages with a line that matches."""
        return [message for message in self.read() if any(re.fullmatch(pattern, line) for line in message.lines)]

    def phases(self) -> list[str]:
        """What the service said of its state, in order."""
        names = ("READY=1", "RELOADING=1", "STOPPING=1")
        return [line.partition("=")[0] for message in self.read() for line in message.lines if line in names]

    def variables(self, **more: str) -> dict[str, str]:
        """What it gives to a service, without WATCHDOG_PID, which only a command that becomes the pool can know."""
        usec = {"WATCHDOG_USEC": str(int(self.watchdog * 1e6))} if self.watchdog else {}
        return {"NOTIFY_SOCKET": self.address, **usec, **more}

    def parent(self) -> Sequence[str]:
        """The command that prepares the environment and then becomes the pool."""
        return ["env", *(f"{name}={value}" for name, value in self.variables().items()), "sh", "-c", EXEC, "sh"]


@contextmanager
def service_manager(address: Path | str, watchdog: float = 0.0) -> Iterator[ServiceManager]:
    """One that listens at this path, or, with ``@``, at this abstract name."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{str(address)[1:]}" if str(address).startswith("@") else str(address))
        listener.setblocking(False)
        yield ServiceManager(str(address), listener, watchdog)
