"""Many jobs in a table, made in the server by one statement, and moved by their queue's name."""

from __future__ import annotations

from tests.bench.rig import Rig
from tests.bench.tables import execute, insert

_LATER = 86_400


class Rows:
    """As ``Filler``, of one database."""

    #: seconds between two looks: each counts the rows
    pause = 0.05

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def waiting(self, queue: str, jobs: int) -> None:
        insert(self._rig, jobs, queue=queue)

    def delayed(self, queue: str, jobs: int) -> None:
        insert(self._rig, jobs, _LATER, queue=queue)

    def reserved(self, queue: str, jobs: int) -> None:
        """By somebody whose leases last."""
        insert(self._rig, jobs, queue=queue)
        self._ask(f"UPDATE jobs SET reserved_at = available_at + {_LATER}, attempts = 1 WHERE queue = '{queue}'")

    def move(self, source: str, target: str) -> None:
        self._ask(f"UPDATE jobs SET queue = '{target}' WHERE queue = '{source}'")

    def take_back(self, source: str, target: str) -> None:
        """What waits to be begun: what is in a worker's hand stays its own."""
        due = "reserved_at IS NULL AND available_at <= created_at"
        self._ask(f"UPDATE jobs SET queue = '{target}' WHERE queue = '{source}' AND {due}")

    def left(self, queue: str) -> int:
        """How many wait to be begun."""
        due = "reserved_at IS NULL AND available_at <= created_at"
        return int(self._ask(f"SELECT count(*) FROM jobs WHERE queue = '{queue}' AND {due}")[0][0])

    def empty(self, queue: str) -> None:
        """No worker may hold any of it."""
        self._ask(f"DELETE FROM jobs WHERE queue = '{queue}'")

    def _ask(self, line: str) -> list[tuple[object, ...]]:
        return execute(self._rig, line)
