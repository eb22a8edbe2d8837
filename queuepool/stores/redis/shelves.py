"""The jobs that wait in Laravel's Redis queues, as people and the steward see them, take them out and move them.

What they see is on shelves: ready, delayed and reserved. Workers take jobs by ``queue.RedisQueue`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from queuepool.payload.lease import StateRecord
from queuepool.stores.contract import Measured, MovedJob, QueueWalk, Shelf, ShelfJob, Sizes
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.walk import RedisWalk
from queuepool.stores.redis.wire import BATCH_BYTES, Keys, whole
from queuepool.stores.steps import in_steps

T = TypeVar("T")
#: the most that one step of a clear reads: jobs, and bytes (a page more), so that no other client waits for long
_CLEARED, _CLEARED_BYTES = 1000, 1_000_000
#: jobs that one step takes out of the middle of a queue: the deeper they lie, the longer it takes
_TAKEN = 50
#: the script's answer for a job that it had no time to look for (lua/include/pick.lua)
_NOT_LOOKED = 2
#: the numbers of the keys in ``drop_held.lua`` and ``move.lua``
_NUMBERS: Mapping[Shelf, int] = {"ready": 1, "delayed": 2, "reserved": 3}
#: most bytes read of the next job's payload when measuring, as the steward does so again and again
_MEASURED = 64 * 1024


class RedisShelves:
    """The shelves of all queues on one connection. ``locks_of`` as for ``RedisQueue``."""

    def __init__(self, client: RedisClient, keys: Keys, locks_of: LocksOf) -> None:
        self.client = client
        self.keys = keys
        self.locks_of = locks_of
        #: '' for the server's, or a test's Unix seconds as text
        self.clock = ""

    def sizes(self, queue: str) -> Sizes:
        makers = (self.keys.ready, self.keys.delayed, self.keys.reserved, self.keys.quarantine)
        return Sizes(*self.client.script("size", [key(queue) for key in makers], []))

    def measure(self, queue: str) -> Measured:
        makers = (self.keys.ready, self.keys.delayed, self.keys.reserved, self.keys.quarantine)
        found = self.client.script("measure", [key(queue) for key in makers], [self.clock, _MEASURED])
        ready, delayed, reserved, quarantined, payload, overdue, now = found
        age, overdue = None if payload else 0.0, max(float(overdue), 0.0)
        return Measured(ready, delayed, reserved, quarantined, age, float(now), payload, overdue)

    def first(self, queue: str, most: int, state: Shelf = "ready") -> list[bytes]:
        if state == "ready":
            return list(self.client.command("LRANGE", self.keys.ready(queue), 0, most - 1))
        key = self.keys.delayed(queue) if state == "delayed" else self.keys.reserved(queue)
        return list(self.client.command("ZRANGE", key, 0, most - 1))

    def steps(self, jobs: Sequence[ShelfJob]) -> Iterator[Sequence[ShelfJob]]:
        return in_steps(jobs, _TAKEN, BATCH_BYTES, lambda job: len(job.payload))

    def queues(self) -> list[str]:
        keys = (key.decode("utf-8", "replace") for page in self.client.scan(self.keys.pattern) for key in page)
        return sorted({name for key in keys if (name := self.keys.queue_of(key)) is not None})

    def clear(self, queue: str, finder: Finder = NO_LOCKS) -> int:
        """As the contract says; only as many as there are at the start, since more may come faster than they go."""
        names = [key(queue) for key in (self.keys.ready, self.keys.delayed, self.keys.reserved, self.keys.notify)]
        most, dropped, states = _CLEARED, 0, self.keys.state("") if finder.tracks else ""
        while True:
            args = [min(_CLEARED, most - dropped), _CLEARED_BYTES, states, *finder.marks, *finder.tracks]
            there, free, *held = self.client.script_in_time("clear", names, args)
            most = there if not dropped else most
            dropped += int(free) + self._drop(queue, names, _in_their_places(held), finder).count(1)
            if dropped >= most or not (free or held):
                return dropped

    def walk(self, queue: str, shelves: Collection[Shelf], cursor: str = "") -> QueueWalk:
        return RedisWalk(self.client, self.keys, queue, shelves, cursor)

    def drop(self, queue: str, jobs: Sequence[ShelfJob], finder: Finder = NO_LOCKS) -> list[bool]:
        names = [key(queue) for key in (self.keys.ready, self.keys.delayed, self.keys.reserved, self.keys.notify)]
        drop_these = partial(self._drop, queue, names, finder=finder)
        steps = ([(_NUMBERS[job.shelf], job.payload, job.place) for job in step] for step in self.steps(jobs))
        return [answer == 1 for step in steps for answer in _answers(step, drop_these)]

    def move(self, queue: str, jobs: Sequence[MovedJob], target: str) -> list[bool]:
        makers = (self.keys.ready, self.keys.delayed, self.keys.notify)
        names = [key(name) for name in (queue, target) for key in makers]
        answers = list[int]()

        def move_these(some: Sequence[MovedJob]) -> list[int]:
            words = [(_NUMBERS[job.shelf], job.payload, job.place, there) for job, there, _ in some]
            states = [self._state_words(state) for *_, state in some]
            args = [word for one, (_, *state) in zip(words, states, strict=True) for word in (*one, *state)]
            keys = [*names, *(key for key, *_ in states)]
            return list(self.client.script_in_time("move", keys, [self.keys.channel(target), *args]))

        for step in in_steps(jobs, _TAKEN, BATCH_BYTES, lambda moved: len(moved.job.payload)):
            answers += _answers(step, move_these)
        return [answer == 1 for answer in answers]

    def _drop(
        self, queue: str, names: Sequence[str], jobs: Sequence[tuple[int, bytes, int]], finder: Finder
    ) -> list[int]:
        """Drop these jobs together with their locks; each is the number of its key, its bytes and its place."""
        more, args = list[str](), list[Any]()
        held = [finder.locks_of(job) if finder.may_hold(job) else () for _, job, _ in jobs]
        for (number, job, place), unlocks in zip(jobs, map(self.locks_of.own_among, held), strict=True):
            key, *state = self._state_words(finder.state_of(queue, job, None))
            more += [key, *(self.keys.lock(lock.name) for lock in unlocks)]
            args += [number, job, place, *state, len(unlocks), *(lock.owner for lock in unlocks)]
        answers: list[int] = self.client.script_in_time("drop_held", [*names, *more], args) if jobs else []
        gone = (unlocks for unlocks, answer in zip(held, answers, strict=True) if answer == 1)
        self.locks_of.release_elsewhere(list(chain.from_iterable(gone)))
        return answers

    def _state_words(self, state: StateRecord | None) -> tuple[str, bytes, int]:
        """Key, text and seconds of a state, for our scripts; of none, a key that whoever writes states may write."""
        job_id, text, seconds = state or ("", b"", 0.0)
        return self.keys.state(job_id), text, whole(seconds)


def _answers(jobs: Sequence[T], ask: Callable[[Sequence[T]], list[int]]) -> list[int]:
    """The answer for each job; jobs that the script did not reach are asked for again."""
    answers = ask(jobs)
    while left := [number for number, answer in enumerate(answers) if answer == _NOT_LOOKED]:
        for number, answer in zip(left, ask([jobs[number] for number in left]), strict=True):
            answers[number] = answer
    return answers


def _in_their_places(held: Sequence[Any]) -> list[tuple[int, bytes, int]]:
    """What ``clear.lua`` has left; the ready ones now lie at the head."""
    jobs = list(zip(held[::2], held[1::2], strict=True))
    return [(number, job, place - sum(one != 1 for one, _ in jobs)) for place, (number, job) in enumerate(jobs)]
