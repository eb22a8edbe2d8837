"""One worker's tag in each of its groups: the same number everywhere, claimed where it reserves."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from queuepool.errors import PartDown, StoreDown, TagRetired
from queuepool.payload.lease import Lease
from queuepool.stores.redis.queue import TAGS
from queuepool.stores.redis.spread.groups import Groups, TagGroup


class _Lost(NamedTuple):
    """A reserve without a reply: under which tag, since when (monotonic), and the leases that are known."""

    queues: Sequence[str]
    tag: int
    since: float
    known: Sequence[Lease]


class GroupTags:
    """What could not be sent to a node that was away is sent before anything is reserved there again.

    ``entered``: called when a tag was claimed in a group.
    """

    def __init__(self, groups: Groups, entered: Callable[[TagGroup], object]) -> None:
        self._groups = groups
        self._entered = entered
        #: this worker's tag, 0 = this process is none; where it is claimed; where a former one has yet to be retired
        self._tag = 0
        self._claimed: set[TagGroup] = set()
        self._former: dict[TagGroup, int] = {}
        #: the former tag, and where it was claimed
        self._last = 0, set[TagGroup]()
        self._owed: dict[TagGroup, list[_Lost]] = {}
        #: how often another worker of a group had the tag
        self.refused = 0

    def draw(self, old: int, groups: Sequence[TagGroup]) -> int:
        """A tag for this worker, claimed in these groups, and in any other before it reserves there; ``old`` is retired
        then. Raises ``StoreDown`` if all of them are away."""
        was_here = self._last[1] if old == self._last[0] else set()
        self._last = old, self._claimed | was_here
        problem = self._draw(old, groups)
        if problem and not self._claimed:
            raise StoreDown(str(problem))
        return self._tag

    def _draw(self, old: int, groups: Sequence[TagGroup]) -> PartDown | None:
        self._former |= dict.fromkeys(self._claimed, old) if old else {}
        self._tag, self._claimed, problem = 1 + secrets.randbelow(TAGS - 1), set(), None
        for group in groups:
            try:
                group.ask(lambda group=group: self.enter(group, self._tag))  # type: ignore[misc]
            except PartDown as error:
                problem = error
            except TagRetired:
                return self._draw(self._tag, groups)
        return problem

    def enter(self, group: TagGroup, tag: int) -> None:
        """Claim the worker's tag in this group, unless it is. Raises ``TagRetired`` if another one has it."""
        if tag != self._tag or group in self._claimed:
            return
        self.tell(group)
        if (free := group.queue.claim(tag, self._former.get(group, 0))) != tag:
            group.queue.retire(free)
            self.refused += 1
            raise TagRetired(f"tag {tag} is another worker's")
        self._former.pop(group, None)
        self._claimed.add(group)
        self._entered(group)

    def has_entered(self, group: TagGroup) -> bool:
        """Whether the worker's tag is claimed in this group, so that it may have reserved there."""
        return group in self._claimed

    def tell(self, group: TagGroup) -> None:
        """Tell the group what it has yet to be told."""
        while lost := self._owed.get(group):
            group.queue.retire(lost[0].tag)
            self._reclaim(group, lost[0])
            lost.pop(0)

    def retire(self, tag: int) -> None:
        """Retire a tag where that can be done now; ``reclaim`` does so again wherever it looks for the tag's jobs."""
        for group in self._groups.all():
            with suppress(PartDown):
                group.ask(lambda group=group: group.queue.retire(tag))  # type: ignore[misc]

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        """As ``QueueStore.reclaim``. A node that is away delays no other: its part is made up for later."""
        found = list[Lease]()
        for group, several in self._groups.parts(queues).items():
            lost = _Lost(several, tag, time.monotonic() - since, known)
            try:
                found += group.ask(lambda group=group, lost=lost: self._reclaim(group, lost))  # type: ignore[misc]
            except PartDown:
                if self._may_know(group, tag):
                    self._owed.setdefault(group, []).append(lost)
        return found

    def _may_know(self, group: TagGroup, tag: int) -> bool:
        """Whether something may have been reserved under the tag there; of another worker's, only that one knows."""
        return not self._tag or (tag == self._last[0] and group in self._last[1])

    def _reclaim(self, group: TagGroup, lost: _Lost) -> list[Lease]:
        if not self._tag or self._former.get(group) == lost.tag:
            group.queue.retire(lost.tag)
        return group.queue.reclaim(lost.queues, lost.tag, time.monotonic() - lost.since, lost.known)
