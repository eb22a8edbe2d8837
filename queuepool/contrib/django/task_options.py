"""The ``OPTIONS`` of a backend of ``TASKS``: options of its jobs, the connection, how long results are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from django.apps import apps

from queuepool.config import values
from queuepool.errors import ConfigError
from queuepool.jobs.job_options import Options, options_of

#: those of a job that a payload carries
_JOBS = ("tries", "timeout", "backoff", "max_exceptions", "fail_on_timeout")
_OWN = ("connection", "keep")
_APP = "queuepool.contrib.django"


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """``keep``: seconds that a result can be had after the task's end."""

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
            raise ConfigError(_place(alias, "keep"), "must be above 0 seconds, for Django asks for results")
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
