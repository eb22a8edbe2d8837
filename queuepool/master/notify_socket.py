"""The socket by which a service manager (systemd) learns how its service is, and the variables that name it.

Source: sd_notify(3) and sd_watchdog_enabled(3).
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import MutableMapping

_SOCKET, _PID, _USEC = "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"
#: most bytes of a socket's address, and the shortest watchdog in seconds: a master's pass may take a quarter of it
_MAX_ADDRESS, _MIN_WATCHDOG = 107, 1.0
#: the manager has not read what is there: it will, and the next message says more
_FULL = (errno.EAGAIN, errno.ENOBUFS)
_log = logging.getLogger("queuepool")


class NotifySocket:
    """Sends datagrams and waits for nothing. A problem is logged once; later messages are tried all the same.

    ``address`` is a path, or ``@`` and an abstract name; empty = no service manager wants to know.
    ``watchdog``: seconds within which it wants to be pinged; 0.0 = it does not.
    """

    def __init__(self, address: str = "", watchdog: float = 0.0) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog = watchdog
        self._has_warned = False

    @classmethod
    def taken_from(cls, environ: MutableMapping[str, str]) -> NotifySocket:
        """The one that these variables name. They are removed, as programs that a job starts must not speak for us."""
        address, pid, usec = (environ.pop(name, "") for name in (_SOCKET, _PID, _USEC))
        if not address:
            return cls()
        if problem := _problem_of(address):
            _log.warning("%s=%s is ignored: %s", _SOCKET, address[:_MAX_ADDRESS], problem)
            return cls()
        return cls(address, _watchdog(usec) if usec and pid in ("", str(os.getpid())) else 0.0)

    def __bool__(self) -> bool:
        return bool(self._address)

    def send(self, lines: list[str]) -> bool:
        """Send one message; returns whether it arrived."""
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as sender:
                sender.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except OSError as error:
            if error.errno not in _FULL:
                self._warn(error)
            return False
        return True

    def _warn(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            shown = self._address.replace("\0", "@")
            _log.warning("the service manager cannot be notified at %s: %s", shown, error.strerror)


def _problem_of(address: str) -> str:
    """Why nothing can be sent there; empty if it may work."""
    if address[0] not in "/@" or len(address) == 1:
        return "it is neither a path from the root nor an abstract name"
    return "it is too long" if len(os.fsencode(address)) > _MAX_ADDRESS else ""


def _watchdog(usec: str) -> float:
    """Seconds; 0.0 for a time that cannot be kept."""
    seconds = int(usec) / 1e6 if usec.isascii() and usec.isdecimal() and len(usec) < 20 else 0.0
    if seconds < _MIN_WATCHDOG:
        _log.warning("%s=%s is ignored: it is no time of at least %g s", _USEC, usec[:20], _MIN_WATCHDOG)
        return 0.0
    return seconds
