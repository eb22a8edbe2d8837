"""The same verbs through Laravel's own RedisQueue and through ours: where the semantics must agree, they do.

Two queues on one server. What happens in the one, Laravel does alone; in the other every verb is done by Laravel or by
us, by turns, as in a fleet of both. After each step both queues must hold the same jobs in the same order, due at the
same second, begun as often.

Not compared, for there we differ on purpose: the bytes of a job that Laravel reserved (its pop writes them anew, so
that [] becomes {} and long numbers are rounded: the payloads here have neither), late settlements (ours are refused),
twins (Laravel merges them), wake-up tokens (Laravel miscounts them), and a lease's fraction of a second (it is our
tag). Two rows that are due at the same second are ordered by bytes, so no two are. A job released without delay is
ready at once with us, at the next poll with Laravel: so both are polled.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from hypothesis.stateful import run_state_machine_as_test as run

from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from tests.support.effort import effort, patient
from tests.support.laravel_peer import Peer, Talk
from tests.support.payload_strategies import PHP
from tests.support.redis_server import PREFIX
from tests.support.samples import TALLIES, new_jobs

ALONE, TOGETHER = "alone", "together"
#: our leases end up to an eighth of a second later than asked for; seconds must agree
RETRY_AFTER, OURS = 90, 89.9
TAG = 7

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-(10**13), 10**13) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(texts, inner, min_size=1, max_size=3),
    max_leaves=5,
)
by_us = st.booleans()
delays = st.integers(1, 30)
tallies = st.sampled_from(["", *TALLIES])


class Pair(NamedTuple):
    """One job in both queues: as pushed and as reserved; the tag of our worker that has it there, or 0."""

    alone: tuple[str, str]
    together: tuple[str, str]
    tag: int


class Sides(RuleBasedStateMachine):
    talk: Talk
    stores: Stores
    server: redis.Redis
    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.server.flushall()
        self.now = 1_700_000_000
        self.pushed = 0
        self.ours = self.stores.queue
        self._pass(0)

    @rule(seconds=st.sampled_from([1, 4, 30, 90]))
    def time_passes(self, seconds: int) -> None:
        self._pass(seconds)

    @rule(data=values, ours=by_us)
    def push(self, data: object, ours: bool) -> None:
        raw = self._payload(data)
        self._laravel("push", ALONE, raw=raw)
        self.ours.push(TOGETHER, new_jobs(raw.encode())) if ours else self._laravel("push", TOGETHER, raw=raw)

    @rule(data=values, delay=delays, ours=by_us)
    def later(self, data: object, delay: int, ours: bool) -> None:
        raw, delay = self._payload(data), self._untaken(delay)
        self._laravel("later", ALONE, raw=raw, delay=delay)
        if ours:
            self.ours.push(TOGETHER, new_jobs(raw.encode()), delay)
        else:
            self._laravel("later", TOGETHER, raw=raw, delay=delay)

    @rule(target=held, ours=by_us)
    def pop(self, ours: bool) -> Any:
        self._pass(self._untaken(RETRY_AFTER + 1) - RETRY_AFTER)
        alone = self._laravel("pop", ALONE)
        together = self._reserved() if ours else self._laravel("pop", TOGETHER)

        assert alone["id"] == together["id"]
        if alone["id"] is None:
            return multiple()
        assert alone["attempts"] == together["attempts"]
        return Pair((alone["raw"], alone["reserved"]), (together["raw"], together["reserved"]), TAG if ours else 0)

    @rule(pair=held)
    def we_do_not_settle_what_laravel_has_reserved(self, pair: Pair) -> None:
        if not pair.tag:
            assert [False] == self.ours.delete([_lease(pair)])
            assert not self.ours.release(_lease(pair), 0, "job")

    @rule(pair=consumes(held), ours=by_us)
    def delete(self, pair: Pair, ours: bool) -> None:
        if self._is_live(pair):
            self._settle("delete", ALONE, pair.alone)
            if ours and pair.tag:
                assert [True] == self.ours.delete([_lease(pair)])
            else:
                self._settle("delete", TOGETHER, pair.together)

    @rule(pair=consumes(held), delay=delays | st.just(0), ours=by_us, tally=tallies)
    def release(self, pair: Pair, delay: int, ours: bool, tally: str) -> None:
        if not delay:
            self.stage(ours=False)  # what has been due for long comes first with Laravel, and second with us
        if self._is_live(pair):
            delay = self._untaken(delay) if delay else 0
            self._settle("release", ALONE, pair.alone, delay=delay)
            if ours and pair.tag:
                assert self.ours.release(_lease(pair), delay, "job", tally)
            else:
                self._settle("release", TOGETHER, pair.together, delay=delay)
            if not delay:
                self.stage(ours=False)

    @rule(ours=by_us)
    def stage(self, ours: bool) -> None:
        self._laravel("stage", ALONE)
        self.ours.stage([TOGETHER]) if ours else self._laravel("stage", TOGETHER)

    @invariant()
    def both_queues_hold_the_same(self) -> None:
        alone, together = self._rows(ALONE), self._rows(TOGETHER)

        assert alone == together
        assert sum(map(len, alone)) == self._laravel("size", TOGETHER) == self.ours.sizes(TOGETHER).total

    def _payload(self, data: object) -> str:
        self.pushed += 1
        fields = {"uuid": "u", "displayName": "app.ok", "job": "app.ok", "maxTries": None, "data": data}
        return PHP.written(fields | {"id": f"job-{self.pushed}", "attempts": 0})

    def _laravel(self, verb: str, queue: str, **order: object) -> Any:
        return self.talk.ask(verb, queue=queue, now=self.now, **order)

    def _settle(self, verb: str, queue: str, job: tuple[str, str], **order: object) -> None:
        self._laravel(verb, queue, raw=job[0], receipt=job[1], **order)

    def _reserved(self) -> dict[str, Any]:
        leases = self.ours.reserve([TOGETHER], TAG, 1).leases
        receipt = leases[0].receipt.decode() if leases else "{}"
        fields = json.loads(receipt)
        return {"id": fields.get("id"), "attempts": fields.get("attempts"), "raw": receipt, "reserved": receipt}

    def _pass(self, seconds: int) -> None:
        self.now += seconds
        self.ours.clock = repr(float(self.now))

    def _untaken(self, delay: int) -> int:
        """The next delay that ends at a second at which nothing else is due."""
        taken = {score for rows in self._rows(ALONE)[1:] for _, score in rows}
        return next(later for later in count(delay) if self.now + later not in taken)

    def _is_live(self, pair: Pair) -> bool:
        return self.server.zscore(_key(ALONE, ":reserved"), pair.alone[1]) is not None

    def _rows(self, queue: str) -> list[list[Any]]:
        pipe = self.server.pipeline(transaction=False).lrange(_key(queue), 0, -1)
        for part in (":delayed", ":reserved"):
            pipe.zrange(_key(queue, part), 0, -1, withscores=True)
        ready, *timed = pipe.execute()
        timed = [[(json.loads(row), math.ceil(score)) for row, score in rows] for rows in timed]
        return [list(map(json.loads, ready)), *timed]


def _lease(pair: Pair) -> Lease:
    return Lease(TOGETHER, pair.together[1].encode(), pair.tag)


def _key(queue: str, part: str = "") -> str:
    return f"{PREFIX}queues:{queue}{part}"


@pytest.fixture
def talk(peer: Peer) -> Iterator[Talk]:
    with peer.serving() as talk:
        yield talk


@patient
@pytest.mark.parametrize("examples", [15, pytest.param(40, marks=pytest.mark.thorough("more of the same"))])
def test_a_fleet_of_both_does_what_laravel_does_alone(talk, server, connection, examples):
    stores = Stores(dataclasses.replace(connection, retry_after=OURS))
    machine = type("Sides", (Sides,), {"talk": talk, "server": server, "stores": stores})

    run(machine, settings=effort(examples, steps=30))
    stores.close()
