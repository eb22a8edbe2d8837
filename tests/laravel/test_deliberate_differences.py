"""Our rows differ from Laravel's where ``test_same_verbs_on_databases.py`` does not compare them: how, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from tests.support.laravel_peer import Talk
from tests.support.samples import new_jobs
from tests.support.shared_tables import TAG, Shared, made

pytestmark = made("sqlite-8", "postgres-13", "mariadb-8")
RAW = '{"uuid":"u","displayName":"J","job":"J","data":[]}'
NOW = 1_800_000_000
LEASE = 90


class Side(Protocol):
    """Laravel or us, ``now`` seconds after the beginning."""

    now: float

    def push(self, delay: int = 0) -> None: ...
    def pop(self) -> Any: ...
    def delete(self, job: Any) -> None: ...
    def release(self, job: Any) -> None: ...


class Laravel:
    def __init__(self, talk: Talk) -> None:
        self.now = 0.0
        self._talk = talk

    def push(self, delay: int = 0) -> None:
        self._ask("later", raw=RAW, delay=delay)

    def pop(self) -> Any:
        return self._ask("pop")

    def delete(self, job: Any) -> None:
        self._ask("delete", **job)

    def release(self, job: Any) -> None:
        self._ask("release", **job, delay=0)

    def _ask(self, verb: str, **order: Any) -> Any:
        return self._talk.ask(verb, now=int(NOW + self.now), queue="default", **order)


class Ours:
    def __init__(self, shared: Shared) -> None:
        self.now = 0.0
        self._shared = shared

    @property
    def _store(self) -> Any:
        self._shared.store.clock = repr(NOW + self.now)
        return self._shared.store

    def push(self, delay: int = 0) -> None:
        self._store.push("default", new_jobs(RAW.encode()), float(delay))

    def pop(self) -> Any:
        return self._store.reserve(["default"], TAG, 1).leases[0]

    def delete(self, job: Any) -> None:
        self._store.delete([job])

    def release(self, job: Any) -> None:
        self._store.release(job, 0.0, "u")


def reserve_in_mid_second(side: Side) -> None:
    side.push()
    side.now = 0.5
    side.pop()


def delay_in_mid_second(side: Side) -> None:
    side.now = 0.5
    side.push(5)


def release_later(side: Side) -> None:
    side.push()
    job = side.pop()
    side.now = 5
    side.release(job)


def overstay(side: Side) -> Any:
    """The job is another's by now."""
    side.push()
    late = side.pop()
    side.now = LEASE + 1
    side.pop()
    return late


def delete_what_another_has(side: Side) -> None:
    side.delete(overstay(side))


def release_what_another_has(side: Side) -> None:
    side.release(overstay(side))


def release_what_is_over(side: Side) -> None:
    side.push()
    job = side.pop()
    side.delete(job)
    side.release(job)


#: what is done; the column, counted from the beginning where it is a time; Laravel's rows, ours; why
DIFFERENCES: dict[str, tuple[Callable[[Side], None], str, list[object], list[object]]] = {
    "a lease never ends before retry_after is over": (reserve_in_mid_second, "reserved_at", [0], [1]),
    "a reservation says whose it is": (reserve_in_mid_second, "available_at", [0], [4 * TAG + 1 - NOW]),
    "a delayed job is never early": (delay_in_mid_second, "available_at", [5], [6]),
    "a job is as old as its first push": (release_later, "created_at", [5], [0]),
    "what another runs is not ended": (delete_what_another_has, "attempts", [], [2]),
    "what another runs is not taken away, and its attempt counts": (release_what_another_has, "attempts", [1], [2]),
    "what is over does not begin anew": (release_what_is_over, "attempts", [1], []),
}


@pytest.mark.parametrize(("act", "column", "theirs", "ours"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_we_differ_from_laravel_on_purpose(shared, talk, act, column, theirs, ours):
    act(Laravel(talk))
    found = _shown(shared, column)
    shared.change("DELETE FROM jobs")
    act(Ours(shared))

    assert (theirs, ours) == (found, _shown(shared, column))


def _shown(shared: Shared, column: str) -> list[object]:
    since = NOW if column.endswith("_at") else 0
    return [row[column] - since for row in shared.rows("jobs")]
