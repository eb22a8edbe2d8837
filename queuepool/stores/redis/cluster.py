"""The client of a Redis Cluster, all of whose keys are in one slot, by the hash tag in their prefix.

It speaks to the node that owns the slot, as to a server of its own, and finds it again whenever it connects. What a
node may refuse, and what follows:

- MOVED: nothing was done. The command is sent again, to the node that it names.
- ASK, TRYAGAIN: the slot is being moved, key by key. Nothing was done; the command is sent again until it is at one
  place, or until the time for a reply is over. No command follows an ASK: our scripts use keys that they compute
  (flows, limits), and would find some at one node and miss the others.
- CLUSTERDOWN, READONLY, MASTERDOWN: nothing was done; the store is away (``StoreDown``), and the next call asks the
  nodes for the owner.
- a lost connection: what was sent may have been done, as with any server. It is never sent again.
- A wait for jobs (BLPOP) that is refused has ended: whoever waited looks.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, ClassVar

import redis
from redis.exceptions import AskError, ClusterDownError, MovedError, ReadOnlyError, TryAgainError

from queuepool.config.connections import NO_TAG, tag_of
from queuepool.config.urls import nodes_of, of_one_node
from queuepool.errors import ConfigError, StoreUnfit
from queuepool.stores.redis.client import PAGE, RedisClient
from queuepool.stores.redis.connections import ConnectionPool, LentConnections, PendingReplies, PendingReply
from queuepool.stores.redis.nodes import Node, Nodes
from queuepool.stores.redis.scripts import script
from queuepool.stores.redis.wire import Keys
from queuepool.unix.originals import sleep

SLOTS = 16384
#: seconds that a node has to name the owners of slots; another is asked then
_NAMES = 0.5
#: seconds between two tries while a slot is moved: the first, and the most
_PAUSE, _PAUSES = 0.01, 0.1
#: how a script's first line fails while its slot is moved
_BEING_MOVED = re.compile(r"user_script: ?1\b.*non local key|non local key.*user_script: ?1\b")
#: what a node says when it knows of no other
_ALONE = "cluster support disabled"


class SlotOwner:
    """Finds the owner of a slot; the connections of a client share it."""

    def __init__(self, slot: int, nodes: Sequence[Node]) -> None:
        self.slot = slot
        self._given = nodes
        #: whom to ask, in this order: whoever was asked last comes last, as it may be cut off from the others
        self._nodes = list(nodes)
        self._told: Node | None = None
        #: the node that was found last
        self.last: Node | None = None
        #: to tell others what is found
        self.nodes: Nodes | None = None
        #: how often another node became the owner
        self.changes = 0
        #: whether the last one, when it was asked last, could not be reached or did not answer in time
        self.is_silent = False

    def find(self, ask: Callable[[Node], Any], within: float) -> Node:
        """The node to connect to; ``ask`` sends CLUSTER SLOTS to a node. Raises redis-py's exceptions.

        After ``within`` seconds, no further node is asked: the next call goes on with those.
        """
        told, self._told = self._told, None
        return self._noted(told or self._asked(ask, time.monotonic() + within))

    def moved_to(self, node: Node) -> None:
        """A node has told who the owner is: connect there next."""
        self._told = self._noted(node)
        if self.nodes:
            self.nodes.moved(self.slot, node)

    def stays(self) -> None:
        """Connect to the same node next, if any was found."""
        self._told = self.last

    def _noted(self, node: Node) -> Node:
        if node != self.last:
            self.last = node
            self.changes += 1
        return node

    def _asked(self, ask: Callable[[Node], Any], ends: float) -> Node:
        problem: redis.RedisError = redis.ConnectionError("no node of the cluster answers")
        for node in [*self._nodes]:
            known: Sequence[Node] = ()
            try:
                shards = ask(node)
                known = [_node(one, node) for _, _, *nodes in shards for one in nodes]
                if self.nodes:
                    self.nodes.told([(first, last, _node(owner, node)) for first, last, owner, *_ in shards])
                return self._owner_in(shards, node)
            except (redis.ConnectionError, redis.TimeoutError) as error:
                if not isinstance(problem, redis.AuthenticationError):  # that of the nodes that answer
                    problem = error
            finally:
                others = dict.fromkeys((*(known or self._nodes), *self._given))
                self._nodes = [*(one for one in others if one != node), node]
            if time.monotonic() >= ends:
                break
        raise problem

    def _owner_in(self, shards: Any, asked: Node) -> Node:
        for first, last, owner, *_ in shards:
            if first <= self.slot <= last:
                return _node(owner, asked)
        raise redis.ConnectionError(f"no node of the cluster serves slot {self.slot}")


def slot_of(tag: str) -> int:
    """The slot of the keys with this hash tag."""
    return binascii.crc_hqx(tag.encode("utf-8", "surrogateescape"), 0) % SLOTS


def _node(words: Sequence[Any], asked: Node) -> Node:
    """A node of the reply; one that does not know its own address is at that which we have asked."""
    host = words[0].decode() if words[0] not in (None, b"", b"?") else asked[0]
    return host, int(words[1])


class _AtOwner:
    """Makes a connection of redis-py's one to the owner of a slot."""

    _plain: ClassVar[Any]

    def __init__(self, *, owner: SlotOwner, **settings: Any) -> None:
        self.owner = owner
        self._settings = settings
        #: the commands under way, and those that are sent next
        self._sent: deque[Sequence[Any]] = deque()
        self._next: Sequence[Sequence[Any]] = ()
        super().__init__(**settings)

    def _connect(self) -> Any:
        self.owner.is_silent = False
        self.host, self.port = self.owner.find(self._slots_at, self._settings["socket_connect_timeout"])
        self.owner.is_silent = True
        connected = super()._connect()  # type: ignore[misc]
        self.owner.is_silent = False
        return connected

    def _slots_at(self, node: Node) -> Any:
        short = min(self._settings["socket_connect_timeout"], _NAMES)
        times = {"socket_connect_timeout": short, "socket_timeout": short}
        settings = {**self._settings, **times, "redis_connect_func": None, "host": node[0], "port": node[1]}
        connection = self._plain(**settings)
        try:
            connection.connect()
            connection.send_command("CLUSTER", "SLOTS")
            return connection.read_response()
        except redis.ResponseError as error:
            if _ALONE in str(error):
                words = "this is not a node of a Redis Cluster: write redis:// for a standalone server"
                raise StoreUnfit(words) from None
            raise
        finally:
            connection.disconnect()

    def send_command(self, *words: Any, **how: Any) -> None:
        self._next = (words,)
        super().send_command(*words, **how)  # type: ignore[misc]

    def pack_commands(self, commands: Sequence[Sequence[Any]]) -> Any:
        self._next = commands
        return super().pack_commands(commands)  # type: ignore[misc]

    def send_packed_command(self, *args: Any, **how: Any) -> None:
        sent, self._next = self._next, ()
        super().send_packed_command(*args, **how)  # type: ignore[misc]  # connects, if need be, by commands of its own
        self._sent.extend(sent)

    def disconnect(self, *args: Any, **how: Any) -> None:
        self._sent.clear()
        super().disconnect(*args, **how)  # type: ignore[misc]

    def read_response(self, *args: Any, **how: Any) -> Any:
        words = self._sent.popleft() if self._sent else ()
        read = partial(super().read_response, *args, **how)  # type: ignore[misc]
        try:
            return read()
        except redis.TimeoutError:
            self.owner.is_silent = True
            raise
        except redis.ResponseError as error:
            refusal = _typed(error)
            if words[:1] == ("BLPOP",) and (_is_by_cluster(refusal) or "UNBLOCKED" in str(refusal)):
                return None
            if not _is_by_cluster(refusal):
                raise
        return self._repeated(words, refusal, read)

    def _repeated(self, words: Sequence[Any], refusal: redis.RedisError, read: Callable[[], Any]) -> Any:
        """Send a command again that was refused, unless others are under way behind it; returns the reply."""
        for pause in _pauses(self._settings["socket_connect_timeout"]):
            behind = list(self._sent)
            if not words or not isinstance(refusal, AskError | TryAgainError) or any(map(_is_other, behind)):
                break
            for _ in behind:  # the WAIT for what the script has not written
                with suppress(redis.ResponseError):
                    read()
            self._sent.clear()
            self._turn(refusal, pause)
            try:
                self.send_packed_command(self.pack_commands([words, *behind]))
                self._sent.popleft()
                return read()
            except redis.ResponseError as error:
                refusal = _typed(error)
                if not _is_by_cluster(refusal):
                    raise
        self.disconnect()
        raise redis.ConnectionError(self._said(refusal))

    def _said(self, refusal: redis.RedisError) -> str:
        """redis-py removes the codes from the texts."""
        if isinstance(refusal, MovedError):
            return f"the cluster's nodes disagree on the owner of slot {self.owner.slot}"
        if isinstance(refusal, AskError | TryAgainError):
            return f"slot {self.owner.slot} is being moved to another node of the cluster"
        return f"the cluster does not serve slot {self.owner.slot} ({type(refusal).__name__})"

    def _turn(self, refusal: redis.RedisError, pause: float) -> None:
        """To the node that is named; or wait, if the slot is being moved."""
        sleep(pause)
        if isinstance(refusal, MovedError):
            self.owner.moved_to((refusal.host or self.host, refusal.port))
            self.disconnect()


