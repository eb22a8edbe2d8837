"""Two hosts whose network may be divided; a test reaches both of them at any time."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from tests.chaos.hosts import Host, enter
from tests.support.places import Place

_OWN = Path("/proc/thread-self/ns/net")


class Network:
    """What one host sends to the other goes through a third one, which may swallow it without a word."""

    def __init__(self, between: Host, *hosts: Host) -> None:
        self._between = between
        self.hosts = hosts
        self.places = [self._connect(number, host) for number, host in enumerate(hosts)]
        self.join()

    def divide(self) -> None:
        self._forward(0)

    def join(self) -> None:
        self._forward(1)

    def _forward(self, whether: int) -> None:
        word = f"echo {whether} > /proc/sys/net/ipv4/ip_forward"
        subprocess.run([*self._between.preface, "sh", "-c", word], check=True)

    def _connect(self, number: int, host: Host) -> Place:
        near, far, name = f"10.79.{number}.1", f"10.79.{number}.2", f"side{number}"
        self._between.ip("link", "add", name, "type", "veth", "peer", "name", "net", "netns", str(host.pid))
        self._between.ip("address", "add", f"{near}/24", "dev", name)
        self._between.ip("link", "set", name, "up")
        host.ip("address", "add", f"{far}/24", "dev", "net")
        host.ip("link", "set", "net", "up")
        host.ip("route", "add", "default", "via", near)
        return Place(host.preface, far)


@contextmanager
def network() -> Iterator[Network]:
    """This thread reaches both hosts; so do those that it starts."""
    with ExitStack() as stack:
        between, *hosts = (stack.enter_context(closing(Host())) for _ in range(3))
        found = Network(between, *hosts)
        own = stack.enter_context(_OWN.open())
        stack.callback(enter, Path(f"/proc/self/fd/{own.fileno()}"))
        between.enter()
        yield found
