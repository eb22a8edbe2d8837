"""How far a pool has come in replacing its workers, by its board or by its notice."""

from __future__ import annotations

from typing import NamedTuple

from queuepool.board.overview import PoolOverview


class Rollout(NamedTuple):
    """Whether the new code works in a pool; if it does not, ``problem`` says why it will not by itself, if so."""

    is_done: bool
    words: str
    problem: str

    @classmethod
    def of(cls, pool: PoolOverview, newest: int = 0) -> Rollout:
        """``newest``: the least generation that its restart brings about."""
        newest = max(newest, pool.generation)
        workers = [one for one in pool.processes if one.role == "worker" and one.state != "dead"]
        renewed = {one.number for one in workers if one.generation >= newest and one.state != "starting"}
        # An old one that is busy leaves after its job; any other could still take one.
        is_done = (
            pool.generation == newest
            and len(renewed) >= pool.workers
            and not any(one.generation < newest and one.state not in ("busy", "draining") for one in workers)
        )
        words = f"{len(renewed)} of {pool.workers} workers run the new code"
        return cls(is_done, words, "" if is_done else _problem(pool, newest))


def _problem(pool: PoolOverview, newest: int) -> str:
    if pool.state == "draining":
        return "it is being stopped"
    if pool.boot_problem and pool.generation == newest:
        return f"the new code does not become ready: {pool.boot_problem}"
    return ""
