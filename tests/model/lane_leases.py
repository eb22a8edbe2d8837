"""One lane of a worker, job after job, and a steward that renews the leases of whatever it finds there.

Source: what ``steward/leases.py`` does for a hand, for a lane: it reads, asks the store, and writes when the lane may
have another job already. The lane's turn is raised with each job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Next = Iterator[tuple[str, "World"]]
#: ticks
RETRY_AFTER = 3


class Rules(NamedTuple):
    """What a steward writes."""

    #: it counts only for the turn that it has seen, which it writes after it
    turns: bool = True
    #: the end is counted from before the store was asked; else from when it is written
    from_before: bool = True


class World(NamedTuple):
    """Times are ticks from now."""

    turn: int = 0
    #: the end of the lease of the present job, in the store and on the board
    stored: int = RETRY_AFTER
    lease_end: int = RETRY_AFTER
    #: the turn for which the steward has written, and what
    renewed_turn: int = -1
    renewed_end: int = 0
    #: idle, read, asked, writes; the turn that it saw, and the end that the store said: ``None`` = there is no lease
    steward: str = "idle"
    saw: int = 0
    brought: int | None = None
    missed: int = -1
    #: the truth: for which turn the end was written
    end_is_of: int = -1
    is_lost: bool = False
    #: whether it was killed, and for the lease of another turn
    is_killed: bool = False
    is_mistaken: bool = False
    jobs: int = 2
    losses: int = 1

    def is_renewed(self, rules: Rules) -> bool:
        return self.renewed_turn == self.turn if rules.turns else self.renewed_turn >= 0

    def end(self, rules: Rules) -> int:
        """What the master takes for the end of the lease."""
        return self.renewed_end if self.is_renewed(rules) else self.lease_end


def steps(rules: Rules, world: World) -> Next:
    if world.is_killed:
        return
    if world.end(rules) <= 1:
        is_mistaken = world.is_renewed(rules) and world.end_is_of != world.turn
        yield "is killed before its lease ends", world._replace(is_killed=True, is_mistaken=is_mistaken)
    else:
        yield "tick", _later(rules, world)
    if world.jobs:
        yield "has another job", _another(rules, world)
    if world.losses and world.stored:
        yield "its lease is lost", world._replace(losses=world.losses - 1, stored=0, is_lost=True)
    yield from _of_the_steward(world)


def _another(rules: Rules, world: World) -> World:
    """The worker writes the lease of its new job; where turns do not count, it clears the renewal of the old one."""
    fresh = world._replace(jobs=world.jobs - 1, turn=world.turn + 1, stored=RETRY_AFTER, lease_end=RETRY_AFTER)
    return fresh._replace(is_lost=False, renewed_turn=world.renewed_turn if rules.turns else -1)


def _later(rules: Rules, world: World) -> World:
    brought = None if world.brought is None else max(world.brought - rules.from_before, 0)
    return world._replace(
        stored=max(world.stored - 1, 0),
        lease_end=max(world.lease_end - 1, 0),
        renewed_end=max(world.renewed_end - 1, 0),
        brought=brought,
    )


def _of_the_steward(world: World) -> Next:
    match world.steward:
        case "idle":
            yield "the steward reads", world._replace(steward="read", saw=world.turn)
        case "read":
            yield "the store renews, or not", _asked(world)
        case "asked" if world.brought is None and world.missed != world.saw:
            yield "the steward will look once more", world._replace(steward="idle", missed=world.saw)
        case "asked":
            written = world._replace(renewed_end=world.brought or 0, end_is_of=world.saw)
            yield "the steward writes the end", written._replace(steward="writes")
        case "writes":
            yield "the steward writes the turn", world._replace(steward="idle", renewed_turn=world.saw, brought=None)


def _asked(world: World) -> World:
    """A job that has ended has no lease."""
    has_lease = world.saw == world.turn and world.stored > 0
    if not has_lease:
        return world._replace(steward="asked", brought=None)
    return world._replace(steward="asked", stored=RETRY_AFTER, brought=RETRY_AFTER)


def who_runs_has_a_lease(world: World) -> bool:
    """Unless it was taken away, which the next renewals find."""
    return world.is_killed or world.is_lost or world.stored > 0


def nobody_is_killed_for_the_lease_of_another(world: World) -> bool:
    return not world.is_mistaken


LAWS = [who_runs_has_a_lease, nobody_is_killed_for_the_lease_of_another]
