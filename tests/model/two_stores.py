"""One job that always fails, its failed store on another server, and somebody who retries it.

Two servers know no common step: each step here is carried out on one of them, and whoever takes it may be interrupted
after it, or not hear that it was done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: a failure's number; every failure of the job has the same bytes
Failure = int


class World(NamedTuple):
    """What both servers hold, and how far the worker and the person have come."""

    queued: int = 1
    held: int = 0
    #: written by the worker already, before it has ended the job
    written: bool = False
    outbox: tuple[Failure, ...] = ()
    records: tuple[Failure, ...] = (0,)
    failures: int = 1
    #: the record that is being retried, and whether its job was pushed already
    retried: Failure | None = None
    pushed: bool = False
    retries: int = 0
    #: how often a record was written for one failure
    twice: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    #: failures wait beside the jobs, each with an id; else the worker writes the record and ends the job after
    outbox: bool = True
    #: a record is known by its failure, not by its bytes
    ids: bool = True
    retries: int = 2

    def first(self) -> World:
        """The job has failed once, and is recorded."""
        return World(queued=0)


def steps(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    if world.queued and not world.held:
        yield "reserves", world._replace(queued=world.queued - 1, held=1, written=False)
    yield from _failing(rules, world)
    yield from _forwarding(rules, world)
    yield from _retrying(rules, world)


def _failing(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    if not world.held:
        return
    failure = world.failures
    if rules.outbox:
        yield "fails", world._replace(held=0, outbox=(*world.outbox, failure), failures=failure + 1)
    elif not world.written:
        yield "records", _recorded(rules, world._replace(written=True), failure)
    else:
        yield "ends the job", world._replace(held=0, failures=failure + 1)


def _forwarding(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    for failure in world.outbox[:1]:
        recorded = _recorded(rules, world, failure)
        yield "is forwarded", recorded._replace(outbox=world.outbox[1:])
        if recorded != world:
            yield "is forwarded, unheard", recorded


def _recorded(rules: Rules, world: World, failure: Failure) -> World:
    is_there = failure in world.records if rules.ids else bool(world.records)
    if is_there:
        return world
    return world._replace(records=(*world.records, failure), twice=world.twice or failure in world.records)


def _retrying(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    if world.retried is None:
        for failure in world.records if world.retries < rules.retries else ():
            yield "is retried", world._replace(retried=failure, pushed=False, retries=world.retries + 1)
        return
    if not world.pushed:
        yield "is pushed", world._replace(queued=world.queued + 1, pushed=True)
    else:
        left = tuple(one for one in world.records if one != world.retried)
        yield "its record is dropped", world._replace(records=left, retried=None)
    yield "the retry is interrupted", world._replace(retried=None)


def nothing_is_lost(world: World) -> bool:
    return bool(world.queued or world.held or world.outbox or world.records)


def a_failure_is_recorded_once(world: World) -> bool:
    return not world.twice and len(set(world.records)) == len(world.records)


LAWS = [nothing_is_lost, a_failure_is_recorded_once]
