"""Words of other queues, and ours for them: users of Celery, RQ, Dramatiq, Huey or Laravel type those first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_PUSH, _CHOOSE = "dispatch(...)", "using(queue=..., delay=...).dispatch(...)"
#: verbs of the command line; ``queue:work`` and the like are found without Laravel's prefix
VERBS: Mapping[str, str] = MappingProxyType({
    "purge": "clear", "empty": "clear", "resume": "continue", "unpause": "continue", "shutdown": "stop",
    "quit": "stop", "inspect": "status", "info": "status", "ps": "status", "pools": "status",
    "workers": "status", "hosts": "status --all", "worker": "start", "run": "start", "run_huey": "start",
    "beat": "schedule", "queues": "size", "stats": "size", "count": "size", "enqueue": "push",
    "dispatch": "push", "call": "push", "requeue": "retry", "rerun": "retry", "delete": "forget",
    "result": "job", "events": "top", "flower": "top", "prune": "prune-failed", "graceful": "stop",
    "rescale": "scale", "autoscale": "scale", "peek": "jobs", "find": "jobs", "search": "jobs", "list": "jobs",
    "audit": "journal",
})  # fmt: skip
#: options of a job
OPTIONS: Mapping[str, str] = MappingProxyType({
    "retries": "tries", "max_retries": "tries", "max_tries": "tries", "retry": "tries",
    "retry_delay": "backoff", "default_retry_delay": "backoff", "retry_backoff": "backoff",
    "min_backoff": "backoff", "autoretry_for": "retry_on", "retry_exceptions": "retry_on", "throws": "fail_on",
    "dont_autoretry_for": "fail_on", "time_limit": "timeout", "job_timeout": "timeout",
    "soft_time_limit": "soft_timeout", "queue_name": "queue", "result_ttl": "track", "track_started": "track",
    "crontab": "schedule",
})  # fmt: skip
#: keys of [pool], flags, and a key of [connection]
KEYS: Mapping[str, str] = MappingProxyType({
    "processes": "workers", "max_tasks_per_child": "max_jobs", "max_memory_per_child": "memory",
    "time_limit": "timeout", "soft_time_limit": "soft_timeout", "loglevel": "log_level", "logfile": "log",
    "countdown": "delay", "eta": "delay", "imports": "modules", "burst": "stop_when_empty", "max_tries": "tries",
    "retries": "tries", "autoscale": "max_workers", "max_processes": "max_workers", "min_processes": "min_workers",
    "host": "url", "hosts": "url", "sentinels": "url", "location": "url", "broker_url": "url",
})  # fmt: skip
#: keywords of a push
_KEYWORDS = {
    "countdown": "delay=SECONDS", "eta": "delay=DATETIME", "delay_seconds": "delay=SECONDS", "at": "delay=DATETIME",
    "queue_name": "queue=NAME", "routing_key": "queue=NAME",
    "priority": "queue=NAME: a pool serves its queues in strict order, or by weights",
}  # fmt: skip
#: keywords that ``using`` takes, or would if it used others' words
_USINGS = frozenset(("queue", "delay", "within", "after_commit", *_KEYWORDS))
#: methods of another queue's jobs, and ours
METHODS: Mapping[str, str] = MappingProxyType({
    "delay": _PUSH, "send": _PUSH, "enqueue": _PUSH, "defer": _PUSH, "apply_async": _CHOOSE,
    "send_with_options": _CHOOSE, "configure": "using(...)", "kiq": "adispatch(...)",
    "schedule": "later(delay, ...)", "dispatch_sync": "a call", "apply": "a call", "map": "bulk([...])",
    "starmap": "bulk([...])",
})  # fmt: skip
#: methods of another queue, and ours
QUEUES: Mapping[str, str] = MappingProxyType({
    "enqueue": "push(name, data)", "send_task": "push(name, data)", "dispatch": "push(name, data)",
    "enqueue_in": "later(delay, name, data)", "enqueue_at": "later(delay, name, data)",
    "enqueue_many": "bulk(jobs)", "fetch_job": "job(id)", "empty": "clear()", "purge": "clear()",
})  # fmt: skip


class Answering:
    """The base of jobs: for a method of another queue's, the error names ours."""

    _words: ClassVar[Mapping[str, str]] = METHODS

    if not TYPE_CHECKING:  # else type checkers would accept every attribute

        def __getattr__(self, name: str) -> object:
            ours = type(self)._words.get(name)
            hint = f": here that is {ours}" if ours else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)


class AnsweringQueue(Answering):
    """As ``Answering``, of a queue."""

    _words = QUEUES


def answering(push: Callable[P, R]) -> Callable[P, R]:
    """Decorator: an unknown keyword that is another queue's word is answered with ours."""

    @wraps(push)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return push(*args, **kwargs)
        except TypeError as error:
            if foreign := [key for key in kwargs if key in _KEYWORDS and repr(key) in str(error)]:
                raise TypeError(f"{error}; here that is {_KEYWORDS[foreign[0]]}") from None
            raise

    return asked


def of_dispatch(error: TypeError, given: Collection[str]) -> str:
    """What to add to the error of a dispatch that was given a keyword of ``using``; empty if it was none."""
    if foreign := [key for key in given if key in _USINGS and repr(key) in str(error)]:
        return f"; that is set first: using({_KEYWORDS.get(foreign[0], f'{foreign[0]}=...')}).dispatch(...)"
    return ""
