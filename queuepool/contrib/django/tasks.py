"""A backend for Django's tasks (``django.tasks``, Django 6.0 and later): each is a tracked job under its path.

TASKS = {"default": {
    "BACKEND": "queuepool.contrib.django.tasks.QueuepoolBackend",
    "QUEUES": ["default"],
    "OPTIONS": {"connection": "default", "keep": "1d", "tries": 3, "timeout": 60, "backoff": [5, 60]},
}}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from django.apps import apps
from django.core.checks import Error
from django.tasks.backends.base import BaseTaskBackend
from django.tasks.exceptions import TaskResultDoesNotExist
from django.tasks.signals import task_enqueued
from django.utils import timezone
from django.utils.json import normalize_json

from queuepool.config import values
from queuepool.contrib.django.dispatching import in_transaction, queue_of
from queuepool.contrib.django.task_results import new_result, result_of, task_of
from queuepool.errors import ConfigError
from queuepool.jobs.door import terms_of
from queuepool.jobs.job_options import Delay, Options, options_of
from queuepool.jobs.registry import REGISTRY

#: the options of a job that a payload carries
_JOBS = ("tries", "timeout", "backoff", "max_exceptions", "fail_on_timeout")
_OWN = ("connection", "keep")
_APP = "queuepool.contrib.django"


class QueuepoolBackend(BaseTaskBackend):  # type: ignore[misc]
    """Enqueues tasks for the pools of ``QUEUEPOOL``. Inside of ``atomic()`` they are part of the transaction.

    Priorities are refused, as Django's contract asks of a backend without them: a pool serves its queues in their
    order, so it is the queue that decides what comes first.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = False

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Push the task and return its result, ready or deferred.

        Raises ``InvalidTask``, ``TypeError`` for arguments that JSON cannot hold, ``ConfigError`` and ``StoreError``.
        """
        self.validate_task(task)
        options = TaskOptions.of(self.alias, self.options)
        data = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs)), "backend": self.alias}
        queue = in_transaction(queue_of(options.connection))
        terms = terms_of(task.module_path, task.queue_name, _delay(task), options.keep, options.job)
        began = timezone.now()  # before the push: a worker may start it at once
        job_id = queue.pusher.push([(task.module_path, data)], terms)[0]
        result = new_result(task, job_id, self.alias, data["args"], data["kwargs"])
        object.__setattr__(result, "enqueued_at", began)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """The result by its id. Raises ``TaskResultDoesNotExist``, ``ConfigError`` and ``StoreError``."""
        queue = queue_of(TaskOptions.of(self.alias, self.options).connection)
        state = queue.job(str(result_id))
        task = task_of(state, self.alias) if state else None
        if state is None or task is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(state, task, self.alias, queue)

    def check(self, **_: Any) -> list[Any]:
        """An error for each problem of these settings."""
        problems = problems_of(self.alias, self.options, self.queues)
        return [Error(problem, id="queuepool.E002") for problem in problems]


def _register() -> None:
    from queuepool.contrib.django import task_handlers  # imported here: only what runs tasks needs it

    task_handlers.register()


REGISTRY.sources.append(_register)


def _delay(task: Any) -> Delay:
    """Until ``run_after``; without a time zone it is in the project's."""
    moment = task.run_after
    if moment is None:
        return 0
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """The ``OPTIONS`` of a backend of ``TASKS``. ``keep``: seconds that a result can be had after the task's end."""

    job: Options
    connection: str | None = None
    keep: float | str | timedelta = 86400.0

    @classmethod
    def of(cls, alias: str, given: Mapping[str, Any]) -> TaskOptions:
        """Raises ``ConfigError`` for an unknown option or a value that no worker accepts."""
        for key in given:
            _check_name(alias, key)
        try:
            job = options_of({key: value for key, value in given.items() if key in _JOBS})  # type: ignore[arg-type]
            keep = options_of({"track": given.get("keep", cls(job).keep)}).track
        except ConfigError as error:
            raise ConfigError(_place(alias), str(error).removeprefix("@job: ").replace("track", "keep")) from None
        if job.jitter:
            raise ConfigError(_place(alias, "backoff"), "jitter is for @job: a task has plain delays")
        if not keep:
            raise ConfigError(_place(alias, "keep"), "must be above 0 seconds, as Django asks for results")
        return cls(job, given.get("connection"), keep)


def problems_of(alias: str, options: Mapping[str, Any], queues: Collection[str]) -> Iterator[str]:
    """What is wrong in one entry of ``TASKS``."""
    if not apps.is_installed(_APP):
        yield f"TASKS[{alias!r}]: its backend needs {_APP!r} in INSTALLED_APPS"
    try:
        TaskOptions.of(alias, options)
        for queue in sorted(queues):
            values.queue(queue)
    except ConfigError as error:
        yield str(error)
    except ValueError as error:
        yield f"TASKS[{alias!r}]['QUEUES']: {error}"


def _check_name(alias: str, key: str) -> None:
    known = (*_OWN, *_JOBS)
    if key not in known:
        close = get_close_matches(key, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
        raise ConfigError(_place(alias, key), f"unknown option; {hint}")


def _place(alias: str, *keys: str) -> str:
    return f"TASKS[{alias!r}]['OPTIONS']" + "".join(f"[{key!r}]" for key in keys)
