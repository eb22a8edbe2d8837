"""A worker ends a job from which something follows: at once, and not with the next reserve."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.model import scripts
from tests.model.deaths import sent
from tests.model.rules import Rules
from tests.model.world import Copy, Tag, Worker, World


def finishing(rules: Rules, world: World, number: int, worker: Worker, owner: Tag) -> Iterator[tuple[str, World]]:
    """``worker`` has done its job; its call may be lost on either way, and is repeated then."""
    assert worker.copy
    if not rules.together and worker.does == "idle":
        yield "pushes its outcome", scripts.push_outcome(world, worker.copy).worker(number, does="repeating")
        return
    finished, is_repeated = _finished(rules, world, worker.copy, owner), worker.does == "repeating"
    life = world.unused_life(number) if is_repeated and rules.retires else worker.life
    idle = partial(World.worker, number=number, stage="", copy=None, does="idle", lease_end=0, life=life)
    yield "repeats its finish" if is_repeated else "settles", idle(finished)
    if world.losses:
        unheard = finished._replace(losses=world.losses - 1)
        yield "settles, unheard", unheard.worker(number, does="repeating")
    if "finish" in rules.late and not world.flying:
        flying = sent(world, "finish", owner, worker.copy, owner)
        yield "gives up a finish on its way", flying.worker(number, does="repeating")


def _finished(rules: Rules, world: World, copy: Copy, owner: Tag) -> World:
    return (scripts.finish if rules.together else scripts.delete)(world, rules, copy, owner)
