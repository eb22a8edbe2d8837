"""Handlers of Django's tasks: every task of the modules that a worker has imported, under its path."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from django.tasks import Task, TaskContext, TaskResultStatus, task_backends
from django.tasks.signals import task_finished, task_started
from django.utils import timezone
from django.utils.json import normalize_json

from queuepool.contrib.django.task_results import as_djangos, error_of, new_result
from queuepool.jobs.current_job import current
from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import REGISTRY, Handler
from queuepool.log.tracebacks import text_of
from queuepool.settlement.states import result_of

#: the id of the job that this process began last, and when: a hook after a failure has no other record of it
_started: tuple[str, datetime | None] = ("", None)


def register() -> None:
    """Register the tasks that are there now."""
    known = set(REGISTRY.names())
    for path, task in dict(_tasks()).items():
        if path not in known:
            REGISTRY.add(Handler(path, partial(TaskRun, task), Options()))


def _tasks() -> Iterator[tuple[str, Any]]:
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            if isinstance(value, Task):
                yield value.module_path, value


class TaskRun:
    """One attempt at a task: the signals around it are Django's."""

    def __init__(
        self, task: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}, backend: str = "default"
    ) -> None:
        self._task = task
        self._sender = type(task_backends[backend])
        self._args, self._kwargs, self._alias = args, kwargs, backend
        self._returned: Any = None

    def run(self) -> object:
        """Call the task's function; a coroutine is awaited by the worker."""
        global _started
        _started = current().id, timezone.now()
        result = self._result(TaskResultStatus.RUNNING)
        task_started.send(sender=self._sender, task_result=result)
        first = [TaskContext(task_result=result)] if self._task.takes_context else []
        call = partial(self._task.func, *first, *self._args, **self._kwargs)
        return self._awaited(call) if iscoroutinefunction(self._task.func) else self._checked(call())

    @property
    def after_succeeded(self) -> Callable[[], object]:
        """Sends ``task_finished``."""
        return partial(self._finished, TaskResultStatus.SUCCESSFUL)

    def after_failed(self, error: BaseException) -> None:
        """Send ``task_finished``, with the error."""
        self._finished(TaskResultStatus.FAILED, error_of(text_of(error)))

    def _finished(self, status: Any, *errors: Any) -> None:
        result = self._result(status)
        result.errors.extend(errors)
        for name, value in {"finished_at": timezone.now(), "_return_value": self._returned}.items():
            object.__setattr__(result, name, value)
        task_finished.send(sender=self._sender, task_result=result)

    def _result(self, status: Any) -> Any:
        """What a receiver of a signal gets. The job's own record has more, once it is written."""
        job = current()
        result = new_result(self._task, job.id, self._alias, self._args, self._kwargs)
        pushed = job.payload.pushed_at
        began = _started[1] if _started[0] == job.id else None
        facts = {"status": status, "started_at": began, "last_attempted_at": began}
        facts |= {"enqueued_at": as_djangos(datetime.fromtimestamp(pushed, UTC)) if pushed is not None else None}
        for name, value in facts.items():
            object.__setattr__(result, name, value)
        result.worker_ids.extend([_worker()] * job.attempts)
        return result

    async def _awaited(self, call: Callable[[], Any]) -> object:
        return self._checked(await call())

    def _checked(self, value: object) -> object:
        """The value as JSON. If it cannot be kept, the task fails for good, as Django requires: its work is done."""
        try:
            self._returned = normalize_json(value)
            if problem := result_of(self._returned)[1]:
                raise ValueError(f"the return value cannot be kept: {problem}")
        except (TypeError, ValueError) as error:
            current().fail(error)
            raise
        return self._returned


def _worker() -> str:
    return f"{os.uname().nodename}:{os.getpid()}"


register()
