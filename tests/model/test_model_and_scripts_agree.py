"""The searched model agrees with the store's model, and that one is compared with the real scripts.

So what is proven of ``scripts.py`` (see test_every_interleaving.py) is proven of the Lua (see
test_any_order_of_verbs_on_redis.py).
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.model import scripts
from tests.model.jobs import Job
from tests.model.rules import Rules
from tests.model.shelves import RETRY_AFTER, Shelves
from tests.model.world import Copy, World
from tests.support.effort import effort, patient

#: a lease is three ticks long, and so is one that ends an eighth of a second late
TICK = RETRY_AFTER / 3 + 0.1
QUEUE, OUTCOMES = "default", "outcomes"
RULES = Rules(follows=True, jobs=2, retry_after=3, most_attempts=99)
NUMBERS = {b"a": 0, b"b": 1}

workers = st.integers(0, 1)
places = st.integers(0, 3)


class Both(RuleBasedStateMachine):
    """Leases are picked from all that ever were: most settlements come too late."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World = RULES.first()
        self.shelves = Shelves([QUEUE, OUTCOMES], 1_000_000.0)
        self.shelves.push(QUEUE, [Job(name + b":", b"0") for name in NUMBERS], 0.0)
        self.leases: list[tuple[int, bytes]] = []

    @rule()
    def tick(self) -> None:
        """And a stage: the searched model does not tell apart what has been due for long."""
        self.world = self.world.later(RULES.retry_after)
        self.shelves.now += TICK
        self.stage()

    @rule()
    def stage(self) -> None:
        self.world = scripts.stage(self.world)
        self.shelves.stage([QUEUE])

    @rule(worker=workers)
    def reserve(self, worker: int) -> None:
        self.world, copy = scripts.take(scripts.stage(self.world), RULES, (worker, 0))
        leases = self.shelves.reserve([QUEUE], worker, 1).leases

        assert ([] if copy is None else [copy]) == [_copy(receipt) for _, receipt in leases]
        self.leases += [(worker, receipt) for _, receipt in leases]

    @precondition(lambda self: self.leases)
    @rule(place=places)
    def delete(self, place: int) -> None:
        worker, receipt = self._lease(place)
        self.world = scripts.delete(self.world, RULES, _copy(receipt), (worker, 0))
        self.shelves.end(QUEUE, receipt, worker)

    @precondition(lambda self: self.leases)
    @rule(place=places)
    def finish(self, place: int) -> None:
        worker, receipt = self._lease(place)
        self.world = scripts.finish(self.world, RULES, _copy(receipt), (worker, 0))
        self.shelves.finish(QUEUE, receipt, worker, (OUTCOMES, Job(receipt)))

    @precondition(lambda self: self.leases)
    @rule(place=places)
    def fail(self, place: int) -> None:
        worker, receipt = self._lease(place)
        self.world = scripts.fail(self.world, RULES, _copy(receipt), (worker, 0))
        if self.shelves.fail(QUEUE, receipt, worker, "job"):
            self.shelves.push(OUTCOMES, [Job(receipt)], 0.0)

    @precondition(lambda self: self.leases)
    @rule(place=places, delay=st.integers(0, 2))
    def release(self, place: int, delay: int) -> None:
        worker, receipt = self._lease(place)
        self.world = scripts.release(self.world, RULES, _copy(receipt), (worker, 0), delay)
        self.shelves.release(QUEUE, receipt, worker, delay * TICK, "job", "")

    @precondition(lambda self: self.leases)
    @rule(place=places, worker=workers)
    def give_back(self, place: int, worker: int) -> None:
        receipt = self._lease(place)[1]
        self.world = scripts.give_back(self.world, RULES, _copy(receipt), (worker, 0))
        self.shelves.give_back(QUEUE, [(receipt, worker)])

    @precondition(lambda self: self.leases)
    @rule(place=places, worker=workers)
    def renew(self, place: int, worker: int) -> None:
        receipt = self._lease(place)[1]
        renewed = scripts.renew(self.world, RULES, _copy(receipt), (worker, 0))

        assert (renewed is not None) == self.shelves.renew(QUEUE, receipt, worker)
        self.world = renewed or self.world

    @rule(worker=workers, asked=st.integers(0, 3), place=places, knows=st.booleans())
    def reclaim(self, worker: int, asked: int, place: int, knows: bool) -> None:
        known = [self._lease(place)[1]] if knows and self.leases else []
        copies: list[Copy | None] = [_copy(receipt) for receipt in known]
        self.world = scripts.reclaim(self.world, RULES, (worker, 0), -asked, copies[0] if copies else None)
        self.shelves.reclaim(QUEUE, worker, asked * TICK, known)

    @invariant()
    def they_hold_the_same(self) -> None:
        shelf = self.shelves.of[QUEUE]

        assert list(self.world.ready) == [_copy(job.raw) for job in shelf.ready]
        assert sorted(copy for _, copy in self.world.delayed) == sorted(map(_copy, shelf.delayed))
        pushed = [_copy(job.raw).job for job in self.shelves.of[OUTCOMES].ready]
        assert self.world.outcomes == tuple(map(pushed.count, NUMBERS.values()))
        held = {(_copy(raw), row.tag) for raw, row in shelf.reserved.items()}
        assert {(lease.copy, lease.tag[0]) for lease in self.world.reserved} == held

    def _lease(self, place: int) -> tuple[int, bytes]:
        return self.leases[-1 - place % len(self.leases)]


def _copy(raw: bytes) -> Copy:
    name, _, attempts = raw.partition(b":")
    return Copy(NUMBERS[name], int(attempts))


@patient
def test_both_models_hold_the_same_after_any_verbs() -> None:
    machine: Callable[[], RuleBasedStateMachine] = Both

    run_state_machine_as_test(machine, settings=effort(60, steps=30))
