"""One tracked job, and what is said of it: by its push, by what settles it, and by the steward that reports what runs.

Source: ``settlement/states.py``, ``steward/publish.py``, ``lua/show.lua``. A report may be delivered late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

READY, OVER = 0, -1
QUEUED = "queued"
_MOST_ATTEMPTS = 3


class Rules(NamedTuple):
    """``fenced``: a report counts only under the lease. ``together``: a state is written in the step that settles."""

    fenced: bool = True
    together: bool = True
    #: whether a job that is given back is first said to wait, and then given back
    said_first: bool = True


class World(NamedTuple):
    #: READY, OVER, or the tag under which it is reserved, which counts the reservations
    job: int = READY
    reserved: int = 0
    #: what is said: QUEUED, ``over``, or the tag of the worker that is said to run it
    said: str | int = QUEUED
    #: the tag whose worker was last said to run it, in time
    shown: int = 0
    #: tags of reports under way
    reports: tuple[int, ...] = ()
    #: a state that is still to be written by the settlement, and the tag that it was under
    owed: tuple[str, int] = ("", 0)
    #: the tag of a worker that is being stopped, of which the first step was taken
    stopping: int = 0


def steps(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    if world.job == READY and world.reserved < _MOST_ATTEMPTS:
        yield "reserve", world._replace(job=world.reserved + 1, reserved=world.reserved + 1)
    yield from _of_the_steward(rules, world)
    if world.owed[0]:
        yield "its state is written", world._replace(said=world.owed[0], owed=("", 0))
    elif world.job > READY and world.job != world.stopping:
        yield from _of_the_worker(rules, world)


def _of_the_worker(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    """Or, once it is dead, of the steward in its place: by the same verbs."""
    yield "ends", _settled(rules, world, OVER, "over")
    yield "is released", _settled(rules, world, READY, QUEUED)
    yield "its lease ends", world._replace(job=READY)  # what is said has a time after which it does not count
    if not world.stopping:
        first = world._replace(said=QUEUED) if rules.said_first else world._replace(job=READY)
        yield "a stop begins", first._replace(stopping=world.job)


def _settled(rules: Rules, world: World, job: int, said: str) -> World:
    if rules.together:
        return world._replace(job=job, said=said)
    return world._replace(job=job, owed=(said, world.job))


def _of_the_steward(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    if world.job > READY and world.job != world.stopping and len(world.reports) < 2:
        yield "the steward sends a report", world._replace(reports=(*world.reports, world.job))
    for number, tag in enumerate(world.reports):
        rest = world._replace(reports=world.reports[:number] + world.reports[number + 1 :])
        counts = not rules.fenced or world.job == tag
        yield "a report is written", rest._replace(said=tag, shown=tag) if counts else rest
    if world.stopping and rules.said_first:
        yield "it is given back", world._replace(job=READY if world.job == world.stopping else world.job, stopping=0)
    elif world.stopping:
        yield "it is said to wait", world._replace(said=QUEUED, stopping=0)


def what_is_over_is_said_to_be_over(world: World) -> bool:
    return world.job != OVER or world.said == "over"


def what_is_said_to_be_over_is(world: World) -> bool:
    return world.said != "over" or world.job == OVER


def no_earlier_worker_is_said_to_run_it(world: World) -> bool:
    """Unless the last one has not been reported yet."""
    return not isinstance(world.said, int) or world.said >= world.shown


def what_was_said_to_run_and_does_is_said_to_run(world: World) -> bool:
    """While it is being stopped it may already be said to wait."""
    return world.job != world.shown or world.job <= READY or world.stopping == world.job or world.said == world.job


LAWS = (
    what_is_over_is_said_to_be_over,
    what_is_said_to_be_over_is,
    no_earlier_worker_is_said_to_run_it,
    what_was_said_to_run_and_does_is_said_to_run,
)
