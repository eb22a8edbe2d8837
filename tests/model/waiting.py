"""A reserve that waits at the server: it was sent behind a wait, and is carried out when that ends.

Source: ``worker/prefetch.py`` (``await_jobs``). The server forgets it with the connection, but hears of that end only
later: what a worker gave up, or left behind when it died, may still be carried out.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import scripts
from tests.model.deaths import sent
from tests.model.rules import Rules
from tests.model.world import Lease, Tag, Worker, World

Next = Iterator[tuple[str, World]]


def waiting(rules: Rules, world: World, number: int, worker: Worker, tag: Tag, owner: Tag) -> Next:
    """The steps of a worker that waits so, or may begin to."""
    if not rules.waits:
        return
    if worker.does == "idle" and worker.stage in ("", "done") and not worker.orphan:
        yield "sends a reserve that waits", _sent(rules, world, number, worker, owner)
    if worker.does == "waiting":
        if worker.copy:
            yield "hears that its job is deleted", world.worker(number, stage="", copy=None)
        yield "is served after a wait", _served(rules, world, number, tag)
        yield from _giving_up(rules, world, number, tag, owner)
    if worker.stage == "held" and worker.copy and worker.asked is None:
        back = scripts.give_back(world, rules, worker.copy, owner)
        yield "may not begin what it waited for", back.worker(number, stage="", copy=None, lease_end=0)


def _sent(rules: Rules, world: World, number: int, worker: Worker, owner: Tag) -> World:
    """What is done is deleted before the wait, in the same write; its worker knows of that only once it hears."""
    if worker.copy:
        world = scripts.delete(world, rules, worker.copy, owner)
    return world.worker(number, does="waiting", asked=0 if rules.shows_waits else None)


def _served(rules: Rules, world: World, number: int, tag: Tag) -> World:
    world, answer = scripts.take(scripts.stage(world), rules, tag)
    return world.worker(number, does="answered", answer=answer)


def _giving_up(rules: Rules, world: World, number: int, tag: Tag, owner: Tag) -> Next:
    """A signal ended the wait, or the connection did: as after any reserve without an answer."""
    if not world.losses:
        return
    left = world._replace(losses=world.losses - 1)
    given_up = left.worker(number, does="unsure") if rules.reclaims else left.worker(number, does="idle", asked=None)
    yield "gives up its wait", given_up
    if not world.flying:
        yield "gives up its wait, its reserve at the server", sent(given_up, "reserve", tag, None, owner)


def what_has_not_begun_waits_for_no_lease(world: World) -> bool:
    """Who reserved it holds it, may have it without knowing, or has died and is still to be buried."""
    unbegun = [lease for lease in world.reserved if lease.copy.attempts != world.starts[lease.copy.job]]
    return all(_is_looked_after(world, lease) for lease in unbegun)


def _is_looked_after(world: World, lease: Lease) -> bool:
    for number, worker in enumerate(world.workers):
        asks = worker.asked is not None and (number, worker.life) == lease.tag
        if asks or (worker.copy == lease.copy and (number, worker.held) == lease.tag):
            return True
    dead = [one for one in world.dead if one.tag == lease.tag and one.asked is not None]
    return bool(dead) or any((one.copy, one.owner) == (lease.copy, lease.tag) for one in world.dead)