class _PlainConnection(_AtOwner, redis.Connection):
    _plain = redis.Connection


class _TlsConnection(_AtOwner, redis.SSLConnection):
    _plain = redis.SSLConnection


def _is_other(words: Sequence[Any]) -> bool:
    """Whether this command is one of its own, and not the wait for replicas that belongs to the one before it."""
    return bool(words[0] != "WAIT")


def _typed(error: redis.ResponseError) -> redis.ResponseError:
    """A script's own error of a slot that is being moved, as what a server says of a command."""
    return TryAgainError(str(error)) if _BEING_MOVED.search(str(error)) else error


def _is_by_cluster(refusal: redis.RedisError) -> bool:
    return isinstance(refusal, AskError | TryAgainError | ClusterDownError | ReadOnlyError)


def _pauses(seconds: float) -> Iterator[float]:
    """How long to wait before each try, the first of which comes at once, until this time is over."""
    pause, ends = 0.0, time.monotonic() + seconds
    while time.monotonic() < ends:
        yield pause
        pause = min(max(2 * pause, _PAUSE), _PAUSES)


class ClusterClient(RedisClient):
    """Commands to the owner of the slot that this prefix has, on the cluster with these nodes."""

    def __init__(self, url: str, *, prefix: str, **settings: Any) -> None:
        if not tag_of(prefix):
            raise ConfigError("[connection] prefix", NO_TAG)
        super().__init__(of_one_node(url), **settings)
        self.owner = SlotOwner(slot_of(tag_of(prefix)), nodes_of(url))
        kind = _TlsConnection if url.startswith("rediss") else _PlainConnection
        self._open = partial(self._open, connection_class=kind, owner=self.owner)
        self._room = Keys(prefix).room
        self._sources: dict[str, tuple[str, str]] = {}
        #: the owner's changes when the channels were subscribed to
        self._heard_at = 0

    def share(self, nodes: Nodes) -> None:
        """Use these connections instead of own ones. Only for a ``shared`` client that was not used yet."""
        self.owner.nodes = nodes

    @cached_property
    def _connections(self) -> ConnectionPool:
        if not self.owner.nodes:
            return super()._connections
        pool = self._redis.connection_pool
        make = partial(pool.connection_class, **pool.connection_kwargs)
        return LentConnections(self.owner.nodes, self.owner, make, self._wraps)

    def command(self, *words: Any) -> Any:
        if not self.owner.nodes:
            return super().command(*words)
        with self._translating(str(words[0]).lower(), words[1:2]):
            reply, read = self._ask(*words), self._redis.response_callbacks.get(words[0])
            return read(reply) if read else reply  # as redis-py does

    def scan(self, pattern: str) -> Iterator[set[bytes]]:
        """As on one server; from the start again where another node has the slot meanwhile, as a cursor is a node's."""
        seen: set[bytes] = set()
        cursor, changes = 0, -1  # so that the first page, which may find the owner, is read again
        while True:
            following, page = self.script("scan", [self._room], [cursor, pattern, PAGE])
            if changes != self.owner.changes:
                cursor, changes = 0, self.owner.changes
                continue
            yield (fresh := set(page) - seen)
            seen |= fresh
            if not (cursor := int(following)):
                return

    def masters(self) -> list[int]:
        """A slot of each master that serves any."""
        owners = {(words[0], words[1]): first for first, _, words, *_ in self.command("CLUSTER", "SLOTS")}
        return sorted(owners.values())

    def scan_node(self, pattern: str) -> Iterator[set[bytes]]:
        """As ``scan``, all keys of the node, in whichever slots they are."""
        return super().scan(pattern)

    def send(self, *words: Any) -> PendingReply:
        """Send one command; ``answer`` reads the reply. Not for a ``shared`` client."""
        with self._translating(str(words[0]).lower(), words[1:2]):
            return self._connection.send(*words)

    def answer(self, reply: PendingReply, verb: str) -> Any:
        """The reply to this command."""
        with self._translating(verb, ()):
            return reply.get()

    def begin_wait(self, *words: Any) -> PendingReplies:
        """Send a command that blocks; its reply may be read, or given up, which counts as no lost call: it is BLPOP."""
        with self._translating(str(words[0]).lower(), words[1:2]):
            return self._connection.send_together([words])

    def hang_up(self) -> None:
        """Close the connection, whatever is under way on it, also if a signal's handler has raised out of that.

        The next one goes to the same node, without a question to another one; that refuses if it has lost the slot.
        """
        if "_connection" in vars(self) and self._connection.is_open:  # else the node may be gone
            self._connection.close()
            self._connection.clear()
            self.owner.stays()

    def wait_for_message(self, channels: tuple[str, ...], timeout: float) -> str | None:
        if self._subscribed and self._heard_at != self.owner.changes:
            self._close_pubsub()  # the former owner may have left the cluster, and hears of nothing then
        return super().wait_for_message(channels, timeout)

    def _subscribe(self, channels: tuple[str, ...]) -> None:
        super()._subscribe(channels)
        self._heard_at = self.owner.changes

    def _source(self, name: str) -> tuple[str, str]:
        """The script behind a look for a key that never exists.

        While a slot is moved, that alone fails at the node that gives it away. Without it a script would fail at the
        first key that has gone or that it has just emptied, in the middle of what it does.
        """
        if name not in self._sources:
            quoted = self._room.replace("\\", "\\\\").replace("'", "\\'")
            text = f"redis.call('exists', '{quoted}') {script(name)[0]}"  # in the first line: errors name lines
            self._sources[name] = text, hashlib.sha1(text.encode()).hexdigest()
        return self._sources[name]
