"""Random graphs whose members are ended, ended again, lost, copied, retried and cancelled in any order: the laws hold.

The laws are those of ``docs/design.md``: a member is pushed only when its rule holds, letters change only as they may,
as many jobs exist as members run, and a flow is over when none does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from queuepool.errors import NoSuchFlow
from queuepool.payload.lease import Lease
from queuepool.payload.members import NewMember, member_in_text
from queuepool.stores.factory import Stores
from queuepool.stores.flows import FlowRecord
from queuepool.stores.records import Retrying
from queuepool.stores.sql.flows import SqlFlows
from tests.support.drivers import connection_of, opened
from tests.support.graphs import Drawn, as_done, ended
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import RETRY_AFTER, Clock

#: each letter, and those that may follow it; the last two only when the flow is resumed
NEXT = {"w": "rck", "r": "dfc", "d": "", "k": "", "c": "wrdf", "f": "rdf"}
GRAPHS, MORE_GRAPHS, ACTIONS = 2, 60, 60


@pytest.fixture(params=["redis", "sqlite", "postgres"])
def built(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with opened(connection_of(request.param, request)) as stores:
        yield stores


def drawn_graph(chance: random.Random) -> dict[str, list[str]]:
    """Up to nine members, each of which may follow any before it."""
    graph: dict[str, list[str]] = {}
    for number in range(chance.randint(1, 9)):
        before = chance.sample(sorted(graph), chance.randint(0, min(3, len(graph))))
        rule = chance.choice(["", "", "?f", "?a"]) if before else ""
        graph[f"m{number}{rule}"] = before
    return graph


class Run:
    """One flow in the store, and what may be done to it."""

    def __init__(self, built: Stores, seed: int) -> None:
        self.chance = random.Random(seed)
        self.built, self.clock = built, Clock(built.queue)
        self.graph: dict[str, list[str]] = drawn_graph(self.chance)
        self.drawn = Drawn(self.graph, stops=self.chance.random() < 0.5, deadline=1e9, keep=1e9)
        self.held: list[Lease] = []
        #: leases that have ended with their jobs, and those that have ended before: another may have these now
        self.stale: list[Lease] = []
        self.lost: list[Lease] = []
        self.copies = 0
        #: of the next worker: each reserves once, so that no two leases are equal
        self.tag = 0
        self.letters = dict.fromkeys(self.graph, "w")
        #: the members that have ended once
        self.over = set[str]()
        self.is_cancelled = False
        self.state = "running"

    def begin(self) -> None:
        """The producer writes pieces, some twice, and starts the flow more than once."""
        members = self.drawn.members
        for one in members:
            if one is not members[0]:
                with pytest.raises(NoSuchFlow):
                    self.built.flows.start(self.drawn.id)
            for _ in range(self.chance.randint(1, 2)):
                self.built.flows.add(self.drawn.flow, [one])
        for _ in range(self.chance.randint(1, 2)):
            self.built.flows.start(self.drawn.id)

    def act(self) -> None:
        actions = [
            self.reserve,
            self.end,
            self.end,
            self.end,
            self.end_with_a_reserve,
            self.end_with_a_reserve,
            self.end_again,
            self.end_late,
            self.lose,
            self.copy,
            self.retry,
            self.retry,
            self.look,
        ]
        self.chance.choice(actions)()
        if self.chance.random() < 0.01:
            self.check()  # what was just done may have resumed it
            self.is_cancelled |= self.built.flows.cancel(self.drawn.id)

    def reserve(self) -> None:
        self._reserve(self.chance.randint(1, 3))

    def _reserve(self, most: int, done: Sequence[Lease] = ()) -> list[Lease]:
        """Returns those of the done ones whose leases were lost."""
        self.tag += 1
        self.built.queue.stage(["default"])
        found = self.built.queue.reserve(["default"], self.tag, most, [as_done(lease) for lease in done])
        self.held += found.leases
        self.built.flows.after(found.flows)
        return found.refused

    def end(self) -> None:
        if self.held:
            lease = self.held.pop(self.chance.randrange(len(self.held)))
            how = self.chance.choice(["d", "d", "d", "f", "o"])
            adds = how == "d" and self.chance.random() < 0.3
            assert ended(self.built.queue, lease, how, children=self.children_of(lease) if adds else ())
            self.stale.append(lease)

    def end_with_a_reserve(self) -> None:
        """Some that are done, and one that has ended before: its reply was lost."""
        done = self.chance.sample(self.held, min(len(self.held), self.chance.randint(1, 4)))
        again = self.stale[-1:]
        self.held = [lease for lease in self.held if lease not in done]
        lost = self._reserve(self.chance.randint(0, 2), [*done, *again])
        assert [as_done(lease) for lease in again] == lost
        self.stale += done

    def children_of(self, lease: Lease) -> tuple[NewMember, ...]:
        """Members that this one adds, which all that follow it wait for too; none if it has ended before."""
        member = member_in_text(lease.receipt.decode())
        assert member
        parent = next(name for name, number in self.drawn.numbers.items() if number == member.number)
        if self.letters[parent] != "r" or "." in member.number:
            return ()
        found, followers = list[NewMember](), [follows for follows in self.graph.values() if parent in follows]
        for count in range(self.chance.randint(1, 2)):
            name, number = f"{parent.partition('?')[0]}-{count}", f"{member.number}.{count}"
            text = payload(name, qpFlow=f"{self.drawn.id}:{number}")
            found.append(NewMember(number, "s", "default", 0.0, text))
            for follows in followers:
                follows.append(name)
            self.graph[name] = [parent]
            self.drawn.numbers[name], self.letters[name] = number, "w"
        return tuple(found)

    def end_again(self) -> None:
        if self.stale:
            assert not ended(self.built.queue, self.chance.choice(self.stale), self.chance.choice(["d", "f"]))

    def end_late(self) -> None:
        if self.lost:  # a database lets it, as long as nobody has taken the job
            ended(self.built.queue, self.chance.choice(self.lost), self.chance.choice(["d", "f"]))

    def lose(self) -> None:
        """All leases end, and the jobs are ready again."""
        self.lost += self.held
        self.held = []
        self.clock.advance(RETRY_AFTER + 1)
        self.built.queue.stage(["default"])

    def copy(self) -> None:
        """A job is in its queue twice, as after a push whose reply was lost."""
        if self.chance.random() < 0.2:
            self.built.queue.push("default", new_jobs(self.chance.choice(self.drawn.members).payload))
            self.copies += 1

    def retry(self) -> None:
        if failed := self.built.failed.page():
            self.built.failed.retry_all([Retrying(self.chance.choice(failed))])

    def look(self) -> None:
        if isinstance(self.built.flows, SqlFlows):
            self.built.flows._look_again = 0.0  # as if five seconds had passed
        self.built.flows.look()
        assert not self._is_late(self.built.flows.find(self.drawn.id)), "a steward ends what a copy has kept"

    def check(self) -> None:
        numbers = {one.number: one.letter for one in self.built.flows.members(self.drawn.id)}
        now = {name: numbers[number] for name, number in self.drawn.numbers.items()}
        self.over |= {name for name, letter in now.items() if letter in "dfck"}
        for name, letter in now.items():
            before = self.letters[name]
            assert letter == before or letter in NEXT[before], f"{name}: {before} became {letter}"
            if letter == "r" and before == "w":
                assert self._may_start(name, now), f"{name} started too early: {now}"
        record = self.built.flows.find(self.drawn.id)
        assert record
        if "running" not in (self.state, record.state):
            begun = [name for name in now if now[name] == "r" and self.letters[name] in "wc" and "?" not in name]
            assert not begun, f"{begun} started although the flow is {record.state}"
        self.letters, self.state = now, record.state
        sizes = self.built.queue.sizes("default")
        running = list(now.values()).count("r")
        assert running <= sizes.total <= running + self.copies
        is_over = record.is_over or self._is_late(record)
        assert is_over == (running == 0), f"{record.state} with {running} running"

    def _is_late(self, record: FlowRecord | None) -> bool:
        """Whether a reserve of a database has taken a copy, whose end, or a steward, is to end the flow."""
        assert record
        if record.is_over or record.counts.running or not isinstance(self.built.flows, SqlFlows):
            return False
        return bool(self.built.queue.sizes("default").total and (self.held or self.lost))

    def _may_start(self, name: str, now: dict[str, str]) -> bool:
        follows = self.graph[name]
        if name.endswith(("?a", "?f")):  # what has ended once may have been resumed since: it is told of once
            return self.over.issuperset(follows)
        return {now[one] for one in follows} <= {"d"}

    def finish(self) -> None:
        """With retries of all that has failed, everything ends."""
        for _ in range(100):
            self._reserve(100)
            failed = self.built.failed.page()
            if not (self.held or failed):
                return
            if self.chance.random() < 0.5:
                done, self.held = self.held, []
                assert not self._reserve(0, done)
                self.check()
            while self.held:
                assert ended(self.built.queue, self.held.pop())
                self.check()
            self.built.failed.retry_all([Retrying(one) for one in failed])
            self.check()
        raise AssertionError("it does not come to an end")


_MORE = pytest.mark.thorough("more graphs")


@pytest.mark.every_store("built")
@pytest.mark.parametrize(
    "seed", [*range(GRAPHS), *(pytest.param(seed, marks=_MORE) for seed in range(GRAPHS, MORE_GRAPHS))]
)
def test_the_laws_hold_whatever_is_done(built, seed):
    run = Run(built, seed)
    run.begin()
    run.check()
    for _ in range(ACTIONS):
        run.act()
        run.check()
    run.finish()

    assert 0 == run.built.queue.sizes("default").total
    assert run.built.flows.find(run.drawn.id).is_over
    assert run.state == "done" or (run.is_cancelled and run.state == "cancelled")
    assert set(run.letters.values()) <= ({"d", "k"} if run.state == "done" else {"w", "d", "c", "k"})
