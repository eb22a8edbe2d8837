"""The queues of each hash tag: what one step may change, on the node that has its slot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, groupby
from typing import TypeVar

from queuepool.config.connections import tag_of
from queuepool.errors import NotReplicated, PartDown, PartNotReplicated, RefusesNew, StoreDenied, StoreDown, StoreError
from queuepool.payload.lease import Lease
from queuepool.stores.redis.arrivals import RedisArrivals
from queuepool.stores.redis.attempts import RedisAttempts
from queuepool.stores.redis.cluster import ClusterClient
from queuepool.stores.redis.kept_steps import RedisKeptSteps
from queuepool.stores.redis.nodes import Node
from queuepool.stores.redis.queue import RedisQueue
from queuepool.stores.redis.records import RedisRecords
from queuepool.stores.redis.wire import TaggedKeys, braced

T = TypeVar("T")
#: a node that was away is left alone for so many seconds, or for so many times what the last try took
_AGAIN, _TIMES = 0.2, 4
_NEVER = 0.0, ""


class TagGroup:
    """The queues of one hash tag, on a connection of their own. ``is_patient``: ask again also where it was away.

    ``silent``: the nodes that hang, for all groups: until when (monotonic) each is left alone, and its error.
    """

    def __init__(
        self,
        tag: str,
        client: ClusterClient,
        keys: TaggedKeys,
        queue: RedisQueue,
        silent: dict[Node | None, tuple[float, str]],
        *,
        is_patient: bool,
    ) -> None:
        self.tag = tag
        self.client = client
        self.keys = keys
        self.queue = queue
        self.records = RedisRecords(client, keys, queue.locks_of, lambda: queue.clock)
        self.attempts = RedisAttempts(client, keys)
        self.steps = RedisKeptSteps(client, keys)
        self.arrivals = RedisArrivals(client, keys)
        #: how many jobs the last look at its relay has left there, at its head
        self.left_over = 0
        self._is_patient = is_patient
        self._silent = silent
        #: as in those
        self._away = _NEVER

    @property
    def is_away(self) -> bool:
        """Whether its node is left alone for now."""
        return time.monotonic() < self._left_alone[0] and not self._is_patient

    @property
    def _left_alone(self) -> tuple[float, str]:
        return max(self._away, self._silent.get(self.client.owner.last, _NEVER))

    def ask_again(self) -> None:
        """Leave its node alone no longer."""
        self._away = _NEVER
        self._silent.clear()

    def ask(self, verb: Callable[[], T]) -> T:
        """What this verb of its stores returns. Raises ``PartDown`` where its node is away, without asking again and
        again: a node that hangs would take the time of the others."""
        if self.is_away:
            raise PartDown(f"hash tag {{{self.tag}}}: {self._left_alone[1]}")
        began = time.monotonic()
        try:
            return verb()
        except (StoreDenied, RefusesNew):
            raise
        except StoreDown as error:
            now = time.monotonic()
            self._away = now + max(_AGAIN, _TIMES * (now - began)), str(error)
            if self.client.owner.is_silent:
                self._silent[self.client.owner.last] = self._away
            kind = PartNotReplicated if isinstance(error, NotReplicated) else PartDown
            raise kind(f"hash tag {{{self.tag}}}: {error}") from error


class Groups:
    """The groups that this process has used; each is made when one of its queues is used first."""

    def __init__(self, make: Callable[[str], TagGroup]) -> None:
        #: '' for the server's, or a test's Unix seconds as text
        self.clock = ""
        self._make = make
        self._told: Callable[[TagGroup], object] = bool
        self._by_tag: dict[str, TagGroup] = {}
        self._by_queue: dict[str, TagGroup] = {}

    def of(self, queue: str) -> TagGroup:
        """The group of this queue. Raises ``StoreError`` for a name that Laravel's rule gives no tag."""
        if queue not in self._by_queue:
            tag = tag_of(braced(queue))
            if not tag or tag != tag.encode(errors="replace").decode():
                raise StoreError(f"queue {queue!r}: its keys have no hash tag, so no slot of the cluster has them all")
            self._by_queue[queue] = self.tagged(tag)
        return self._by_queue[queue]

    def tagged(self, tag: str) -> TagGroup:
        """The group with this hash tag."""
        if tag not in self._by_tag:
            group = self._by_tag.setdefault(tag, self._make(tag))
            group.queue.clock = self.clock
            self._told(group)
        return self._by_tag[tag]

    def on_new(self, told: Callable[[TagGroup], object]) -> None:
        """Have this called for each group, and for each that is used from now on."""
        self._told = told
        for group in self.all():
            told(group)

    def all(self) -> list[TagGroup]:
        """Those that were used."""
        return list(self._by_tag.values())

    def ask_again(self) -> None:
        """Ask also the nodes that did not answer a moment ago."""
        for group in self.all():
            group.ask_again()

    def beside(self, queue: str) -> list[TagGroup]:
        """The group of this queue; without one, all that were used."""
        return [self.of(queue)] if queue else self.all()

    def runs(self, queues: Sequence[str]) -> list[tuple[TagGroup, list[str]]]:
        """The queues in their order, those of one group that follow each other together."""
        return [(group, list(several)) for group, several in groupby(queues, self.of)]

    def parts(self, queues: Iterable[str]) -> dict[TagGroup, list[str]]:
        """The queues by their groups."""
        return self._by_group(queues, str)

    def own(self, leases: Iterable[Lease]) -> dict[TagGroup, list[Lease]]:
        """The leases by the groups of their queues."""
        return self._by_group(leases, lambda lease: lease.queue)

    def _by_group(self, items: Iterable[T], queue_of: Callable[[T], str]) -> dict[TagGroup, list[T]]:
        found: dict[TagGroup, list[T]] = {}
        for one in items:
            found.setdefault(self.of(queue_of(one)), []).append(one)
        return found

    def of_leases(
        self, leases: Sequence[Lease], verb: Callable[[TagGroup, Sequence[Lease]], Sequence[bool]]
    ) -> list[bool | None]:
        """The verb's answers in the order of the leases, ``None`` where the node is away; raises if all are."""
        own = self.own(leases)
        answered = of_those_there(own, lambda group: list(zip(own[group], verb(group, own[group]), strict=True)))
        answers = dict(chain.from_iterable(answered))
        return [answers.get(lease) for lease in leases]


def of_those_there(groups: Iterable[TagGroup], verb: Callable[[TagGroup], T]) -> list[T]:
    """What it returns for each group whose node is there. Raises ``PartDown`` if all are away."""
    found, problem = _asked(groups, verb, PartDown)
    if problem and not found:
        raise problem
    return found


def of_each(groups: Iterable[TagGroup], verb: Callable[[TagGroup], T]) -> list[T]:
    """What it returns for each group. All are asked; what one has raised is raised then."""
    found, problem = _asked(groups, verb, StoreDown)
    if problem:
        raise problem
    return found


def _asked(
    groups: Iterable[TagGroup], verb: Callable[[TagGroup], T], passes_over: type[StoreDown]
) -> tuple[list[T], StoreDown | None]:
    """What it returns for each group that answers, and the last of these errors; any other is raised at once."""
    found, problem = list[T](), None
    for group in groups:
        try:
            found.append(group.ask(partial(verb, group)))
        except passes_over as error:
            problem = error
    return found, problem
