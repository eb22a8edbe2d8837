"""Two workers draw their tags, and a replica that lags is promoted: it does not know the last of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TAGS = range(1, 4)


class Server(NamedTuple):
    """``leases``: the tag of each, and whose job it is, which only the model knows."""

    last: int = 0
    tags: frozenset[int] = frozenset()
    leases: frozenset[tuple[int, int]] = frozenset()


class Worker(NamedTuple):
    """``joined``: how many servers had been promoted when it drew its tag."""

    tag: int = 0
    joined: int = 0


class World(NamedTuple):
    primary: Server = Server()
    replica: Server = Server()
    promoted: int = 0
    workers: tuple[Worker, ...] = (Worker(), Worker())
    #: whether a running job was given back by a worker that does not have it
    taken_away: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    #: else from a counter
    by_lot: bool = True
    #: where another server answers, a worker draws another tag before it reserves there
    anew: bool = True
    #: the lot never falls on the tag of a worker that the server does not know (once in 131,072 it does)
    lucky: bool = True


def steps(rules: Rules, world: World) -> Iterator[tuple[str, World]]:
    if world.replica != world.primary:
        yield "is carried over", world._replace(replica=world.primary)
    if not world.promoted:
        yield "is promoted", world._replace(primary=world.replica, promoted=1)
    for number, worker in enumerate(world.workers):
        if not worker.tag:
            yield from _joining(rules, world, number, "joins")
            continue
        if worker.joined == world.promoted or not rules.anew:
            yield f"w{number} reserves", _with(world, world.primary.leases | {(worker.tag, number)})
        yield f"w{number} ends", _with(world, world.primary.leases - {(worker.tag, number)})
        yield from _joining(rules, _given_back(world, number), number, "joins again")


def _given_back(world: World, number: int) -> World:
    """What was reserved under its tag, but for what it knows: its own."""
    found = {(tag, owner) for tag, owner in world.primary.leases if tag == world.workers[number].tag}
    others = {(tag, owner) for tag, owner in found if owner != number}
    return _with(world, world.primary.leases - found)._replace(taken_away=world.taken_away or bool(others))


def _joining(rules: Rules, world: World, number: int, verb: str) -> Iterator[tuple[str, World]]:
    server = world.primary
    free = [tag for tag in _TAGS if tag not in server.tags]
    if not rules.by_lot:
        free = [tag for tag in free if tag > server.last][:1]
    elif rules.lucky:
        free = [tag for tag in free if tag not in {worker.tag for worker in world.workers}]
    for tag in free:
        joined = list(world.workers)
        joined[number] = Worker(tag, world.promoted)
        known = server._replace(last=tag, tags=server.tags | {tag})
        yield f"w{number} {verb} as {tag}", world._replace(primary=known, workers=tuple(joined))


def _with(world: World, leases: frozenset[tuple[int, int]]) -> World:
    return world._replace(primary=world.primary._replace(leases=leases))


def no_tag_has_jobs_of_two(world: World) -> bool:
    return len({tag for tag, _ in world.primary.leases}) == len(world.primary.leases)


def nobody_gives_back_what_another_runs(world: World) -> bool:
    return not world.taken_away


LAWS = [no_tag_has_jobs_of_two, nobody_gives_back_what_another_runs]
