"""The invariants: what is promised in every state."""

from __future__ import annotations

from collections import Counter

from tests.model.world import World


def nothing_is_lost(world: World) -> bool:
    kept = {copy.job for copy in world.stored()} | world.done | world.failed
    return len(kept) == len(world.starts)


def a_job_is_stored_once(world: World) -> bool:
    return max(Counter(copy.job for copy in world.stored()).values(), default=0) <= 1


def what_ended_is_stored_no_more(world: World) -> bool:
    return not any(copy.job in world.done | world.failed for copy in world.stored())


def no_two_run_a_job_at_once(world: World) -> bool:
    running = [worker.copy.job for worker in world.workers if worker.is_running and worker.copy]
    return len(running) == len(set(running))


def only_the_owner_settles(world: World) -> bool:
    return not {"stale", "twice"} & world.wrongs


def what_finished_never_runs_again(world: World) -> bool:
    return "finished ran again" not in world.wrongs


def who_killed_too_many_never_runs_again(world: World) -> bool:
    return "killer ran again" not in world.wrongs


def no_death_is_a_failure(world: World) -> bool:
    return "failed by a death" not in world.wrongs


def attempts_are_starts(world: World) -> bool:
    """A job that waits was begun as often as it says; one that is reserved has begun, or is about to."""
    waiting = [*world.ready, *(copy for _, copy in world.delayed)]
    reserved = [lease.copy for lease in world.reserved]
    return all(copy.attempts == world.starts[copy.job] for copy in waiting) and all(
        copy.attempts - world.starts[copy.job] in (0, 1) for copy in reserved
    )


def no_start_is_uncounted(world: World) -> bool:
    return all(copy.attempts >= world.starts[copy.job] for copy in world.stored())


def what_ended_has_one_outcome_and_nothing_else_has_any(world: World) -> bool:
    ended = world.done | world.failed
    return all(count == (job in ended) for job, count in enumerate(world.outcomes))


LAWS = [
    nothing_is_lost,
    a_job_is_stored_once,
    what_ended_is_stored_no_more,
    no_two_run_a_job_at_once,
    only_the_owner_settles,
    what_finished_never_runs_again,
    who_killed_too_many_never_runs_again,
    no_death_is_a_failure,
    no_start_is_uncounted,
    attempts_are_starts,
    what_ended_has_one_outcome_and_nothing_else_has_any,
]
