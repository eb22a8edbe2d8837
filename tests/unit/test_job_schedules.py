"""Schedules that jobs declare: what can be one, and which generation's count."""

from __future__ import annotations

import os

import pytest

from queuepool import Job, job
from queuepool.board.board import Board, Role
from queuepool.board.from_workers import JobSchedule, publish_schedules, published_schedules
from queuepool.board.states import State
from queuepool.config.settings import ConnectionSettings, PoolSettings, ScheduleSettings
from queuepool.errors import ConfigError
from queuepool.jobs.registry import REGISTRY
from queuepool.steward.schedule import declared
from tests.support.each import each
from tests.support.samples import fresh

NIGHTLY = JobSchedule("app.report", "0 3 * * *", "reports")


def test_a_function_and_a_class_can_declare_a_schedule():
    name, other = fresh(), fresh()

    @job(name, schedule="0 3 * * *", queue="reports")
    def report(kind: str = "daily") -> None: ...

    class Sync(Job, name=other, schedule="30s"):
        place: str = "here"

        def handle(self) -> None: ...

    found = {one.name: one.options.schedule for one in REGISTRY.scheduled()}
    assert {name: "0 3 * * *", other: "30s"}.items() <= found.items()


@pytest.mark.bad_input("B132")
@each(
    ("schedule", "words"),
    [
        ("0 0 30 2 *", "never comes due: no such day in these months"),
        ("daily", "is not a cron expression of five fields like 0 3 \\* \\* \\*"),
        ("0s", "'0s' is not a number of whole seconds from 1 up"),
        ("1.5", "'1.5' is not a number of whole seconds from 1 up"),
        ("", "schedule cannot be ''"),
        (60, "schedule cannot be 60: give a string like '0 3 \\* \\* \\*' or '30s'"),
    ],
)
def test_a_schedule_that_is_none_is_refused_where_the_job_is_defined(schedule, words):
    with pytest.raises(ConfigError, match=f"^@job: tests.job[0-9]+: .*{words}"):
        job(fresh(), schedule=schedule)(lambda: None)


@pytest.mark.bad_input("B132")
def test_a_job_that_needs_arguments_cannot_declare_a_schedule():
    def report(kind: str, more: int = 1) -> None: ...

    words = r"a schedule calls it without 'kind': give it a default, or set data in a \[schedule:NAME\] section"
    with pytest.raises(ConfigError, match=words):
        job(fresh(), schedule="1h")(report)
    with pytest.raises(ConfigError, match="calls it without 'path'"):

        class Import(Job, name=fresh(), schedule="1h"):
            path: str

            def handle(self) -> None: ...

    with pytest.raises(ConfigError, match="at most 150 characters"):
        job("x" * 151, schedule="1h")(lambda: None)


# Which of them count


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / f"board.{os.getpid()}-1", 8, "store")


def at_work(board: Board, number: int, generation: int, state: State = State.IDLE) -> None:
    slot = board.slots[number]
    board.allocate(slot)
    slot.role, slot.generation, slot.state = Role.WORKER, generation, state


def test_the_newest_generation_at_work_counts(board):
    at_work(board, 0, 1)
    publish_schedules(board, 1, [NIGHTLY])
    assert [NIGHTLY] == published_schedules(board)

    publish_schedules(board, 2, [NIGHTLY._replace(rule="5m")])
    at_work(board, 1, 2, State.STARTING)
    assert [NIGHTLY] == published_schedules(board)
    board.slots[1].state = State.BUSY
    assert [NIGHTLY._replace(rule="5m")] == published_schedules(board)


def test_a_worker_of_old_code_brings_nothing_back(board):
    at_work(board, 0, 2)
    at_work(board, 1, 1)
    publish_schedules(board, 1, [NIGHTLY])

    assert [] == published_schedules(board)


def test_the_first_worker_of_a_generation_says_it_for_all(board):
    at_work(board, 0, 1)
    publish_schedules(board, 1, [NIGHTLY])
    publish_schedules(board, 1, [NIGHTLY._replace(rule="5m")])

    assert [NIGHTLY] == published_schedules(board)


@pytest.mark.parametrize("text", ["", "{", "[[1]]", "[1]", '{"a": 1}', "\0"])
def test_a_file_that_a_job_has_overwritten_says_nothing(board, text):
    at_work(board, 0, 1)
    publish_schedules(board, 1, [NIGHTLY])
    [path] = board.path.parent.glob("*.schedules1")
    path.write_text(text)

    assert [] == published_schedules(board)
    assert () == declared(pool(), [JobSchedule("a", text, "default")])


def pool(**more) -> PoolSettings:
    connection = ConnectionSettings()
    defaults = ScheduleSettings(name="", connection=connection, timezone="Europe/Berlin", late=5.0)
    return PoolSettings(**{"connection": connection, "job_schedules": defaults, **more})


def test_a_declared_schedule_has_the_defaults_of_the_configuration_which_can_replace_it():
    [found] = declared(pool(), [NIGHTLY])
    expected = ScheduleSettings(
        name="app.report", job="app.report", cron="0 3 * * *", queue="reports", timezone="Europe/Berlin", late=5.0
    )

    assert expected == found
    assert () == declared(pool(schedules=(expected,)), [NIGHTLY])


def test_pools_on_another_connection_leave_them_alone():
    assert () == declared(pool(connection=ConnectionSettings(name="other")), [NIGHTLY])
