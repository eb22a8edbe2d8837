"""Connections of one process's threads to the nodes of a cluster, shared by the clients of many slots.

A producer may push to a thousand hash tags: with connections for each of them, it and the nodes would run out of files.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

#: most idle connections to one node that are kept
_KEPT = 64
#: host, port
Node = tuple[str, int]
#: first slot, last slot, and their owner
Range = tuple[int, int, Node]


class Owner(Protocol):
    """What has to be known of one slot."""

    slot: int
    last: Node | None

    def moved_to(self, node: Node) -> None:
        """Connect there next."""


class Nodes:
    """The owners of the slots, as nodes have told them last, and the idle connections."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._ranges: Sequence[Range] = ()
        #: slots of which a node has told since
        self._moved: dict[int, Node] = {}
        self._free = defaultdict[Node, list[Any]](list)

    def told(self, ranges: Sequence[Range]) -> None:
        """A node has told the owners of all slots."""
        self._ranges, self._moved = ranges, {}

    def moved(self, slot: int, node: Node) -> None:
        """A node has told the owner of this slot."""
        self._moved[slot] = node

    def take(self, owner: Owner) -> Any:
        """A free connection of redis-py's to the owner of this slot; ``None`` if there is none.

        A new one for a slot that was not used before then goes where the others of its range are, without a question.
        """
        self._begin_in_a_fork()
        node = self._owner_of(owner.slot)
        if at := node or owner.last:
            with suppress(IndexError):
                found, owner.last = self._free[at].pop(), at
                return found
        if node and not owner.last:
            owner.moved_to(node)
        return None

    def give(self, connection: Any) -> None:
        """Take it back, for anybody; it is open."""
        free = self._free[connection.host, connection.port]
        if len(free) < _KEPT:
            free.append(connection)
        else:
            connection.disconnect()

    def failed(self, node: Node) -> None:
        """It does not answer: others have to be asked what it owned."""
        self._ranges = [one for one in self._ranges if one[2] != node]
        self._moved = {slot: owner for slot, owner in self._moved.items() if owner != node}

    def close(self) -> None:
        """Close the connections that are free."""
        self._begin_in_a_fork()
        for free in self._free.values():
            while free:
                free.pop().disconnect()

    def _owner_of(self, slot: int) -> Node | None:
        if slot in self._moved:
            return self._moved[slot]
        return next((node for first, last, node in self._ranges if first <= slot <= last), None)

    def _begin_in_a_fork(self) -> None:
        if self._pid != os.getpid():  # its parent uses those
            self._pid = os.getpid()
            self._free.clear()
