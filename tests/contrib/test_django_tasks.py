"""The backend for Django's tasks, on Django 6.0 and later (which need Python 3.12): what its contract asks."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from tests.support.django_project import DATABASE, Project, migrated, project_in
from tests.support.eventually import eventually

pytestmark = pytest.mark.skipif(
    find_spec("django") is None or find_spec("django.tasks") is None,
    reason="django.tasks needs Django 6.0, and that needs Python 3.12",
)

BACKEND = "queuepool.contrib.django.tasks.QueuepoolBackend"
TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "mail"], "OPTIONS": {"keep": "1h", "tries": 2}}}
MODULE = """
import os
from django.dispatch import receiver
from django.tasks import task
from django.tasks.signals import task_finished, task_started
from tests.support.poolapp import note

class Odd(Exception):
    pass

@task
def add(a, b):
    return {"sum": a + b}

@task(queue_name="mail", takes_context=True)
async def with_context(context, word):
    return [context.attempt, context.task_result.id, word]

@task
def odd():
    try:
        1 / 0
    except ZeroDivisionError:
        raise Odd("an odd\\nmessage: of two lines")

@task
def unkept():
    return object()

@task
def large():
    return "x" * 70_000

@task
def crash():
    os.abort()

@receiver([task_started, task_finished])
def see(sender, task_result, **_):
    errors = [error.exception_class_path for error in task_result.errors]
    value = task_result._return_value
    note(event="signal", of=sender.__name__, task=task_result.task.name, status=task_result.status.value,
         attempt=task_result.attempts, errors=errors, value=value if len(str(value)) < 99 else None)
"""
TESTS = """
from django.db import transaction
from django.test import TestCase
from queuepool.testing import drain, fake, run_now
from shop.tasks import add, odd, with_context

class Tasks(TestCase):
    def test_at_once(self):
        with run_now() as ran:
            result = add.enqueue(1, b=2)
            result.refresh()
            assert (result.status, result.return_value) == ("SUCCESSFUL", {"sum": 3})
            with_context.enqueue("word")
        assert [job.name for job in ran.done] == ["shop.tasks.add", "shop.tasks.with_context"]

    def test_one_that_fails(self):
        with run_now(raises=False) as ran:
            odd.enqueue()
        assert type(ran.failed[0].error).__name__ == "Odd"

    def test_recorded_and_drained(self):
        with fake() as pushed:
            with transaction.atomic():
                add.enqueue(1, b=2)
                pushed.assert_nothing_pushed()
            pushed.assert_pushed("shop.tasks.add", args=[1], kwargs={"b": 2}, backend="default")
            pushed.assert_pushed(add, 1, b=2, queue="default")
            pushed.assert_not_pushed(add, 2, b=2)
            pushed.assert_count(1, add)
            add.enqueue()  # without its arguments
            pushed.assert_pushed(add, 1, 2, times=1)
            assert len(drain(raises=False).done) == 1
"""
IMPORTS = """
import asyncio, json
from datetime import datetime, timedelta
from django.core.checks import run_checks
from django.db import transaction
from django.tasks import default_task_backend, task_backends
from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
from django.utils import timezone
from shop.tasks import add, crash, large, odd, unkept, with_context

def shown(call):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def project(tmp_path) -> Project:
    made = project_in(tmp_path, TASKS=TASKS)
    (tmp_path / "shop/tasks.py").write_text(MODULE)
    return migrated(made)


