"""Jobs with limits that start, end, are given back and lost in any order, and what must hold after each step."""

from __future__ import annotations

import random
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.lease import NOTHING, Lease
from queuepool.payload.limits import NO_PART, PlaceAsked, holding, job_word, name_of
from queuepool.stores.contract import NewJob
from queuepool.stores.factory import Stores
from queuepool.stores.limits import GRANT_LASTS
from tests.support.samples import ids, payload, record
from tests.support.store_contract import RETRY_AFTER, Clock, attempts_of

QUEUES = "high", "low"
#: what a job may ask for: its limits' names, with the values and partitions that they have
_KINDS = ("import",), ("gpu",), ("import", "gpu"), ("stripe",), ("gpu", "stripe")
_PERIOD = 3.0


@dataclass(frozen=True, slots=True)
class Held:
    """A job that runs, as its worker knows it; ``ends``: its lease, unless it is renewed."""

    lease: Lease
    asked: tuple[PlaceAsked, ...]
    ends: float


@dataclass
class Trial:
    """One history. ``seed`` decides it."""

    built: Stores
    seed: int
    asked: dict[str, tuple[PlaceAsked, ...]] = field(default_factory=dict)
    #: the attempts that each job has begun
    begun: Counter[str] = field(default_factory=Counter)
    running: list[Held] = field(default_factory=list)
    #: those whose hosts are lost: their leases end by themselves
    lost: list[Held] = field(default_factory=list)
    starts: dict[str, list[float]] = field(default_factory=dict)
    over: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.store, self.limits = self.built.queue, self.built.queue.limits
        self.limits.in_use = True
        self.clock = Clock(self.store)
        self.tag = self.store.join()
        self.numbers = {"import": self.chance.randint(1, 2), "gpu": self.chance.randint(1, 3), "stripe": 2}
        self.by_hand: dict[str, int] = {}

    def run(self, steps: int) -> None:
        """Act at random, then let all that is left run to its end. Raises ``AssertionError``."""
        for _ in range(steps):
            acts = [self.push, self.push, self.start, self.start, self.start, self.end, self.end, self.wait, self.sweep]
            rare = self.give_back, self.lose, self.renew, self.renew, self.set_number, self.repeat, self.run_unlimited
            self.chance.choice([*acts, *rare])()
            self.check()
        for name in list(self.by_hand):
            self.limits.set(name, None)
            self.by_hand.pop(name)
        self.lost, self.running = [*self.lost, *self.running], []
        self.clock.advance(RETRY_AFTER + 1)
        self.limits.sweep("")
        for _ in range(40 * (len(self.asked) + 1)):
            if self.over == len(self.asked):
                return
            self.start()
            if self.running:
                self.end(at_once=True)
            self.clock.advance(0.25)
            self.sweep()
            self.check()
        raise AssertionError(f"{len(self.asked) - self.over} of {len(self.asked)} jobs are stuck: {self.where()}")

    def where(self) -> str:
        """For a failure."""
        return f"seed {self.seed}: {self.limits.by_key()} {[self.store.sizes(queue) for queue in QUEUES]}"

    def push(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            name, queue = f"j{len(self.asked)}", self.chance.choice(QUEUES)
            kind = self.chance.choice(_KINDS)
            tenant = self.chance.choice("xyz")
            self.asked[name] = tuple(self.place(one, tenant) for one in kind)
            knows = self.chance.random() < 0.5
            job = NewJob(payload(name), None, job_word(name), self.asked[name] if knows else ())
            self.store.push(queue, [job])

    def place(self, name: str, tenant: str) -> PlaceAsked:
        key = f"{name}={tenant}" if name == "import" else name
        return PlaceAsked(key, tenant if name == "gpu" else NO_PART, self.numbers[name], _PERIOD * (name == "stripe"))

    def start(self) -> None:
        self.store.stage(QUEUES)
        for lease in self.store.reserve(QUEUES, self.tag, self.chance.randint(1, 2)).leases:
            [name], held = ids([lease]), holding(lease)
            entry = self.limits.enter(held, name, self.asked[name])
            assert entry.is_in or entry.parked_at, self.where()
            if entry.is_in:
                self.begins(name, Held(held, self.asked[name], self.clock.now + RETRY_AFTER))

    def begins(self, name: str, held: Held) -> None:
        self.begun[name] += 1
        assert attempts_of(held.lease) == self.begun[name], f"{name} lost a try by waiting: {self.where()}"
        for one in held.asked:
            if one.per:
                self.starts.setdefault(one.key, []).append(self.clock.now)
            live = [other for other in (*self.running, *self.lost) if other.ends > self.clock.now]
            there = sum(one.key == own.key for other in live for own in other.asked)
            assert one.per or there < self.number(one.key), f"{name} is one too many at {one.key}: {self.where()}"
            recent = [at for at in self.starts.get(one.key, ()) if at > self.clock.now - _PERIOD + 0.01]
            assert len(recent) <= self.number(one.key), f"{name} began too early at {one.key}: {self.where()}"
        self.running.append(held)

    def number(self, key: str) -> int:
        return self.by_hand.get(name_of(key), self.numbers[name_of(key)])

    def drawn(self) -> Held | None:
        """One that runs, and whose lease has not ended."""
        self.running = [one for one in self.running if one.ends > self.clock.now] + []
        return self.running.pop(self.chance.randrange(len(self.running))) if self.running else None

    def end(self, *, at_once: bool = False) -> None:
        held = self.drawn()
        if held is None:
            return
        [name] = ids([held.lease])
        if at_once or self.chance.random() < 0.6:
            assert self.store.finish(held.lease, NOTHING), self.where()
            self.over += 1
        elif self.chance.random() < 0.3:
            assert self.store.fail(held.lease, name, record(held.lease, name)), self.where()
            self.over += 1
        else:
            assert self.store.release(held.lease, self.chance.choice([0.0, 2.0]), name), self.where()
        assert not self.store.finish(held.lease, NOTHING), "a lease ends once"

    def give_back(self) -> None:
        if held := self.drawn():
            assert [True] == self.store.give_back([held.lease]), self.where()
            self.begun.subtract(ids([held.lease]))

    def repeat(self) -> None:
        """The answer was lost."""
        if (held := self.drawn()) and not any(one.per for one in held.asked):
            assert self.limits.enter(held.lease, ids([held.lease])[0], held.asked).is_in, self.where()
        if held:
            self.running.append(held)

    def run_unlimited(self) -> None:
        """Code that does not know the limits runs a job, for which a place may be kept."""
        for lease in self.store.reserve(QUEUES, self.tag, 1).leases:
            assert self.store.finish(lease, NOTHING), self.where()
            self.over += 1

    def lose(self) -> None:
        if held := self.drawn():
            self.lost.append(held)

    def renew(self) -> None:
        live = [one for one in self.running if one.ends > self.clock.now]
        if live:
            assert all(self.store.renew([one.lease._replace(holder="") for one in live])), self.where()
            self.running = [Held(one.lease, one.asked, self.clock.now + RETRY_AFTER) for one in live]

    def wait(self) -> None:
        self.clock.advance(self.chance.choice([0.05, GRANT_LASTS + 0.05, 1.0, RETRY_AFTER * 0.6]))
        over = [one for one in self.running if one.ends <= self.clock.now]
        self.lost += over
        self.running = [one for one in self.running if one not in over]

    def sweep(self) -> None:
        self.store.stage(QUEUES)
        due: float | None = 0.0
        for _ in range(20):
            due = self.limits.sweep()
            if due != 0.0:
                return

    def set_number(self) -> None:
        name = self.chance.choice(sorted(self.numbers))
        if self.limits.set(name, number := self.chance.randint(0, 3)):
            self.by_hand[name] = number
            self.limits.sweep(name)

    def check(self) -> None:
        """What holds at any moment."""
        self.nothing_is_lost()
        for one in self.limits.by_key():
            if one.parked and self.ending(one.key) == 0:
                assert one.held + one.granted >= self.number(one.key), (
                    f"a place of {one.key} is at rest: {self.where()}"
                )

    def ending(self, key: str) -> int:
        """How many places have ended by themselves, which a sweep hands on."""
        ended = sum(
            one.key == key and one.per == 0 and other.ends <= self.clock.now + 1.1
            for other in (*self.lost, *self.running) for one in other.asked
        )  # fmt: skip
        return ended + sum(at <= self.clock.now - _PERIOD + 0.01 for at in self.starts.get(key, ()))

    def nothing_is_lost(self) -> None:
        there = sum(self.store.sizes(queue).total + self.limits.parked(queue) for queue in QUEUES)
        assert there == len(self.asked) - self.over, f"{there} jobs are there: {self.where()}"


def main() -> None:
    """``python -m tests.support.limit_laws URL PREFIX SEEDS``: so many histories, until one breaks a law."""
    url, prefix, seeds = sys.argv[1:]
    for seed in range(int(seeds)):
        with closing(Stores(ConnectionSettings(url=url, prefix=f"{prefix}{seed}:", retry_after=RETRY_AFTER))) as built:
            try:
                Trial(built, seed).run(60)
            except AssertionError as broken:
                sys.exit(str(broken))


if __name__ == "__main__":
    main()
