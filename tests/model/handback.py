"""A worker at one job, its requests for the next one, and a steward that takes back what waits behind that job.

Source: ``Supply`` and ``steward/leases.py``. Neither holds a lock: each first says what it does, and then looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Next = Iterator[tuple[str, "World"]]
ABSENT, READY = -1, 0


class Rules(NamedTuple):
    """``looks``: whether a worker looks for the steward's word after an answer that it waited for."""

    looks: bool = True


class World(NamedTuple):
    """One job comes; tags count from 1, and those up to ``retired`` reserve nothing any more."""

    #: ABSENT, READY, or the tag that it is reserved under
    job: int = ABSENT
    retired: int = 0
    #: running (its first job), free, waiting (for an answer), heard, at it (the job that waited)
    worker: str = "running"
    tag: int = 1
    turn: int = 0
    #: the turn in which it asked last
    asked_in: int = 0
    holds: bool = False
    is_unsure: bool = False
    #: the tag of a request under way, and whether its answer has the job; READY = no request, ``None`` = no answer yet
    request: int = READY
    answer: bool | None = None
    wanted_back: int = -1
    #: idle, looked, said, sure (that the worker is where it was), retired, over; and the tag and turn that it saw
    steward: str = "idle"
    seen: tuple[int, int] = (0, 0)


def steps(rules: Rules, world: World) -> Next:
    yield from _of_the_store(world)
    yield from _of_the_worker(rules, world)
    yield from _of_the_steward(world)


def _of_the_store(world: World) -> Next:
    if world.job == ABSENT:
        yield "a job is pushed", world._replace(job=READY)
    if world.request and world.answer is None:
        brings = world.job == READY and world.request > world.retired
        yield "the store answers", world._replace(answer=brings, job=world.request if brings else world.job)


def _of_the_worker(rules: Rules, world: World) -> Next:
    match world.worker:
        case "running":
            if not world.request:
                yield "asks ahead", _asks(world)
            yield "its job ends", world._replace(worker="waiting" if world.request else "free")
        case "free":
            yield "asks", _asks(_renewed(world) if world.is_unsure else world)._replace(worker="waiting direct")
        case "waiting" | "waiting direct" if world.answer is not None:
            yield "hears", _heard(world)
        case "heard" | "heard direct":
            must_look = rules.looks or world.worker == "heard"
            yield "looks", _looked(world, must_look and world.wanted_back == world.asked_in)


def _asks(world: World) -> World:
    return world._replace(request=world.tag, answer=None, asked_in=world.turn)


def _renewed(world: World) -> World:
    """Its old tag is retired, and what is found under it goes back; in one step, as no request of its own is left."""
    job = READY if world.job == world.tag else world.job
    tag = max(world.tag, world.retired) + 1
    return world._replace(retired=max(world.retired, world.tag), job=job, tag=tag, is_unsure=False)


def _heard(world: World) -> World:
    """A new turn begins with a job, and where nothing came for a worker of which something is wanted back."""
    brought, is_direct = bool(world.answer), world.worker == "waiting direct"
    turn = world.turn + (brought or (is_direct and world.wanted_back == world.turn))
    how = world.worker.replace("waiting", "heard")
    return world._replace(worker=how, request=READY, answer=None, holds=brought, turn=turn)


def _looked(world: World, is_wanted_back: bool) -> World:
    """It begins the job that it holds, or puts it back: refused, if the store has it under no or another tag."""
    if not is_wanted_back:
        return world._replace(worker="at it" if world.holds else "free")
    job = READY if world.holds and world.job == world.tag else world.job
    return world._replace(worker="free", holds=False, is_unsure=True, job=job)


def _of_the_steward(world: World) -> Next:
    tag, turn = world.seen
    match world.steward:
        case "idle" if world.worker == "running" and world.request:
            yield "the steward finds it stuck", world._replace(steward="looked", seen=(world.tag, world.turn))
        case "looked":
            yield "the steward says so", world._replace(steward="said", wanted_back=turn)
        case "said":
            yield "the steward looks again", world._replace(steward="sure" if world.turn == turn else "over")
        case "sure":
            yield "the steward retires its tag", world._replace(steward="retired", retired=max(world.retired, tag))
        case "retired":
            job = READY if world.job == tag else world.job
            yield "the steward takes what is under it", world._replace(steward="over", job=job)


def what_is_begun_is_reserved_by_who_began_it(world: World) -> bool:
    """And nobody will take it: the steward is through, or means another tag."""
    is_taken = world.steward in ("sure", "retired") and world.seen[0] == world.tag
    return world.worker != "at it" or (world.job == world.tag and not is_taken)


def nothing_is_reserved_unknown_to_all(world: World) -> bool:
    is_known = world.holds or world.is_unsure or world.request or world.steward in ("sure", "retired")
    return world.job in (ABSENT, READY) or bool(is_known)


LAWS = (what_is_begun_is_reserved_by_who_began_it, nothing_is_reserved_unknown_to_all)
