"""One network for the store's host and all others: a switch, each of whose ports can fail."""

from __future__ import annotations

from tests.chaos.hosts import Host

#: of the store, and of the network
ADDRESS, _NETWORK = "10.78.0.1", 16
#: hosts that one part of the network's addresses has room for
_ROOM = 250


class Switch:
    """Stands at the store's host."""

    def __init__(self) -> None:
        self.store = Host()
        self._ports = 0
        self.store.ip("link", "add", "switch", "type", "bridge")
        self.store.ip("address", "add", f"{ADDRESS}/{_NETWORK}", "dev", "switch")
        self.store.ip("link", "set", "switch", "up")

    def connect(self, host: Host) -> Port:
        """A cable from this host to a port that nobody has had before."""
        self._ports += 1
        high, low = divmod(self._ports, _ROOM)
        return Port(self.store, host, f"port{self._ports}", f"10.78.{high + 1}.{low + 1}")


class Port:
    """Where one host is connected. Its faults show to nobody: packets are swallowed, and no error comes."""

    def __init__(self, store: Host, host: Host, name: str, address: str) -> None:
        self._store, self._name, self._address = store, name, address
        store.ip("link", "add", name, "type", "veth", "peer", "name", "store", "netns", str(host.pid))
        host.ip("address", "add", f"{address}/{_NETWORK}", "dev", "store")
        host.ip("link", "set", "store", "up")
        store.ip("link", "set", name, "master", "switch", "up")
        self._is_cut = self._is_deaf = False

    def cut(self) -> None:
        """Nothing gets through."""
        self._store.ip("link", "set", self._name, "nomaster")
        self._is_cut = True

    def deafen(self) -> None:
        """Its requests reach the store, and the replies are lost."""
        self._store.ip("route", "add", "blackhole", self._address)
        self._is_deaf = True

    def heal(self) -> None:
        if self._is_cut:
            self._store.ip("link", "set", self._name, "master", "switch")
        if self._is_deaf:
            self._store.ip("route", "del", "blackhole", self._address)
        self._is_cut = self._is_deaf = False
