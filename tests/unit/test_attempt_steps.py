"""What an attempt does with the places of its cursors: neither the store nor the board has an older one than before."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

import pytest

from queuepool.board.step_place import StepPlace
from queuepool.errors import QueuepoolError
from queuepool.jobs.attempt_steps import JobSteps
from queuepool.jobs.current_job import Current
from queuepool.payload.envelope import decode
from queuepool.payload.kept_step import CURSOR
from queuepool.payload.lease import Lease
from tests.support.eventually import eventually


class InMemory:
    """A keeper whose store is a dict, with a real board."""

    is_shared = True

    def __init__(self) -> None:
        self.store: dict[str, bytes] = {}
        self.board = StepPlace(bytearray(StepPlace.size), 0)

    def of_job(self, job: Current, *, may_leave: bool) -> dict[str, bytes]:
        return dict(self.store)

    def has_any(self, job: Current) -> bool:
        return bool(self.store)

    def keep(self, job: Current, values: Mapping[str, bytes], *, may_leave: bool) -> None:
        self.store |= values

    def show(self, job: Current, name: str, place: bytes) -> None:
        self.board.show(job.id, name, place)

    def must_leave(self, job: Current, *, has_progress: bool) -> bool:
        return False

    def after_a_kill(self) -> dict[str, int]:
        """How far each cursor is in the next attempt."""
        end = self.board.end_of("a")
        return {name: int(place) for name, place in {**self.store, **dict(end.places if end else ())}.items()}


@pytest.fixture
def keeper() -> InMemory:
    return InMemory()


@pytest.fixture
def job() -> Current:
    return Current(decode(b'{"id": "a", "job": "do", "data": {}, "attempts": 1}'), "q", lease=Lease("q", b""))


@pytest.fixture
def steps(keeper: InMemory, job: Current) -> JobSteps:
    steps = JobSteps(job, keeper)
    steps.read()
    return steps


def test_a_store_call_that_comes_late_takes_no_cursor_back(keeper, steps):
    steps.moves("a", b"1")
    assert steps.moves("b", b"1")  # its call of the store is handed to a thread, and waits
    steps.moves("a", b"2")
    steps.keep({})
    steps.keep({})

    assert {"~a": b"2", "~b": b"1"} == keeper.store


@pytest.mark.by_turns("seed")
@pytest.mark.parametrize("seed", range(20))
def test_a_killed_worker_loses_only_rows_that_the_store_was_about_to_get(keeper, steps, seed):
    chance, at, safe = random.Random(seed), dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
    for number in range(200):
        if chance.random() < 0.3:
            steps.keep({f"step{number}": b"1"} if chance.random() < 0.3 else {})
            safe |= at
        else:
            cursor = chance.choice("abc")
            at[cursor] += 1
            if not steps.moves(cursor, b"%d" % at[cursor]):
                safe[cursor] = at[cursor]
        found = keeper.after_a_kill()
        assert [] == [cursor for cursor in at if found.get(CURSOR + cursor, 0) < safe[cursor]]


def test_the_place_of_a_first_row_that_took_long_is_kept_at_once(steps):
    began = time.monotonic()
    eventually(lambda: time.monotonic() > began + 1.0)

    assert steps.moves("a", b"1")


def test_what_the_store_does_not_have_yet_is_written_with_the_end_of_the_lease(steps):
    for number in range(3):
        steps.moves("a", b"%d" % number)
        steps.moves("b", b"%d" % number)

    assert {"~a": b"2", "~b": b"2"} == dict(steps.end().places)


def test_an_attempt_that_is_over_shows_nothing_more_on_the_board(keeper, steps):
    """A thread that it has left behind goes on through its rows, while another job runs."""
    steps.moves("a", b"1")
    steps.end()
    keeper.board.forget()

    with pytest.raises(QueuepoolError, match="the attempt is over: one of its threads has asked for a step"):
        steps.moves("a", b"2")
    with pytest.raises(QueuepoolError, match="the attempt is over"):
        steps.begin("more")
    assert keeper.board.end_of("a") is None


def test_an_attempt_that_could_not_read_its_steps_does_not_ask_for_them_at_its_end(keeper, job):
    assert JobSteps(job, keeper).end() is None
