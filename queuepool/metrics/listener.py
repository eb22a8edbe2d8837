"""The socket that a pool's web process listens on."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress

from queuepool.config.values import Address

#: connections that the kernel keeps until they are accepted
_BACKLOG = 128
#: of a Unix socket: its owner and group may connect
_MODE = 0o660
#: its device and inode
File = tuple[int, int] | None


def bound(address: Address) -> socket.socket:
    """A socket that listens there. Raises ``OSError``, also when another process listens there."""
    found = _unix(address.path) if address.path else _tcp(address)
    found.listen(_BACKLOG)
    return found


def problem_of(address: Address) -> str:
    """Why nothing can listen there, in words; empty if it can. Leaves nothing behind."""
    try:
        bound(address).close()
    except OSError as error:
        return error.strerror or str(error)
    leave(address, file_of(address))
    return ""


def file_of(address: Address) -> File:
    """What is at a Unix socket's path: another file if someone has replaced it, ``None`` if it was removed."""
    with suppress(OSError):
        found = os.lstat(address.path)
        return found.st_dev, found.st_ino
    return None


def leave(address: Address, own: File) -> None:
    """Remove a Unix socket's path, if that is still our own file."""
    if own and file_of(address) == own:
        with suppress(OSError):  # another process has just removed it
            os.unlink(address.path)


def _tcp(address: Address) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if address.is_v6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of a pool that has just ended do not occupy the port; a process that listens does.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.is_v6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind((address.host, address.port))
    except OSError:
        found.close()
        raise
    return found


def _unix(path: str) -> socket.socket:
    _remove_abandoned(path)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(path)
        os.chmod(path, _MODE)
    except OSError:
        found.close()
        raise
    return found


def _remove_abandoned(path: str) -> None:
    """Remove the path of a socket on which no process listens any more; leave anything else. Never waits."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return  # the bind fails, and says so
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)  # a process that accepts nothing listens, too
        try:
            caller.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except BlockingIOError:
            return  # the bind fails, and says so
