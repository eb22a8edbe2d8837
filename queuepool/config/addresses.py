"""The address that a pool's web process listens on: an IP address with a port, or the path of a Unix socket."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from queuepool.config import values

#: bytes that the kernel takes as the path of a Unix socket
_MAX_PATH = 107
_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class Address:
    """``path`` of a Unix socket, or else ``host`` and ``port``."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_private(self) -> bool:
        """Whether only this host can connect."""
        return bool(self.path) or ip_address(self.host).is_loopback

    @property
    def is_v6(self) -> bool:
        return ":" in self.host


def listen(raw: str) -> str:
    """The checked text of an address; may be empty. Raises ``ValueError``."""
    if raw:
        address_of(values.text(raw))
    return raw


def address_of(raw: str) -> Address:
    """The address that the text means. Raises ``ValueError``."""
    if raw.startswith(_UNIX):
        return Address(path=_path(raw.removeprefix(_UNIX)))
    host, _, port = raw.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise ValueError(f"{values.shown(raw)} has no port from 1 to 65535: write 127.0.0.1:9465 or unix:/PATH")
    is_bracketed = host.startswith("[") and host.endswith("]")
    try:
        found = ip_address(host[1:-1] if is_bracketed else host)
    except ValueError:
        found = None
    if found is None or (found.version == 6) != is_bracketed:
        raise ValueError(f"{values.shown(raw)} has no IP address: write 127.0.0.1:9465, [::1]:9465 or unix:/PATH")
    return Address(str(found), int(port))


def _path(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{values.shown(path)} is no absolute path of a Unix socket")
    if len(path.encode()) > _MAX_PATH:
        raise ValueError(
            f"{values.shown(path)} is longer than the {_MAX_PATH} bytes that a Unix socket's path may have"
        )
    return path
