"""A private Redis Cluster of real nodes, which a test may break: three masters, each with a replica if asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from queuepool.config.connections import tag_of
from queuepool.config.settings import ConnectionSettings
from queuepool.stores.redis.cluster import SLOTS, slot_of
from tests.support.eventually import eventually
from tests.support.places import HERE, Place
from tests.support.redis_server import free_port, redis_binary

#: what all keys on a cluster begin with, and the slot that this puts them into
TAGGED = "{app}:"
SLOT = slot_of(tag_of(TAGGED))
#: seconds after which the others take a silent node for lost, which one on a crowded machine may seem
_TAKES, SOON = 60, 5
_MASTERS = 3


def on_cluster(url: str) -> ConnectionSettings:
    return ConnectionSettings(url=url, prefix=TAGGED, restart_key=f"{TAGGED}illuminate:queue:restart")


def spread_on_cluster(url: str) -> ConnectionSettings:
    """Each queue in the slot of its own name, as Laravel has it."""
    return ConnectionSettings(url=url, restart_key="{queuepool}:illuminate:queue:restart")


class Node:
    """One process, on a port of its own."""

    def __init__(self, folder: Path, binary: str, lost_after: int, place: Place = HERE) -> None:
        self.folder, self._lost_after = folder, lost_after
        self._preface, self.address = place
        self.port, self.bus = free_port(), free_port()
        folder.mkdir(parents=True)
        self._program = folder / "redis-server"  # what it does depends on its name
        self._program.symlink_to(binary)

    def start(self) -> None:
        ports = ["--bind", self.address, "--port", str(self.port), "--cluster-port", str(self.bus)]
        place = [*ports, "--protected-mode", "no", "--dir", str(self.folder), "--save", ""]
        lost_after = ["--cluster-node-timeout", str(1000 * self._lost_after)]
        how = ["--cluster-enabled", "yes", *lost_after, "--repl-diskless-sync-delay", "0"]
        command = [*self._preface, str(self._program), *place, *how]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.client = redis.Redis(self.address, self.port, retry=Retry(NoBackoff(), 0), socket_timeout=10)
        eventually(self._answers)

    def say(self, *words: object) -> Any:
        # In one word, redis-py would translate the reply.
        return self.client.execute_command(*words)

    @property
    def id(self) -> str:
        return str(self.say("CLUSTER", "MYID").decode())

    def info(self) -> str:
        return str(self.say("CLUSTER", "INFO").decode())

    def kill(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the node has ended"
        with suppress(redis.ConnectionError):
            return bool(self.client.ping())
        return False


class Cluster:
    """Nodes that know each other; all slots are served. ``places``: where each of them runs."""

    def __init__(
        self, folder: Path, *, binary: str = "", replicas: bool = False, lost_after: int = _TAKES,
        places: Sequence[Place] = (HERE,) * 2 * _MASTERS,
    ) -> None:  # fmt: skip
        self._places = places
        self._folder, self._binary, self._lost_after = folder, binary or redis_binary(), lost_after
        self._replicas = _MASTERS if replicas else 0
        self.nodes: list[Node] = []
        #: the one that the test is about
        self.slot = SLOT

    def start(self) -> None:
        for number in range(_MASTERS):
            self._add()
            self.nodes[number].say("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        bounds = [number * SLOTS // _MASTERS for number in range(_MASTERS + 1)]
        for node, (first, end) in zip(self.nodes, pairwise(bounds), strict=True):
            node.say("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
        for _ in range(self._replicas):
            self._add()
        self._introduce()
        for number in range(self._replicas):
            self._replicate(self.nodes[_MASTERS + number], self.nodes[number])

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'{node.address}:{node.port}' for node in self.nodes)}/"

    def owner(self, slot: int | None = None) -> Node:
        """The living node that says of itself that it serves the slot, or the one that the test is about."""
        slot = self.slot if slot is None else slot
        node = eventually(lambda: next((node for node in self.living() if _serves(node, slot)), None))
        assert node
        return node

    @contextmanager
    def lagging(self, master: Node) -> Iterator[None]:
        """What it takes meanwhile reaches no replica, although all else goes on."""
        rights = ("psync", "sync")
        master.say("ACL", "SETUSER", "default", *(f"-{right}" for right in rights))
        master.say("CLIENT", "KILL", "TYPE", "replica")
        try:
            yield
        finally:
            master.say("ACL", "SETUSER", "default", *(f"+{right}" for right in rights))

    def masters(self) -> list[Node]:
        """The living ones that say that they are."""
        return [node for node in self.living() if node.say("ROLE")[0] == b"master"]

    def living(self) -> list[Node]:
        return [node for node in self.nodes if node.process.poll() is None]

    def flush(self) -> None:
        for node in self.nodes[:_MASTERS]:
            node.say("FLUSHALL")

    def move(self) -> Iterator[int]:
        """Move the slot to another master, some keys at a time, and give how many it were; ends when it has moved."""
        slot = self.slot
        # Else two masters may draw the same epoch for two moves in a row, and then each holds the other for the owner.
        eventually(lambda: len({_epoch(node) for node in self.living()}) == 1)
        source = self.owner(slot)
        target = next(node for node in self.living() if node is not source and b"master" in node.say("ROLE"))
        target.say("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.say("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        while keys := source.say("CLUSTER", "GETKEYSINSLOT", slot, 1):
            source.say("MIGRATE", target.address, target.port, "", 0, 5000, "KEYS", *keys)
            yield len(keys)
        for node in (target, source, *(one for one in self.living() if one not in (target, source))):
            with suppress(redis.ResponseError):  # a replica may not be told
                node.say("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        # What a node has heard of others meanwhile may be older than what it was told.
        eventually(lambda: {target.port} == {_port_of_owner(node, slot) for node in self.living()})

    def replica_of(self, master: Node) -> Node:
        def follows(node: Node) -> bool:
            role, *facts = node.say("ROLE")
            return bool(role == b"slave" and facts[1] == master.port)

        return next(node for node in self.living() if follows(node))

    def close(self) -> None:
        for node in self.nodes:
            node.kill()

    def _add(self) -> None:
        number = len(self.nodes)
        self.nodes.append(Node(self._folder / str(number), self._binary, self._lost_after, self._places[number]))
        self.nodes[-1].start()

    def _introduce(self) -> None:
        for node in self.nodes[1:]:
            self.nodes[0].say("CLUSTER", "MEET", node.address, node.port, node.bus)
        eventually(lambda: all(map(self._is_whole, self.nodes)))

    def _is_whole(self, node: Node) -> bool:
        info = node.info()
        return "cluster_state:ok" in info and f"cluster_known_nodes:{len(self.nodes)}" in info

    def _replicate(self, replica: Node, master: Node) -> None:
        replica.say("CLUSTER", "REPLICATE", master.id)
        eventually(lambda: replica.client.info("replication").get("master_link_status") == "up")
        eventually(lambda: all(node.say("CLUSTER", "REPLICAS", master.id) for node in self.nodes))


def _serves(node: Node, slot: int) -> bool:
    """Whether it says so of itself."""
    return _port_of_owner(node, slot) == node.port


def _epoch(node: Node) -> str:
    return next(line for line in node.info().splitlines() if line.startswith("cluster_current_epoch:"))


def _port_of_owner(node: Node, slot: int) -> int | None:
    """As this node knows it."""
    shards = node.say("CLUSTER", "SLOTS")
    return next((int(owner[1]) for first, last, owner, *_ in shards if first <= slot <= last), None)


@contextmanager
def running(folder: Path, **how: Any) -> Iterator[Cluster]:
    cluster = Cluster(folder, **how)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