def test_a_task_waits_runs_and_has_a_result(project):
    waiting = project.python(
        IMPORTS
        + """
with transaction.atomic():
    first = add.enqueue(1, b=2)
    shown(first.refresh)  # before the commit
second = asyncio.run(with_context.aenqueue("word"))
later = add.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(1, 1)
for result in (first, second, later):
    assert result == result.task.get_result(result.id) or result.id == result.task.get_result(result.id).id
    result.refresh()
    assert result.enqueued_at and not (result.started_at or result.finished_at or result.errors or result.attempts)
    print(result.id, result.status, result.is_finished, result.backend, result.args, result.kwargs)
shown(lambda: first.return_value)
"""
    ).splitlines()
    ids = [line.split()[0] for line in waiting[1:4]]

    assert f"TaskResultDoesNotExist {ids[0]}" == waiting[0]
    assert [
        f"{ids[0]} READY False default [1] {{'b': 2}}",
        f"{ids[1]} READY False default ['word'] {{}}",
        f"{ids[2]} READY False default [1, 1] {{}}",
        "ValueError Task has not finished yet",
    ] == waiting[1:]

    project.work("--queue", "default,mail")

    assert [
        "SUCCESSFUL {'sum': 3} 1 True",
        f"SUCCESSFUL [1, '{ids[1]}', 'word'] 1 True",
        "READY None 0 False",
    ] == project.python(
        IMPORTS
        + f"""
for id in {ids!r}:
    result = asyncio.run(default_task_backend.aget_result(id))
    ordered = bool(result.started_at) and result.enqueued_at <= result.started_at <= result.finished_at
    print(result.status, result._return_value, result.attempts, ordered)
"""
    ).splitlines()
    signals = [(one["task"], one["status"], one["attempt"], one["value"]) for one in project.notes()]
    assert sorted(signals, key=str) == [
        ("add", "RUNNING", 1, None),
        ("add", "SUCCESSFUL", 1, {"sum": 3}),
        ("with_context", "RUNNING", 1, None),
        ("with_context", "SUCCESSFUL", 1, [1, ids[1], "word"]),
    ]


def test_a_task_that_fails_says_why_after_its_last_try(project):
    program = IMPORTS + "for task in (odd, unkept, large):\n    print(task.enqueue().id)"
    ids = project.python(program).split()
    project.work()
    shown = project.python(
        IMPORTS
        + f"""
for id in {ids!r}:
    result = default_task_backend.get_result(id)
    [error] = result.errors
    print(result.status, result.attempts, error.exception_class.__name__, error.traceback.count("Traceback"))
    shown(lambda: result.return_value)
"""
    ).splitlines()

    # What a task returns is found unfit after its work: it is not done again. We raise that: there is no trace of it.
    failed = "ValueError Task failed"
    assert [
        "FAILED 2 Odd 2", failed, "FAILED 1 TypeError 1", failed, "FAILED 1 ValueError 0", failed,
    ] == shown  # fmt: skip
    ends = [(one["task"], one["attempt"], one["errors"]) for one in project.notes() if one["status"] == "FAILED"]
    assert sorted(ends) == [
        ("large", 1, ["builtins.ValueError"]),
        ("odd", 2, ["shop.tasks.Odd"]),
        ("unkept", 1, ["builtins.TypeError"]),
    ]


def test_a_worker_that_dies_is_the_error_of_its_task(project):
    project.write(DATABASES={"default": DATABASE}, TASKS={"default": TASKS["default"] | {"OPTIONS": {"tries": 1}}})
    task_id = project.python(IMPORTS + "print(crash.enqueue().id)").strip()
    program = IMPORTS + f"r = default_task_backend.get_result({task_id!r})\nprint(r.status, r.errors)"

    with project.pool("--workers", "1"):
        eventually(lambda: "job failed" in (project.path / "log").read_text(), within=60)

    assert re.match(r"FAILED .*exception_class_path='queuepool\.errors\.", project.python(program))


