"""A worker's reserve from several groups, in strict priority of its queues."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from queuepool.errors import PartDown, StoreError, TagRetired
from queuepool.payload.lease import Lease
from queuepool.stores.contract import Reservation
from queuepool.stores.redis.connections import PendingReply
from queuepool.stores.redis.spread.groups import Groups, TagGroup
from queuepool.stores.redis.spread.tags import GroupTags

#: seconds for which a glance at the ready jobs of lower groups is enough; then each is asked, and stages what is due
_GLANCES = 1.0
#: a group and those of its queues that follow each other
Run = tuple[TagGroup, list[str]]


class Reserving:
    """Each group's part is one script, as on a single server.

    What is done is ended first, so that nothing was taken when a node does not answer for what it has to end.
    """

    def __init__(self, groups: Groups, tags: GroupTags) -> None:
        self._groups = groups
        self._tags = tags
        self._asked_all_at = 0.0

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease]) -> Reservation:
        """As the contract says. Of a group that does not answer, it says so among the problems."""
        runs = self._groups.runs(queues)
        with_first = [lease for lease in done if lease.queue in runs[0][1]]
        others = [lease for lease in done if lease.queue not in runs[0][1]]
        parts = [
            self._take(group, names, tag, 0, [lease for lease in others if lease.queue in names])
            for group, names in self._groups.parts([lease.queue for lease in others]).items()
        ]
        problems, refusal = list[tuple[str, str]](), None
        for number, (group, names) in enumerate(self._in_turn(runs, parts)):
            wanted = limit - sum(len(part.leases) for part in parts)
            if wanted <= 0 < number:
                parts.append(Reservation())  # as others may have jobs
                break
            try:
                parts.append(self._take(group, names, tag, wanted, () if number else with_first))
            except StoreError as error:
                if (with_first and not number) or self._is_unsure(group, error):
                    raise
                refusal = error
                problems += [(name, str(error)) for name in names if not isinstance(error, TagRetired)]
        if refusal and not parts:
            raise refusal
        return _sum(parts, problems)

    def _take(self, group: TagGroup, names: Sequence[str], tag: int, limit: int, done: Sequence[Lease]) -> Reservation:
        def take() -> Reservation:
            self._tags.enter(group, tag)
            return group.queue.reserve(list(dict.fromkeys(names)), tag, limit, done)

        return group.ask(take)

    def _is_unsure(self, group: TagGroup, error: StoreError) -> bool:
        """Whether it may have taken jobs: they are found by the tag, once that is retired, with all of this reserve."""
        return isinstance(error, PartDown) and self._tags.has_entered(group)

    def _in_turn(self, runs: Sequence[Run], parts: Sequence[Reservation]) -> Iterator[Run]:
        """The first; once that has not enough, those that have jobs by a glance; if nothing was taken, the others.

        Each has to be asked now and then, as it makes ready what is due.
        """
        yield runs[0]
        seen = list[Run]()
        if len(runs) > 2 and time.monotonic() < self._asked_all_at + _GLANCES:
            seen = _with_jobs(runs[1:])
            yield from seen
            if any(part.leases for part in parts):
                return
        self._asked_all_at = time.monotonic()
        yield from (run for run in runs[1:] if run not in seen)


def _with_jobs(runs: Sequence[Run]) -> list[Run]:
    """Those that have ready jobs, by one command to each at the same time; and those whose nodes are away."""
    sent = list[tuple[Run, PendingReply | None]]()
    for group, names in runs:
        try:
            look = group.ask(lambda: group.client.send("EXISTS", *map(group.keys.ready, names)))  # noqa: B023
        except StoreError:
            look = None  # its reserve shows why
        sent.append(((group, names), look))
    return [run for run, look in sent if look is None or _has_jobs(run[0], look)]


def _has_jobs(group: TagGroup, look: PendingReply) -> bool:
    try:
        return bool(group.ask(lambda: group.client.answer(look, "exists")))
    except StoreError:
        return True  # its reserve shows why


def _sum(parts: Sequence[Reservation], problems: list[tuple[str, str]]) -> Reservation:
    due = [part.next_due for part in parts if part.next_due is not None]
    leases = [lease for part in parts for lease in part.leases]
    return Reservation(
        leases=leases,
        refused=[lease for part in parts for lease in part.refused],
        quarantined=[one for part in parts for one in part.quarantined],
        problems=[*problems, *(one for part in parts for one in part.problems)],
        next_due=min(due) if due and not leases else None,
        is_last=all(part.is_last for part in parts),
    )
