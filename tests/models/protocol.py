"""Who may do what next: workers, the steward that buries and renews, the master that kills, and the clock."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from models import scripts
from models.deaths import bury, die, dying, is_overdue, is_to_lose_its_lease, sent
from models.world import Copy, Rules, Tag, Worker, World, raised

Next = Iterator[tuple[str, World]]
#: ticks after which an unanswered command counts as lost
_PATIENCE = 1


def steps(rules: Rules, world: World) -> Next:
    """Every step that may follow; the clock moves by a step of its own, and not past a kill that is due."""
    if not any(world.stored()) and not any(worker.stage for worker in world.workers):
        return
    if all(_may_wait(rules, worker) for worker in world.workers) and not (rules.prompt and world.dead):
        yield "tick", world.later(rules.retry_after)
    staged = scripts.stage(world)
    if staged != world:
        yield "stage", staged
    for command in world.flying:
        yield f"{command[0]} arrives", _arrive(rules, world._replace(flying=()), *command)
    for place, obituary in enumerate(world.dead):
        if world.is_mastered or obituary.tag[0] != 0:
            rest = world.dead[:place] + world.dead[place + 1 :]
            buried = bury(rules, world, obituary)
            yield f"bury w{obituary.tag[0]}", buried._replace(dead=rest)
            if world.losses and buried != world:
                yield f"bury w{obituary.tag[0]}, unheard", buried._replace(losses=world.losses - 1)
    yield from _of_the_master(world)
    for number, worker in enumerate(world.workers):
        for label, following in _of_a_worker(rules, world, number, worker):
            yield f"w{number} {label}", following


def _may_wait(rules: Rules, worker: Worker) -> bool:
    """Whether nothing must happen to this worker before the clock moves."""
    if worker.asked is not None and worker.asked <= -_PATIENCE:
        return worker.does == "unsure" and not rules.prompt
    if rules.swift and worker.stage in ("held", "done"):
        return False
    return not (is_overdue(rules, worker) or is_to_lose_its_lease(rules, worker))


def _of_the_master(world: World) -> Next:
    """Worker 0 has a master that may die; worker 1 is on another host."""
    if world.masters and world.is_mastered:
        dies = world._replace(masters=world.masters - 1, is_mastered=False)
        yield "master dies", dies.worker(0, orphan=True)
    if not world.is_mastered:
        yield "master returns", world._replace(is_mastered=True)


def _of_a_worker(rules: Rules, world: World, number: int, worker: Worker) -> Next:
    tag = (number, worker.life)
    if worker.orphan and not worker.stage:
        if world.is_mastered:
            yield "is replaced", world.worker(number, **Worker(life=world.unused_life(number))._asdict())
        return
    yield from _asking(rules, world, number, worker, tag)
    if worker.stage == "held" and worker.asked is None:
        yield "starts", _start(rules, world, number, worker)
    if worker.stage == "running" and worker.copy:
        yield from _ending(rules, world, number, worker.copy, tag)
    if rules.renewed and worker.stage and worker.copy and worker.asked is None and (world.is_mastered or number):
        yield _renewed(rules, world, number, worker.copy, tag)
    yield from dying(rules, world, number, worker)


def _asking(rules: Rules, world: World, number: int, worker: Worker, tag: Tag) -> Next:
    is_free = worker.does == "idle" and worker.stage in ("", "done")
    if is_free and not worker.orphan:
        yield from _reserving(rules, world.worker(number, does="asking", asked=0), number, tag)
    elif is_free and worker.copy:
        yield "deletes", scripts.delete(world, worker.copy, tag).worker(number, stage="", copy=None)
    if worker.does == "asking":
        yield "is served", _serve(rules, world, number, tag)
    if worker.does == "answered":
        yield "hears", _hear(rules, world, number)
    if worker.does == "unsure":
        back = scripts.reclaim(world, rules, tag, worker.asked or 0, worker.copy)
        yield "reclaims", back.worker(number, does="idle", asked=None)


def _reserving(rules: Rules, asking: World, number: int, tag: Tag) -> Next:
    """In one step where that is enough; with nothing to settle, nobody asks for nothing."""
    if rules.slow:
        yield "asks", asking
    elif asking.workers[number].copy or scripts.stage(asking).ready:
        served = _serve(rules, asking, number, tag)
        yield "reserves", _hear(rules, served, number)
        if asking.losses:
            yield "reserves, unheard", _unheard(rules, served, number)
    if asking.losses:
        yield "asks in vain", _unheard(rules, asking, number)
    if rules.late == "reserve" and not asking.flying:
        yield "gives up a reserve on its way", _unheard(rules, sent(asking, "reserve", tag), number)


def _unheard(rules: Rules, world: World, number: int) -> World:
    worker = world.workers[number]._replace(does="unsure", answer=None)
    if not rules.reclaims:
        worker = worker._replace(does="idle", asked=None)
    return world._replace(losses=max(world.losses - 1, 0)).worker(number, **worker._asdict())


def _serve(rules: Rules, world: World, number: int, tag: Tag) -> World:
    worker = world.workers[number]
    if worker.copy:
        world = scripts.delete(world, worker.copy, tag)
    world, answer = scripts.take(scripts.stage(world) if rules.steward else world, rules, tag)
    return world.worker(number, does="answered", answer=answer)


def _hear(rules: Rules, world: World, number: int) -> World:
    worker = world.workers[number]
    end = rules.retry_after + (0 if rules.lease_from_hearing else worker.asked or 0)
    heard = world.worker(
        number, does="idle", answer=None, asked=None, copy=worker.answer, lease_end=end if worker.answer else 0,
        stage="held" if worker.answer else "",
    )  # fmt: skip
    return heard if rules.steward or not worker.answer else _start(rules, heard, number, heard.workers[number])


def _start(rules: Rules, world: World, number: int, worker: Worker) -> World:
    assert worker.copy
    begun = world._replace(starts=raised(world.starts, worker.copy.job))
    again = begun.wrong("finished ran again", worker.copy.job in world.finished)
    again = again.wrong("killer ran again", world.deaths[worker.copy.job] >= rules.max_crashes)
    return again.worker(number, stage="running", deadline=rules.timeout or 0)


def _ending(rules: Rules, world: World, number: int, copy: Copy, tag: Tag) -> Next:
    idle = partial(World.worker, number=number, stage="", copy=None, does="idle", lease_end=0, deadline=0)
    worker = world.workers[number]
    if worker.does == "repeating":
        yield "repeats its release", idle(scripts.release(world, rules, copy, tag, 0))
    elif rules.steward:
        marked = world._replace(finished=world.finished | {copy.job}) if world.lease_of(copy) else world
        yield "finishes", marked.worker(number, stage="done", deadline=0)
    else:
        yield "deletes", idle(scripts.delete(world, copy, tag)._replace(done=world.done | {copy.job}))
    for delay in rules.delays if worker.does != "repeating" else ():
        released = scripts.release(world, rules, copy, tag, delay)
        yield f"releases({delay})", idle(released)
        if world.losses:
            unheard = released._replace(losses=world.losses - 1)
            yield f"releases({delay}) unheard", unheard.worker(number, does="repeating")


def _renewed(rules: Rules, world: World, number: int, copy: Copy, tag: Tag) -> tuple[str, World]:
    renewed = scripts.renew(world, rules, copy, tag)
    if renewed is not None:
        return "is renewed", renewed.worker(number, lease_end=rules.retry_after)
    if world.workers[number].orphan:
        return "is not renewed", world
    return "is not renewed and killed", die(rules, world, number, "lease")


def _arrive(rules: Rules, world: World, verb: str, tag: Tag, copy: Copy | None) -> World:
    """A command whose sender has given up, or is dead."""
    if verb == "release" and copy:
        return scripts.release(world, rules, copy, tag, 0)
    return scripts.take(scripts.stage(world), rules, tag)[0]
