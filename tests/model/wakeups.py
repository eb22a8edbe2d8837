"""Wake-ups: ready jobs, their tokens, and workers that sleep until they get one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

Law: TypeAlias = Callable[["Sleepers"], bool]


class Sleepers(NamedTuple):
    """Each worker is asleep (in BLPOP), awake (about to reserve), busy, busy with the last job, or gone."""

    to_push: int
    leaving: int
    workers: tuple[str, ...] = ("asleep", "asleep")
    ready: int = 0
    tokens: int = 0

    def worker(self, number: int, does: str) -> Sleepers:
        return self._replace(workers=(*self.workers[:number], does, *self.workers[number + 1 :]))


def counted(world: Sleepers) -> Sleepers:
    """What every script of ours does after it changed the ready list."""
    return world._replace(tokens=world.ready)


def steps(counts: bool, world: Sleepers) -> Iterator[tuple[str, Sleepers]]:
    """``counts``: the tokens are counted; Laravel's pop takes one instead, wherever it was woken.

    One of ours that has taken the last job waits after it without another look.
    """
    if world.to_push:
        yield "push", world._replace(to_push=world.to_push - 1, ready=world.ready + 1, tokens=world.tokens + 1)
    for number, does in enumerate(world.workers):
        for label, following in _of_a_worker(counts, world, number, does):
            yield f"w{number} {label}", following


def _of_a_worker(counts: bool, world: Sleepers, number: int, does: str) -> Iterator[tuple[str, Sleepers]]:
    if does == "asleep" and world.tokens:
        yield "is woken", world._replace(tokens=world.tokens - 1).worker(number, "awake")
    if does == "awake":
        yield "reserves", _reserve(counts, world, number)
    if does == "last" and counts:
        yield "is done and sleeps", world.worker(number, "asleep")
    if does in ("busy", "last"):
        yield "is done", world.worker(number, "awake")
        yield "releases", _pushed_back(counts, world).worker(number, "awake")
    if does == "awake" and world.leaving:
        yield "leaves", world._replace(leaving=world.leaving - 1).worker(number, "gone")


def _reserve(counts: bool, world: Sleepers, number: int) -> Sleepers:
    if not world.ready:
        return (counted(world) if counts else world).worker(number, "asleep")
    taken = world._replace(ready=world.ready - 1, tokens=max(world.tokens - 1, 0))
    taken = taken.worker(number, "busy" if taken.ready else "last")
    return counted(taken) if counts else taken


def _pushed_back(counts: bool, world: Sleepers) -> Sleepers:
    back = world._replace(ready=world.ready + 1, tokens=world.tokens + 1)
    return counted(back) if counts else back


def nobody_sleeps_beside_a_ready_job(world: Sleepers) -> bool:
    return "asleep" not in world.workers or world.ready <= world.tokens + world.workers.count("awake")


def the_next_stage_puts_it_right(world: Sleepers) -> bool:
    return nobody_sleeps_beside_a_ready_job(counted(world))
