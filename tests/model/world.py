"""A small world of the queue's protocol: what the store holds and what each process knows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple, TypeAlias

#: a worker's number and life
Tag: TypeAlias = tuple[int, int]


class Copy(NamedTuple):
    """A payload: which job, begun how often. Equal copies have the very same bytes."""

    job: int
    attempts: int


class Lease(NamedTuple):
    """A row of the reserved set; Laravel's has no tag, there it is the model's own knowledge."""

    copy: Copy
    end: int
    tag: Tag


class Request(NamedTuple):
    """A command that was sent, and whose sender does not wait for it any more.

    ``tag`` is its sender's, ``owner`` the tag under which ``copy`` was reserved.
    """

    verb: str
    tag: Tag
    copy: Copy | None
    owner: Tag


class Worker(NamedTuple):
    """``does``: idle, asking, waiting, answered, unsure or repeating; ``stage`` of the copy in its hand.

    ``life`` is the part of its tag that changes, ``held`` what that was when it reserved its copy.
    """

    life: int = 0
    held: int = 0
    does: str = "idle"
    stage: str = ""
    copy: Copy | None = None
    answer: Copy | None = None
    #: since when, while it is asking
    asked: int | None = None
    lease_end: int = 0
    deadline: int = 0
    orphan: bool = False

    @property
    def is_running(self) -> bool:
        """Whether its handler runs: who repeats a release has only not written down yet that it ended."""
        return self.stage == "running" and self.does != "repeating"

    def later(self, retry_after: int) -> Worker:
        return self._replace(
            asked=_earlier(self.asked, retry_after),
            lease_end=max(self.lease_end - 1, 0),
            deadline=max(self.deadline - 1, 0),
        )


class Obituary(NamedTuple):
    """What the steward finds on the board of a dead worker."""

    tag: Tag
    why: str
    stage: str
    copy: Copy | None
    #: since when it was asking; ``None``: it was not
    asked: int | None
    #: the tag under which the copy was reserved
    owner: Tag


class World(NamedTuple):
    """All times count from now: so the clock may run for ever, and there are still not many worlds."""

    ready: tuple[Copy, ...]
    workers: tuple[Worker, ...]
    starts: tuple[int, ...]
    tallies: tuple[int, ...]
    #: deaths that a job caused, told to the store or not
    deaths: tuple[int, ...]
    #: how much may still go wrong
    crashes: int
    stops: int
    masters: int
    losses: int
    delayed: tuple[tuple[int, Copy], ...] = ()
    reserved: tuple[Lease, ...] = ()
    dead: tuple[Obituary, ...] = ()
    #: commands that were sent and are still on their way
    flying: tuple[Request, ...] = ()
    done: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    #: how often each job's outcome was pushed; empty where nothing follows
    outcomes: tuple[int, ...] = ()
    #: what a worker had finished and written on its board
    finished: frozenset[int] = frozenset()
    #: what only a step can do wrong
    wrongs: frozenset[str] = frozenset()
    is_mastered: bool = True

    def worker(self, number: int, **changes: Any) -> World:
        """With this worker changed."""
        workers, changed = list(self.workers), self.workers[number]._replace(**changes)
        workers[number] = changed if changed.copy or changed.answer else changed._replace(held=0)
        return self._replace(workers=tuple(workers))

    def wrong(self, what: str, if_so: bool) -> World:
        return self._replace(wrongs=self.wrongs | {what}) if if_so else self

    def later(self, retry_after: int) -> World:
        """One tick later; what is long past is not told apart."""
        return self._replace(
            delayed=tuple(sorted((max(at - 1, 0), copy) for at, copy in self.delayed)),
            reserved=tuple(lease._replace(end=max(lease.end - 1, 0)) for lease in self.reserved),
            workers=tuple(worker.later(retry_after) for worker in self.workers),
            dead=tuple(dead._replace(asked=_earlier(dead.asked, retry_after)) for dead in self.dead),
        )

    def unused_life(self, number: int) -> int:
        """A tag that nothing in the world has."""
        tags = {lease.tag for lease in self.reserved} | {tag for dead in self.dead for tag in (dead.tag, dead.owner)}
        tags |= {tag for request in self.flying for tag in (request.tag, request.owner)}
        worker = self.workers[number]
        tags |= {(number, worker.life), *([(number, worker.held)] if worker.copy else [])}
        return next(life for life in count() if (number, life) not in tags)

    def is_retired(self, tag: Tag) -> bool:
        """Whether nobody has it any more, and no dead worker is still to be buried under it."""
        return tag[1] != self.workers[tag[0]].life and tag not in {dead.tag for dead in self.dead}

    def lease_of(self, copy: Copy | None) -> Lease | None:
        return next((lease for lease in self.reserved if lease.copy == copy), None)

    def stored(self) -> Iterator[Copy]:
        yield from self.ready
        yield from (copy for _, copy in self.delayed)
        yield from (lease.copy for lease in self.reserved)


def _earlier(asked: int | None, retry_after: int) -> int | None:
    return None if asked is None else max(asked - 1, -retry_after)


def raised(counts: tuple[int, ...], job: int, by: int = 1) -> tuple[int, ...]:
    return tuple(count + by * (number == job) for number, count in enumerate(counts))
