"""The steps of each process: workers, the steward, the master that kills, and the clock."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.model import scripts
from tests.model.deaths import bury, die, dying, is_overdue, is_to_lose_its_lease, sent, settling
from tests.model.finishing import finishing
from tests.model.rules import Rules
from tests.model.waiting import waiting
from tests.model.world import Copy, Obituary, Request, Tag, Worker, World, raised

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
    for request in world.flying:
        yield f"{request.verb} arrives", _arrive(rules, world._replace(flying=()), request)
    for obituary in world.dead:
        if world.is_mastered or obituary.tag[0] != 0:
            yield from _burying(rules, world, obituary)
    yield from _of_the_master(world)
    for number, worker in enumerate(world.workers):
        for label, following in _of_a_worker(rules, world, number, worker):
            yield f"w{number} {label}", following


def _burying(rules: Rules, world: World, obituary: Obituary) -> Next:
    buried, label = bury(rules, world, obituary), f"bury w{obituary.tag[0]}"
    place = world.dead.index(obituary)
    yield label, buried._replace(dead=world.dead[:place] + world.dead[place + 1 :])
    if world.losses and buried != world:
        yield f"{label}, unheard", buried._replace(losses=world.losses - 1)
    if "bury" in rules.late and not world.flying and (late := settling(rules, world, obituary)):
        yield f"{label}, on its way", late


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
    tag, owner = rules.tag(number, worker.life), rules.tag(number, worker.held)
    if worker.orphan and not worker.stage and worker.does != "waiting":
        if world.is_mastered:
            yield "is replaced", world.worker(number, **Worker(life=world.unused_life(number))._asdict())
        return
    if rules.follows and worker.stage == "done":
        yield from finishing(rules, world, number, worker, owner)
    else:
        yield from _asking(rules, world, number, worker, tag, owner)
    if worker.stage == "held" and worker.asked is None:
        yield "starts", _start(rules, world, number, worker)
    if worker.stage == "running" and worker.copy:
        yield from _ending(rules, world, number, worker.copy, owner)
    if rules.renewed and worker.stage and worker.copy and worker.asked is None and (world.is_mastered or number):
        yield _renewed(rules, world, number, worker.copy, owner)
        if "renew" in rules.late and not world.flying:
            yield "is to be renewed, on its way", sent(world, "renew", tag, worker.copy, owner)
    yield from dying(rules, world, number, worker)


def _asking(rules: Rules, world: World, number: int, worker: Worker, tag: Tag, owner: Tag) -> Next:
    is_free = worker.does == "idle" and worker.stage in ("", "done")
    if is_free and not worker.orphan:
        yield from _reserving(rules, world.worker(number, does="asking", asked=0), number, tag, owner)
    elif is_free and worker.copy:
        yield "deletes", scripts.delete(world, rules, worker.copy, owner).worker(number, stage="", copy=None)
    yield from waiting(rules, world, number, worker, tag, owner)
    if worker.does == "asking":
        yield "is served", _serve(rules, world, number, tag, owner)
    if worker.does == "answered":
        yield "hears", _hear(rules, world, number)
    if worker.does == "unsure":
        yield "reclaims", _reclaimed(rules, world, number, worker, tag)
        if "reclaim" in rules.late and not world.flying:
            yield "gives up a reclaim on its way", sent(world, "reclaim", tag, worker.copy, owner)


def _reclaimed(rules: Rules, world: World, number: int, worker: Worker, tag: Tag) -> World:
    """What it did not hear of went back; first of all its tag was retired."""
    life = world.unused_life(number) if rules.retires else worker.life
    back = scripts.reclaim(world, rules, tag, worker.asked or 0, worker.copy)
    return back.worker(number, does="idle", asked=None, life=life)


def _reserving(rules: Rules, asking: World, number: int, tag: Tag, owner: Tag) -> Next:
    """In one step where that is enough; with nothing to settle, nobody asks for nothing."""
    if rules.slow:
        yield "asks", asking
    elif asking.workers[number].copy or scripts.stage(asking).ready:
        served = _serve(rules, asking, number, tag, owner)
        yield "reserves", _hear(rules, served, number)
        if asking.losses:
            yield "reserves, unheard", _unheard(rules, served, number)
    if asking.losses:
        yield "asks in vain", _unheard(rules, asking, number)
    if "reserve" in rules.late and asking.losses and not asking.flying:
        flying = sent(asking, "reserve", tag, asking.workers[number].copy, owner)
        yield "gives up a reserve on its way", _unheard(rules, flying, number)


def _unheard(rules: Rules, world: World, number: int) -> World:
    worker = world.workers[number]._replace(does="unsure", answer=None)
    if not rules.reclaims:
        worker = worker._replace(does="idle", asked=None)
    return world._replace(losses=max(world.losses - 1, 0)).worker(number, **worker._asdict())


def _serve(rules: Rules, world: World, number: int, tag: Tag, owner: Tag) -> World:
    worker = world.workers[number]
    if worker.copy:
        world = scripts.delete(world, rules, worker.copy, owner)
    world, answer = scripts.take(scripts.stage(world) if rules.steward else world, rules, tag)
    return world.worker(number, does="answered", answer=answer)


def _hear(rules: Rules, world: World, number: int) -> World:
    worker = world.workers[number]
    end = rules.retry_after + (0 if rules.lease_from_hearing else worker.asked or 0)
    heard = world.worker(
        number, does="idle", answer=None, asked=None, copy=worker.answer, lease_end=end if worker.answer else 0,
        stage="held" if worker.answer else "", held=worker.life,
    )  # fmt: skip
    return heard if rules.steward or not worker.answer else _start(rules, heard, number, heard.workers[number])


def _start(rules: Rules, world: World, number: int, worker: Worker) -> World:
    assert worker.copy
    if not rules.may_begin(worker.copy.attempts):
        failed = scripts.fail(world, rules, worker.copy, rules.tag(number, worker.held))
        return failed.worker(number, stage="", copy=None, lease_end=0)
    begun = world._replace(starts=raised(world.starts, worker.copy.job))
    again = begun.wrong("finished ran again", worker.copy.job in world.finished)
    again = again.wrong("killer ran again", world.deaths[worker.copy.job] >= rules.max_crashes)
    return again.worker(number, stage="running", deadline=rules.timeout or 0)


def _ending(rules: Rules, world: World, number: int, copy: Copy, tag: Tag) -> Next:
    idle = partial(World.worker, number=number, stage="", copy=None, does="idle", lease_end=0, deadline=0)
    worker = world.workers[number]
    if worker.does == "repeating":
        life = world.unused_life(number) if rules.retires and rules.steward else worker.life
        yield "repeats its release", idle(scripts.release(world, rules, copy, tag, 0), life=life)
    elif rules.steward:
        marked = world._replace(finished=world.finished | {copy.job}) if world.lease_of(copy) else world
        yield "finishes", marked.worker(number, stage="done", deadline=0)
    else:
        yield "deletes", idle(scripts.delete(world, rules, copy, tag)._replace(done=world.done | {copy.job}))
    for delay in rules.delays if worker.does != "repeating" else ():
        released = scripts.release(world, rules, copy, tag, delay)
        yield f"releases({delay})", idle(released)
        if world.losses:
            unheard = released._replace(losses=world.losses - 1)
            yield f"releases({delay}) unheard", unheard.worker(number, does="repeating")
    if "release" in rules.late and worker.does != "repeating" and not world.flying:
        flying = sent(world, "release", tag, copy, tag)
        yield "gives up a release on its way", flying.worker(number, does="repeating")


def _renewed(rules: Rules, world: World, number: int, copy: Copy, tag: Tag) -> tuple[str, World]:
    renewed = scripts.renew(world, rules, copy, tag)
    if renewed is not None:
        return "is renewed", renewed.worker(number, lease_end=rules.retry_after)
    if world.workers[number].orphan:
        return "is not renewed", world
    return "is not renewed and killed", die(rules, world, number, "lease")


def _arrive(rules: Rules, world: World, request: Request) -> World:
    """A command whose sender has given up, or is dead."""
    verb, tag, copy, owner = request
    if verb == "reserve":
        if rules.retires and world.is_retired(tag):
            return world
        settled = scripts.delete(world, rules, copy, owner) if copy else world
        return scripts.take(scripts.stage(settled), rules, tag)[0]
    if verb == "reclaim":
        return scripts.reclaim(world, rules, tag, -rules.retry_after, copy)
    assert copy
    match verb:
        case "release":
            return scripts.release(world, rules, copy, owner, 0)
        case "delete":
            return scripts.delete(world, rules, copy, owner)
        case "finish":
            return scripts.finish(world, rules, copy, owner)
        case "give back":
            return scripts.give_back(world, rules, copy, owner)
        case _:
            return scripts.renew(world, rules, copy, owner) or world
