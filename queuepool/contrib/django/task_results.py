"""``TaskResult`` from what is known of a tracked job."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.apps import apps
from django.conf import settings
from django.tasks.base import Task, TaskError, TaskResult, TaskResultStatus
from django.tasks.exceptions import InvalidTask
from django.utils import timezone
from django.utils.module_loading import import_string

from queuepool import errors
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState

_STATUS: Mapping[str, Any] = {
    "running": TaskResultStatus.RUNNING,
    "done": TaskResultStatus.SUCCESSFUL,
    "failed": TaskResultStatus.FAILED,
    "cancelled": TaskResultStatus.FAILED,
}  # fmt: skip
#: the line of a traceback that names the exception
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)
_BEGIN = "Traceback (most recent call last):\n"


def new_result(task: Any, job_id: str, alias: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a waiting task; its times are unknown."""
    nothing = dict.fromkeys(("enqueued_at", "started_at", "finished_at", "last_attempted_at"))
    lists: dict[str, list[Any]] = {"errors": [], "worker_ids": []}
    about = {"task": task, "id": job_id, "backend": alias, "args": list(args), "kwargs": dict(kwargs)}
    return TaskResult(**about, status=TaskResultStatus.READY, **nothing, **lists)


def task_of(state: JobState, alias: str) -> Any | None:
    """The task whose job this is; ``None`` if it is not a task's, or no longer.

    Imports only what belongs to the project: a name comes from the store.
    """
    module = state.name.rpartition(".")[0]
    if module not in sys.modules and apps.get_containing_app_config(state.name) is None:
        return None
    try:
        task = import_string(state.name)
        if not isinstance(task, Task):
            return None
        return task if task.backend == alias and task.queue_name == state.queue else _as(task, alias, state.queue)
    except ImportError:
        return None


def result_of(state: JobState, task: Any, alias: str, queue: Queue) -> Any:
    """The result as the store has it. The arguments are not kept there, so that they are empty."""
    worker = [f"{state.host}:{state.pid or state.worker or 0}"] if state.host else [""]
    about: dict[str, Any] = {"task": task, "id": state.id, "backend": alias, "args": [], "kwargs": {}}
    began = as_djangos(state.began)
    about |= {"enqueued_at": as_djangos(state.pushed), "started_at": began, "last_attempted_at": began}
    about |= {"finished_at": as_djangos(state.since) if state.is_over else None, "worker_ids": worker * state.attempts}
    status = _STATUS.get(state.state, TaskResultStatus.READY)
    result = TaskResult(**about, status=status, errors=_errors(state, queue))
    object.__setattr__(result, "_return_value", state.result)
    return result


def as_djangos(moment: datetime | None) -> datetime | None:
    """The time as ``USE_TZ`` has it."""
    if moment is None or settings.USE_TZ:
        return moment
    return timezone.make_naive(moment)  # type: ignore[no-any-return]


def _as(task: Any, alias: str, queue: str) -> Any:
    try:
        return replace(task, backend=alias, queue_name=queue)
    except InvalidTask:  # the settings have changed since
        return task


def _errors(state: JobState, queue: Queue) -> list[Any]:
    """The last error, with its traceback if the failed store has it."""
    if not state.error:
        return []
    record = queue.stores.failed.get(state.id) if state.state == "failed" else None
    trace = record.exception if record else f"{state.error}\n"
    return [error_of(trace)]


def error_of(trace: str) -> Any:
    """The error of this traceback."""
    return TaskError(exception_class_path=_class_of(trace), traceback=trace)


def _class_of(trace: str) -> str:
    """The path of the exception's class, as the first line at the margin of its own traceback names it."""
    found = _RAISED.search(trace.rpartition(_BEGIN)[2])
    name = found[1] if found else ""
    if "." in name:
        return name
    module = next((one for one in (builtins, errors) if hasattr(one, name)), None)
    return f"{module.__name__}.{name}" if module else "builtins.Exception"
