"""Laravel's tables beside a list of rows: after each step of a machine they must hold the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import text

from queuepool.payload.lease import Lease, Tallies
from queuepool.stores.factory import Stores
from queuepool.stores.sql.records import NO_JOB
from tests.model.rows import Row, Rows
from tests.support.samples import TALLIES

QUEUES = ("high", "default")
#: in mid-second, where rounding up and down differ
NOW = 1_800_000_000.5
#: the most that ``attempts`` holds, and the least
LIMITS = {"sqlite": (65535, -3), "postgres": (32767, -3), "mariadb": (65535, 0)}
TABLES = ("jobs", "failed_jobs", "cache")

_INSERT = """INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)
VALUES (:queue, :payload, :attempts, :reserved_at, :available_at, :created_at)"""

_JOBS = "SELECT id, queue, payload, attempts, reserved_at, available_at, created_at FROM jobs ORDER BY id"
_KEPT = "SELECT uuid, queue, payload, exception, failed_at FROM failed_jobs ORDER BY id"


class Tables(RuleBasedStateMachine):
    """``brand`` of the database; ``stores`` work on it."""

    stores: Stores
    brand: str

    def __init__(self) -> None:
        super().__init__()
        for table in TABLES:
            self.say(f"DELETE FROM {table}")
        self.store: Any = self.stores.queue
        self.most, self.least = LIMITS[self.brand]
        self.model = Rows(NOW, self.most)
        self.last_id = 0
        #: leases that some worker of ours was told of
        self.heard: list[Lease] = []
        self.store.clock = repr(NOW)

    @rule(seconds=st.sampled_from([0.25, 0.5, 5.0, 89.0, 90.0, 91.0]))
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds
        self.store.clock = repr(self.model.now)

    # What must be so

    @invariant()
    def the_table_holds_what_the_model_says(self) -> None:
        there = self.say(_JOBS).all()

        assert [row.shown() for row in self.model.jobs] == [(row[1], _raw(row[2]), *row[3:]) for row in there]
        for row, (number, *_) in zip(self.model.jobs, there, strict=True):
            self._is_told(row, number)

    @invariant()
    def the_records_are_those_of_the_model(self) -> None:
        there = self.say(_KEPT).all()

        found = [(queue, _raw(raw), said, str(at)[:19]) for _, queue, raw, said, at in there]
        assert [
            (one.queue, one.payload, NO_JOB + one.reason if one.reason else "x", _utc(one.at))
            for one in self.model.kept
        ] == found
        names = [uuid for uuid, _, _, said, _ in there if said == "x"]
        assert [one.identity for one in self.model.kept if not one.reason] == names

    @invariant()
    def sizes_and_tallies_are_those_of_the_model(self) -> None:
        for queue in QUEUES:
            found = self.store.sizes(queue)
            assert self.model.sizes(queue) == (
                found.ready, found.delayed, found.reserved, found.quarantined, found.oldest
            )  # fmt: skip
        expected = [self.model.tallies["job", tally] for tally in TALLIES]
        assert Tallies(*expected) == self.store.tallies("job")

    def say(self, line: str, **values: Any) -> Any:
        return self.stores.client.ask(lambda connection: connection.execute(text(line), values))

    def insert(self, row: Row) -> None:
        raw = None if row.payload is None else row.payload.decode()
        facts = {"queue": row.queue, "attempts": row.attempts, "reserved_at": row.reserved_at}
        self.say(_INSERT, **facts, payload=raw, available_at=row.available_at, created_at=row.created_at)
        self.model.jobs.append(row)

    def drop(self, number: int) -> None:
        """It asks for nothing but the number."""
        self.say("DELETE FROM jobs WHERE id = :id", id=number)
        self.model.jobs = [row for row in self.model.jobs if row.id != number]

    def _is_told(self, row: Row, number: int) -> None:
        """A new row has a number that no other ever had: so it is behind all others."""
        if row.id:
            assert row.id == number
            return
        assert number > self.last_id
        row.id = self.last_id = number


def _raw(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _utc(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
