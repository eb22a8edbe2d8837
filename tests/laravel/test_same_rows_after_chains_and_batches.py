"""The same chain and the same batch, run by Laravel's worker and by ours, leave the same rows behind.

On SQLite, each in a database of its own, step by step. Ours is followed by Laravel's, which takes the outcome.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.support.chains import OUTCOMES, STEPS, go_on, run_steps
from tests.support.laravel_peer import Peer, require_php
from tests.support.pools import Site

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: those that say when; only whether there is one is compared
TIMES = {"available_at", "created_at", "reserved_at", "cancelled_at", "finished_at", "failed_at"}
COLUMNS = {
    "jobs": "queue, payload, attempts, reserved_at, available_at, created_at",
    "job_batches": "name, total_jobs, pending_jobs, failed_jobs, failed_job_ids, options, cancelled_at, finished_at",
    "failed_jobs": "queue, payload, exception, failed_at",
}


@dataclass
class Place:
    """An application with its own database, and who runs its steps."""

    path: Path
    peer: Peer
    step: Callable[[], object]

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """All rows of the three tables, without what is different in each run."""
        with closing(sqlite3.connect(self.path / "q.db")) as database:
            database.row_factory = sqlite3.Row
            return {
                table: [_lasting(dict(row)) for row in database.execute(f"SELECT {columns} FROM {table}")]
                for table, columns in COLUMNS.items()
            }

    def called(self) -> list[str]:
        """What Laravel called after the jobs, without the steps themselves."""
        return [str(line.get("callback", "failed")) for line in self.peer.lines() if "job" not in line]


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    found = {key: value is not None if key in TIMES else value for key, value in row.items()}
    if "exception" in found:
        # Python's error in Python's words, PHP's in PHP's.
        found["exception"] = "told to fail" in found["exception"]
    return {key: UUID.sub("<uuid>", value) if isinstance(value, str) else value for key, value in found.items()}


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[Place]]:
    """One whose steps Laravel runs, and one whose steps we run."""
    require_php("sqlite")
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        peer = Peer.on(f"sqlite:///{tmp_path / name / 'q.db'}", tmp_path / name / "laravel.jsonl")
        peer.run("migrate")
        peer.run("migrate", shape="batches")
    theirs, ours = (tmp_path / name for name in ("theirs", "ours"))
    peers = [Peer.on(f"sqlite:///{path / 'q.db'}", path / "laravel.jsonl") for path in (theirs, ours)]
    (ours / "steps.py").write_text(STEPS)
    connection = ConnectionSettings(url=peers[1].url)
    with closing(Queue(connection)) as queue:
        site = Site(connection, ours, queue)

        def step() -> None:
            run_steps(site, OUTCOMES, "[pool]", "max_jobs = 1")
            go_on(peers[1])

        yield [
            Place(theirs, peers[0], lambda: peers[0].run("work", queue="steps", once=True, tries=1)),
            Place(ours, peers[1], step),
        ]


@pytest.mark.by_turns("fails")
@pytest.mark.parametrize("fails", [None, 1, 2])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        pytest.param("chain", {}, marks=pytest.mark.thorough("test_chains_and_batches follows one to its end")),
        pytest.param("batch", {}, marks=pytest.mark.thorough("the strict one ends in more ways")),
        ("batch", {"strict": True}),
    ],
)
def test_every_step_leaves_the_same_rows(
    places: list[Place], kind: str, more: dict[str, Any], fails: int | None
) -> None:
    if fails:
        more = {**more, "fails": fails}
    for place in places:
        place.peer.run(kind, "3", queue="steps", **more)
    seen: list[dict[str, Any]] = []
    for _ in range(3):
        theirs, ours = (_after_a_step(place) for place in places)
        assert theirs == ours
        seen.append(theirs)

    assert places[0].called() == places[1].called()
    assert [] == seen[-1]["jobs"]
    assert (1 if fails else 0) == len(seen[-1]["failed_jobs"])
    assert (3 if not fails else fails if kind == "chain" else 3) == len({str(one) for one in seen})


def _after_a_step(place: Place) -> dict[str, Any]:
    place.step()
    return place.rows()
