"""Django's tasks in assertions: an object of ``django.tasks.Task`` stands for the job that ``enqueue`` pushes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any


def is_task(job: object) -> bool:
    """Whether this is a task; nothing of Django's is imported."""
    return hasattr(job, "module_path") and hasattr(job, "takes_context")


def arguments_of_task(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call by name, with defaults. Raises ``TypeError`` if they do not fit."""
    context = [None] if task.takes_context else []
    bound = inspect.signature(task.func).bind(*context, *args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def enqueued_arguments(task: Any, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The same of a pushed task, by its payload's data; ``None`` if they do not fit, which Django does not check."""
    try:
        return arguments_of_task(task, data.get("args", ()), data.get("kwargs", {}))
    except TypeError:
        return None
