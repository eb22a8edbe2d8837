"""A pool that is stopped while a worker of an earlier, killed master runs a job: that orphan must be looked after.

Source: ``master/shutdown.py``, ``Master._stop_helpers``, ``StewardProcess.run``, ``steward/orphaned_boards.py``. The
master and the steward know of each other by the board alone, by signals, and by each other's death.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Next = Iterator[tuple[str, "World"]]


class Rules(NamedTuple):
    """What each process does; with any of these changed, a law is broken."""

    #: the master waits for the orphans that the steward counts, and replaces a steward that dies meanwhile
    waits: bool = True
    replaces: bool = True
    #: it does so only as long as its patience lasts, and not until they are counted as gone
    gives_up: bool = False
    #: the steward goes on after the death of its master
    outlives: bool = True
    #: the steward ends orphans when the master's patience is over, and not when it is told to leave
    asks_the_master: bool = True
    #: a steward counts anew before it leaves
    counts_last: bool = True


class World(NamedTuple):
    """One master, its steward and its successors, one orphan; and how often who can still be killed or signalled."""

    #: runs, stopping, ended, killed
    master: str = "runs"
    #: runs, outlives (its master), gone
    steward: str = "runs"
    #: a stop signal is on its way to the steward
    told: bool = False
    #: what the board says: whether there are orphans; ``None`` = not counted yet by this steward
    counted: bool | None = None
    is_patience_over: bool = False
    #: another's (its own steward lives and looks after it), runs (now it is ours), dead, settled
    orphan: str = "runs"
    ended_too_early: bool = False
    #: kills of either process, and signals to the steward from elsewhere
    kills: int = 2
    signals: int = 1

    @property
    def has_steward(self) -> bool:
        return self.steward != "gone"


def steps(rules: Rules, world: World) -> Next:
    """Every step that may follow."""
    for label, following in (*_of_the_world(world), *_of_the_master(rules, world), *_of_the_steward(rules, world)):
        if following != world:
            yield label, following


def _of_the_world(world: World) -> Next:
    if world.kills and world.orphan == "another's" and world.has_steward:
        yield "the orphan's own steward is killed", world._replace(kills=world.kills - 1, orphan="runs")
    if world.orphan == "runs":
        yield "the orphan ends", world._replace(orphan="dead")
    if world.kills and world.has_steward:
        yield "the steward is killed", world._replace(kills=world.kills - 1, steward="gone", told=False)
    if world.kills and world.master in ("runs", "stopping"):
        yield "the master is killed", world._replace(kills=world.kills - 1, master="killed")
    if world.signals and world.steward == "runs":
        yield "the steward alone is told to leave", world._replace(signals=world.signals - 1, told=True)


def _of_the_master(rules: Rules, world: World) -> Next:
    if world.master == "runs":
        yield "the pool is stopped", world._replace(master="stopping")
        if not world.has_steward:
            yield "the steward is replaced", _successor(world)
    if world.master == "stopping":
        yield "its patience is over", world._replace(is_patience_over=True)
        yield from _stopping(rules, world)


def _stopping(rules: Rules, world: World) -> Next:
    """A master needs a steward while there may be orphans; until they are counted, to settle its own workers."""
    needs_steward = rules.waits and world.counted is not False and not (rules.gives_up and world.is_patience_over)
    if needs_steward and not world.has_steward and rules.replaces:
        yield "the steward is replaced during the stop", _successor(world)
    if not needs_steward and world.steward == "runs":
        yield "the master tells the steward to leave", world._replace(told=True)
    if not (needs_steward and rules.replaces) and not world.has_steward:
        yield "the pool has ended", world._replace(master="ended")


def _successor(world: World) -> World:
    """The count of its predecessor stays on the board."""
    return world._replace(steward="runs", told=False)


def _of_the_steward(rules: Rules, world: World) -> Next:
    if not world.has_steward:
        return
    yield "a round", _round(rules, world)
    if world.master == "killed":
        yield "hears of its master's death", _alone(rules, world)
    elif world.told:
        yield "heeds the signal", _told(rules, world)


def _round(rules: Rules, world: World) -> World:
    """Count the orphans, end them if they are unwanted, settle those that are dead."""
    world = world._replace(counted=world.orphan == "runs")
    if world.orphan == "dead":
        return world._replace(orphan="settled")
    is_unwanted = world.master == "stopping" and (world.is_patience_over or (world.told and not rules.asks_the_master))
    if is_unwanted and world.orphan == "runs":
        early = world.ended_too_early or not world.is_patience_over
        return world._replace(orphan="dead", ended_too_early=early)
    return world


def _told(rules: Rules, world: World) -> World:
    """The last round; if it counts orphans, the master sends a successor."""
    return (_round(rules, world) if rules.counts_last else world)._replace(steward="gone", told=False)


def _alone(rules: Rules, world: World) -> World:
    if not rules.outlives:
        return world._replace(steward="gone")
    world = _round(rules, world)._replace(told=False)
    has_left = world.orphan not in ("runs", "dead")
    return world._replace(steward="gone" if has_left else "outlives")


#: whose the orphan is when the pool starts; of both stewards one may be killed, as nobody is left to replace both
FIRST = {"an orphan from before": World(), "an orphan that becomes ours": World(orphan="another's", kills=1)}


# What is promised


def who_runs_is_looked_after(world: World) -> bool:
    """Unless both were killed: then the next pool's steward does."""
    has_master = world.master in ("runs", "stopping")
    were_killed = world.master == "killed" and (world.kills == 0 or world.signals == 0)
    return world.orphan != "runs" or has_master or world.has_steward or were_killed


def nobody_is_ended_before_the_stop_waits_no_longer(world: World) -> bool:
    return not world.ended_too_early


def what_a_pool_leaves_is_settled(world: World) -> bool:
    """When it has ended in order."""
    return world.master != "ended" or world.orphan in ("settled", "another's")


LAWS = [who_runs_is_looked_after, nobody_is_ended_before_the_stop_waits_no_longer, what_a_pool_leaves_is_settled]
