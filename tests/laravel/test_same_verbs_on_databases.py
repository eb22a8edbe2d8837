"""The same verbs through Laravel's own DatabaseQueue and through ours: where the semantics must agree, the rows do.

Two queues in one table. What happens in the one, Laravel does alone; in the other every verb is done by us, or by
Laravel and us by turns as in a fleet of both. After each step both queues must hold the same rows, column by column
but for the number, the age of a job that was released, and what ``available_at`` says while it is reserved. We differ
there on purpose, and in the fractions of seconds and late settlements that do not occur here:
``test_deliberate_differences.py`` shows how, and why. Laravel cannot renew a lease or give a job back: in its queue
that is done by hand.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from hypothesis.stateful import run_state_machine_as_test as run
from sqlalchemy import text

from queuepool.payload.lease import Lease
from tests.support.effort import effort, patient
from tests.support.laravel_peer import Talk
from tests.support.samples import TALLIES, new_jobs
from tests.support.shared_tables import TABLES, Shared, made

pytestmark = made("sqlite-8", "postgres-13", "mariadb-8")

ALONE, TOGETHER = "alone", "together"
NOW = 1_800_000_000
COLUMNS = ("payload", "attempts", "reserved_at", "available_at", "created_at")

bodies = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
by_us = st.booleans()
delays = st.sampled_from([0, 1, 5, 60])
tallies = st.sampled_from(["", *TALLIES])

Told = dict[str, Any]
#: one job in both queues, as it was reserved; of ours, the lease
Pair = tuple[Told, Told | Lease]


class Sides(RuleBasedStateMachine):
    talk: Talk
    shared: Shared
    #: whether every verb in the second queue is ours
    only_ours: bool
    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.shared.change(*(f"DELETE FROM {table}" for table in TABLES))
        self.ours = self.shared.store
        self.numbers = count()
        self.now = NOW
        self.time_passes(0)

    @rule(seconds=st.sampled_from([1, 4, 30, 89, 90]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.ours.clock = f"{self.now}.0"

    @rule(body=bodies, delay=delays, ours=by_us)
    def push(self, body: str, delay: int, ours: bool) -> None:
        raw = f"{next(self.numbers)} {body}"
        self._laravel("later", ALONE, raw=raw, delay=delay)
        if self._do(ours):
            self.ours.push(TOGETHER, new_jobs(raw.encode()), float(delay))
        else:
            self._laravel("later", TOGETHER, raw=raw, delay=delay)

    @rule(target=held, ours=by_us, tag=st.sampled_from([1, 2]))
    def pop(self, ours: bool, tag: int) -> Any:
        alone = self._laravel("pop", ALONE)
        if self._do(ours):
            leases = self.ours.reserve([TOGETHER], tag, 1).leases
            together = leases[0] if leases else None
            told = (together.receipt.decode(), together.attempts) if together else (None, None)
        else:
            together = self._laravel("pop", TOGETHER)
            told = (together["raw"], together["attempts"])

        assert told == (alone["raw"], alone["attempts"])
        return (alone, together) if alone["id"] else multiple()

    @rule(pair=consumes(held))
    def delete(self, pair: Pair) -> None:
        alone, together = pair
        if not self._is_live(alone):
            return
        self._laravel("delete", ALONE, **alone)
        if isinstance(together, Lease):
            assert [True] == self.ours.delete([together])
        else:
            self._laravel("delete", TOGETHER, **together)

    @rule(pair=consumes(held), delay=delays, tally=tallies)
    def release(self, pair: Pair, delay: int, tally: str) -> None:
        alone, together = pair
        if not self._is_live(alone):
            return
        self._laravel("release", ALONE, **alone, delay=delay)
        if isinstance(together, Lease):
            assert self.ours.release(together, float(delay), "job", tally)
        else:
            self._laravel("release", TOGETHER, **together, delay=delay)

    @rule(pair=held)
    def a_late_settlement_of_ours_changes_nothing(self, pair: Pair) -> None:
        """Laravel's would: it asks for nothing but the number."""
        alone, together = pair
        if isinstance(together, Lease) and not self._is_live(alone):
            assert [False] == self.ours.delete([together])
            assert not self.ours.release(together, 0.0, "job")

    @rule(pair=consumes(held))
    def we_give_back_what_we_took(self, pair: Pair) -> None:
        alone, together = pair
        if isinstance(together, Lease) and self._is_live(alone):
            assert [True] == self.ours.give_back([together])
            self._by_hand("reserved_at = NULL, attempts = attempts - 1, available_at = :now", alone)

    @rule(pair=held)
    def we_renew_what_we_took(self, pair: Pair) -> None:
        alone, together = pair
        if isinstance(together, Lease) and self._is_live(alone):
            assert [True] == self.ours.renew([together])
            self._by_hand("reserved_at = :now", alone)

    @invariant()
    def both_queues_hold_the_same(self) -> None:
        alone, together = self._rows(ALONE), self._rows(TOGETHER)

        assert alone == together
        sizes = self.ours.sizes(TOGETHER)
        assert len(alone) == sizes.total == self._laravel("size", TOGETHER)

    def _do(self, ours: bool) -> bool:
        return ours or self.only_ours

    def _laravel(self, verb: str, queue: str, **order: object) -> Any:
        return self.talk.ask(verb, **order, queue=queue, now=self.now)

    def _by_hand(self, change: str, job: Told) -> None:
        """In Laravel's queue, for what it has no verb."""
        self._say(f"UPDATE jobs SET {change} WHERE id = :id", now=self.now, id=job["id"])

    def _is_live(self, job: Told) -> bool:
        """Whether Laravel's row still is of this attempt."""
        found = self._say("SELECT attempts FROM jobs WHERE id = :id AND reserved_at IS NOT NULL", id=job["id"]).scalar()
        return bool(found == job["attempts"])

    def _rows(self, queue: str) -> list[dict[str, Any]]:
        found = self._say(f"SELECT {', '.join(COLUMNS)} FROM jobs WHERE queue = :queue ORDER BY id", queue=queue)
        return [_compared(dict(row)) for row in found.mappings()]

    def _say(self, line: str, **values: Any) -> Any:
        return self.shared.stores.client.ask(lambda connection: connection.execute(text(line), values))


def _compared(row: dict[str, Any]) -> dict[str, Any]:
    if row["attempts"]:  # it may have been released
        del row["created_at"]
    if row["reserved_at"] is not None:
        del row["available_at"]
    return row


@patient
@pytest.mark.parametrize("only_ours", [True, False], ids=["alone", "in a fleet"])
@pytest.mark.by_turns("only_ours")
@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.thorough("more of the same"))])
def test_what_we_write_is_what_laravel_writes(shared, talk, only_ours, share):
    machine = type("Sides", (Sides,), {"talk": talk, "shared": shared, "only_ours": only_ours})

    run(machine, settings=effort((15 if shared.brand == "sqlite" else 6) // share, steps=30))
