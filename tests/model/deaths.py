"""A worker dies, leaves its board, and the steward settles what is on it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import scripts
from tests.model.rules import Rules
from tests.model.world import Copy, Obituary, Request, Tag, Worker, World, raised

_HOW = {"crash": "crashes", "stop": "is stopped"}


def is_overdue(rules: Rules, worker: Worker) -> bool:
    return rules.timeout is not None and worker.is_running and worker.deadline <= 0


def is_to_lose_its_lease(rules: Rules, worker: Worker) -> bool:
    """Nobody kills an orphan: its master is gone."""
    return rules.lease_kill and bool(worker.stage) and not worker.orphan and worker.lease_end <= 1


def dying(rules: Rules, world: World, number: int, worker: Worker) -> Iterator[tuple[str, World]]:
    if is_overdue(rules, worker):
        yield "is overdue", die(rules, world, number, "overdue")
    elif is_to_lose_its_lease(rules, worker):
        yield "is killed before its lease ends", die(rules, world, number, "lease")
    elif world.crashes and (worker.stage or worker.asked is not None or worker.does == "waiting"):
        yield from _with_a_late_request(rules, world._replace(crashes=world.crashes - 1), number, "crash")
    if world.stops and worker.stage:
        yield from _with_a_late_request(rules, world._replace(stops=world.stops - 1), number, "stop")


def _with_a_late_request(rules: Rules, world: World, number: int, why: str) -> Iterator[tuple[str, World]]:
    """Its death, and the same with what it had sent and nobody has carried out yet."""
    worker, dies = world.workers[number], die(rules, world, number, why)
    yield _HOW[why], dies
    if "release" in rules.late and worker.is_running and not world.flying:
        owner = rules.tag(number, worker.held)
        yield f"{_HOW[why]}, its release on the way", sent(dies, "release", owner, worker.copy, owner)
    if worker.does == "waiting" and not world.flying:
        tag = rules.tag(number, worker.life)
        yield f"{_HOW[why]}, its reserve at the server", sent(dies, "reserve", tag, None, tag)


def sent(world: World, verb: str, tag: Tag, copy: Copy | None, owner: Tag) -> World:
    return world._replace(flying=(Request(verb, tag, copy, owner),))


def die(rules: Rules, world: World, number: int, why: str) -> World:
    worker = world.workers[number]
    if worker.is_running and why == "crash" and worker.copy:
        world = world._replace(deaths=raised(world.deaths, worker.copy.job))
    fresh = Worker(life=world.unused_life(number) if rules.steward else 0, orphan=worker.orphan)
    leaves_nothing = worker.asked is None and why == "lease" and worker.is_running
    if rules.steward and not leaves_nothing:
        tag, owner = rules.tag(number, worker.life), rules.tag(number, worker.held)
        obituary = Obituary(tag, why, worker.stage, worker.copy, worker.asked, owner)
        world = world._replace(dead=(*world.dead, obituary))
    return world.worker(number, **fresh._asdict())


def bury(rules: Rules, world: World, dead: Obituary) -> World:
    if dead.asked is not None:
        world = scripts.reclaim(world, rules, dead.tag, dead.asked, dead.copy)
    if dead.copy is None:
        return world
    if dead.stage == "done":
        end = scripts.finish if rules.follows and rules.looks else scripts.delete
        return end(world, rules, dead.copy, dead.owner)
    if dead.stage == "held" or dead.why == "stop":
        return scripts.give_back(world, rules, dead.copy, dead.owner)
    return world if dead.why == "lease" else _rule(rules, world, dead.copy, dead.owner, dead.why)


def settling(rules: Rules, world: World, dead: Obituary) -> World | None:
    """A request of the steward's that settles this death, on its way; ``None`` when it sends none."""
    if dead.copy is None or dead.why == "lease":
        return None
    verb = {"done": "finish" if rules.follows else "delete", "held": "give back"}.get(
        dead.stage, "give back" if dead.why == "stop" else "release"
    )
    return sent(world, verb, dead.tag, dead.copy, dead.owner)


def _rule(rules: Rules, world: World, copy: Copy, tag: Tag, why: str) -> World:
    if world.lease_of(copy) is None or why != "crash":
        return scripts.release(world, rules, copy, tag, 0)
    before = max(world.tallies[copy.job], copy.attempts - rules.tries if rules.tries else 0)
    if before + 1 >= rules.max_crashes or (rules.counts_deaths and 0 < rules.tries <= copy.attempts):
        return scripts.fail(world, rules, copy, tag)
    return scripts.release(world._replace(tallies=raised(world.tallies, copy.job)), rules, copy, tag, 0)