@pytest.mark.bad_input("B135")
def test_what_a_task_cannot_have_is_refused_as_django_says(project):
    lines = """
shown(lambda: add.using(priority=1))
shown(lambda: add.using(queue_name="mial"))
shown(lambda: add.using(run_after=datetime.now()))
shown(lambda: add.enqueue(datetime.now()))
shown(lambda: asyncio.run(add.aenqueue(object())))
shown(lambda: add.get_result("123"))
result = add.enqueue(1, 2)
shown(lambda: odd.get_result(result.id))
from shop.jobs import counted
shown(lambda: default_task_backend.get_result(counted.dispatch()))
"""
    found = [line.split(maxsplit=1) for line in project.python(IMPORTS + lines).splitlines()]

    assert [
        ["InvalidTask", "Backend does not support setting priority of tasks."],
        ["InvalidTask", "Queue 'mial' is not valid for backend."],
        ["InvalidTask", "run_after must be an aware datetime."],
        ["TypeError", "Unsupported type: <class 'datetime.datetime'>"],
        ["TypeError", "Unsupported type: <class 'object'>"],
        ["TaskResultDoesNotExist", "123"],
        ["TaskResultMismatch", "Task does not match (received 'shop.tasks.add')"],
    ] == found[:7]
    assert "TaskResultDoesNotExist" == found[7][0]


@pytest.mark.bad_input("B136")
def test_wrong_options_are_one_line_each_of_the_system_checks(project):
    wrong = [{"tires": 2}, {"tries": -1}, {"keep": 0}, {"keep": "long"}]
    entries = {f"b{number}": {"BACKEND": BACKEND, "OPTIONS": options} for number, options in enumerate(wrong)}
    entries["b4"] = {"BACKEND": BACKEND, "QUEUES": ["a b"]}
    project.write(DATABASES={"default": DATABASE}, TASKS=TASKS | entries)

    assert [
        "TASKS['b0']['OPTIONS']['tires']: unknown option; did you mean 'tries'?",
        "TASKS['b1']['OPTIONS']: tries cannot be -1",
        "TASKS['b2']['OPTIONS']['keep']: must be above 0 seconds, as Django asks for results",
        "TASKS['b3']['OPTIONS']: keep: 'long' is not a time: write seconds (60, 0.5), or a unit: 60s, 2m, 1h, 1d",
        "TASKS['b4']['QUEUES']: 'a b' is not a queue name: 1 to 200 of A-Z a-z 0-9 _ . { } : -",
    ] == project.python(IMPORTS + "print(*(error.msg for error in run_checks()), sep='\\n')").splitlines()


def test_a_pool_that_names_its_modules_runs_their_tasks(project):
    settings = {"DATABASES": {"default": DATABASE}, "TASKS": TASKS, "QUEUEPOOL": {"pool": {"modules": ["shop.tasks"]}}}
    project.write(**settings)
    task_id = project.python(IMPORTS + "print(add.enqueue(2, 2).id)").strip()
    project.work()

    program = f"print(default_task_backend.get_result({task_id!r}).return_value)"
    assert "{'sum': 4}\n" == project.python(IMPORTS + program)


def test_a_task_runs_in_a_test_case(project):
    (project.path / "shop/tests.py").write_text(TESTS)
    done = project.manage("test", "--noinput", check=False)

    assert "Ran 3 tests" in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.bad_input("B136")
def test_wrong_options_are_found_by_manage_check_without_a_task(project):
    (project.path / "shop/tasks.py").unlink()
    project.write(DATABASES={"default": DATABASE}, TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": {"keep": "1w"}}})
    done = project.manage("check", check=False)

    assert done.returncode == 1
    assert "TASKS['default']['OPTIONS']: keep: '1w' is not a time" in done.stderr

    settings = (project.path / "site_settings.py").read_text().replace("'keep': '1w'", "'backoff': BACKOFF")
    begin = "from queuepool import exponential\nBACKOFF = exponential(1, 9, jitter=True)\n"
    (project.path / "site_settings.py").write_text(begin + settings)
    jitter = "TASKS['default']['OPTIONS']['backoff']: jitter is for @job: a task has plain delays"
    assert jitter in project.manage("check", check=False).stderr


def test_results_are_kept_for_days(project):
    entry = TASKS["default"] | {"OPTIONS": {"keep": "1d"}}
    project.write(DATABASES={"default": DATABASE}, TASKS={"default": entry})

    assert "" == project.python(IMPORTS + "add.enqueue(1, 2)")
