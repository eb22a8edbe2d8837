"""Hosts with their own network: namespaces, each of which the kernel removes with the process that holds it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

_CLONE_NEWNET = 0x40000000
#: before a host's name and the command that is to run on a host of that name
NAMED = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"']
#: linux/if_tun.h: TUNSETIFF; IFF_TUN | IFF_NO_PI
_TUNSETIFF, _PACKETS = 0x400454CA, 0x1001
#: TCP's states in /proc/net/tcp: closed here, and not yet confirmed by the other side
_CLOSING = {"04", "09", "0B"}


def are_allowed() -> bool:
    """Whether we may make such hosts here."""
    tools = all(map(shutil.which, ("ip", "nsenter", "unshare", "setpriv")))
    try:
        return tools and 0 == os.getuid() and Host().close()
    except (OSError, subprocess.CalledProcessError):
        return False


def enter(network: Path) -> None:
    """Take this thread to the network of that name, and those that it starts."""
    with network.open() as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Host:
    """Nothing reaches it, and it reaches nothing, but over its wires."""

    def __init__(self) -> None:
        holder = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
        self._holder = subprocess.Popen(holder, stdout=subprocess.PIPE)
        assert self._holder.stdout
        if not self._holder.stdout.readline():
            raise OSError("no network namespace")
        #: what a command is preceded by that is to run there
        self.preface = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]
        self.ip("link", "set", "lo", "up")

    def close(self) -> bool:
        self._holder.kill()
        self._holder.communicate()
        return True

    def attach(self, name: str, address: str, peer: str) -> int:
        """A new device for the end of a wire."""
        device = self._device(name)
        self.ip("address", "add", address, "peer", peer, "dev", name)
        self.ip("link", "set", name, "up")
        return device

    def has_something_to_say(self) -> bool:
        """Whether a socket was closed here while the other side had not yet confirmed all that it had sent."""
        rows = Path(f"/proc/{self._holder.pid}/net/tcp").read_text().splitlines()[1:]
        return any(row.split()[3] in _CLOSING for row in rows)

    @property
    def pid(self) -> int:
        return self._holder.pid

    def processes(self) -> list[int]:
        """All that run there, but for its holder."""
        place = Path(f"/proc/{self.pid}/ns/net").stat().st_ino
        found = list[int]()
        for one in Path("/proc").glob("[0-9]*/ns/net"):
            pid = int(one.parts[2])
            with suppress(OSError):  # gone meanwhile
                found += [pid] if pid != self.pid and one.stat().st_ino == place else []
        return found

    def enter(self) -> None:
        """Take this thread there, and those that it starts."""
        enter(Path(f"/proc/{self.pid}/ns/net"))

    def ip(self, *words: str) -> None:
        """A change of its network."""
        subprocess.run([*self.preface, "ip", *words], check=True)

    def _device(self, name: str) -> int:
        """A thread has a network of its own for as long as it lives."""
        opened: list[int | OSError] = []
        thread = threading.Thread(target=lambda: opened.append(self._open_there(name)))
        thread.start()
        thread.join()
        if isinstance(opened[0], OSError):
            raise opened[0]
        return opened[0]

    def _open_there(self, name: str) -> int | OSError:
        try:
            self.enter()
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _PACKETS))
        except OSError as error:
            return error
        return device
