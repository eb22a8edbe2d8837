"""Each Lua script as one step of the world."""

from __future__ import annotations

from tests.model.rules import Rules
from tests.model.world import Copy, Lease, Tag, World, raised


def stage(world: World) -> World:
    """What is due goes to the end of the ready list."""
    due = [copy for at, copy in sorted(world.delayed) if at <= 0]
    due += [lease.copy for lease in sorted(world.reserved, key=_place) if lease.end <= 0]
    if not due:
        return world
    return world._replace(
        ready=(*world.ready, *due),
        delayed=tuple(row for row in world.delayed if row[0] > 0),
        reserved=tuple(lease for lease in world.reserved if lease.end > 0),
    )


def _place(lease: Lease) -> tuple[object, ...]:
    """The tag is part of the score, and equal scores are ordered by bytes."""
    return lease.end, lease.tag, lease.copy


def take(world: World, rules: Rules, tag: Tag) -> tuple[World, Copy | None]:
    """The oldest job of the first queue that has one, reserved with one attempt more."""
    if not world.ready:
        return world, None
    place = min(range(len(world.ready)), key=lambda place: (rules.queues[world.ready[place].job], place))
    copy = world.ready[place]._replace(attempts=world.ready[place].attempts + 1)
    if copy.attempts > rules.most_attempts:
        return world, None
    ready = world.ready[:place] + world.ready[place + 1 :]
    others = tuple(lease for lease in world.reserved if lease.copy != copy)  # a sorted set merges what is equal
    lease = Lease(copy, rules.retry_after, tag)
    return world._replace(ready=ready, reserved=(*others, lease)), copy


def held(world: World, rules: Rules, copy: Copy, tag: Tag) -> Lease | None:
    """The lease, if it is still there and still this worker's."""
    lease = world.lease_of(copy)
    return lease if lease and (lease.tag == tag or not rules.tagged) else None


def drop(world: World, copy: Copy | None) -> World:
    return world._replace(reserved=tuple(lease for lease in world.reserved if lease.copy != copy))


def delete(world: World, rules: Rules, copy: Copy, tag: Tag) -> World:
    """The end of a job that was done, where the receipt is still there."""
    lease = held(world, rules, copy, tag)
    if lease is None:
        return world
    ended = world.wrong("stale", lease.tag != tag).wrong("twice", copy.job in world.done)
    return drop(ended._replace(done=world.done | {copy.job}), copy)


def finish(world: World, rules: Rules, copy: Copy, tag: Tag) -> World:
    """As ``delete``, and its outcome is pushed in the same step."""
    is_ours = held(world, rules, copy, tag) is not None
    return push_outcome(delete(world, rules, copy, tag), copy) if is_ours or not rules.checked else world


def push_outcome(world: World, copy: Copy) -> World:
    return world._replace(outcomes=raised(world.outcomes, copy.job))


def release(world: World, rules: Rules, copy: Copy, tag: Tag, delay: int) -> World:
    """Tried again, now or later; Laravel's does not look whether the receipt is there."""
    lease = held(world, rules, copy, tag)
    if lease is None and rules.fenced:
        return world
    freed = drop(world.wrong("stale", lease is None or lease.tag != tag), copy)
    if delay or not rules.fenced:
        return freed._replace(delayed=tuple(sorted({*freed.delayed, (delay, copy)})))
    return freed._replace(ready=(*freed.ready, copy))


def fail(world: World, rules: Rules, copy: Copy, tag: Tag) -> World:
    lease = held(world, rules, copy, tag)
    if lease is None:
        return world
    ended = world.wrong("stale", lease.tag != tag).wrong("failed by a death", copy.attempts < rules.max_crashes)
    return drop(push_outcome(ended, copy)._replace(failed=world.failed | {copy.job}), copy)


def give_back(world: World, rules: Rules, copy: Copy, tag: Tag) -> World:
    """To the head of its queue, attempts as before; a job that had begun counts as never begun."""
    lease = held(world, rules, copy, tag)
    if lease is None:
        return world
    before = copy._replace(attempts=copy.attempts - 1)
    begun = world.starts[copy.job] == copy.attempts
    freed = drop(world.wrong("stale", lease.tag != tag), copy)
    return freed._replace(ready=(before, *freed.ready), starts=raised(freed.starts, copy.job, -int(begun)))


def reclaim(world: World, rules: Rules, tag: Tag, asked: int, known: Copy | None) -> World:
    """What this worker took since it asked, but for what it knows of."""
    for lease in sorted(world.reserved, key=_place, reverse=True):
        unheard = lease.tag == tag and lease.end >= asked + rules.retry_after
        if unheard and not (rules.reclaims_knowing and lease.copy == known):
            world = give_back(world, rules, lease.copy, tag)
    return world


def renew(world: World, rules: Rules, copy: Copy, tag: Tag) -> World | None:
    """``None`` where the lease had ended. Where it is not fenced, the member's score becomes this worker's."""
    lease = held(world, rules, copy, tag)
    if lease is None:
        return None
    others = tuple(other for other in world.reserved if other.copy != copy)
    return world.wrong("stale", lease.tag != tag)._replace(reserved=(*others, Lease(copy, rules.retry_after, tag)))
