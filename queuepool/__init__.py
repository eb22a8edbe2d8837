"""A queue and a pool of workers for background jobs, compatible with Laravel's queue."""

from importlib import import_module
from types import MappingProxyType

TYPE_CHECKING = False  # importing typing would cost more than this whole module; type checkers know the name
if TYPE_CHECKING:
    from queuepool.errors import SoftTimeout
    from queuepool.events.listeners import on
    from queuepool.jobs.around import around, lifespan
    from queuepool.jobs.calls import Call, Member, result, results
    from queuepool.jobs.client import Queue
    from queuepool.jobs.composing import chain, group
    from queuepool.jobs.connecting import configure, connect
    from queuepool.jobs.context import context
    from queuepool.jobs.current_job import current
    from queuepool.jobs.decorator import job
    from queuepool.jobs.flows import Flow
    from queuepool.jobs.job_class import Job
    from queuepool.jobs.job_options import Retry, exponential
    from queuepool.jobs.limits import Concurrency, Rate
    from queuepool.jobs.php import php
    from queuepool.jobs.steps import cursor, step
    from queuepool.payload.on_push import on_push
    from queuepool.payload.strict_json import register_type

__all__ = [
    "Call", "Concurrency", "Flow", "Job", "Member", "Queue", "Rate", "Retry", "SoftTimeout", "around", "chain",
    "configure", "connect", "context", "current", "cursor", "exponential", "group", "job", "lifespan", "on", "on_push",
    "php", "register_type", "result", "results", "step",
]  # fmt: skip
__version__ = "0.1.0"

#: the module of each public name; imported at first use, so that a process loads only what it needs
_MODULES = MappingProxyType({
    "Job": "jobs.job_class", "Queue": "jobs.client", "Retry": "jobs.job_options", "SoftTimeout": "errors",
    "around": "jobs.around", "configure": "jobs.connecting", "connect": "jobs.connecting", "context": "jobs.context",
    "current": "jobs.current_job", "cursor": "jobs.steps", "exponential": "jobs.job_options", "job": "jobs.decorator",
    "lifespan": "jobs.around", "on": "events.listeners", "on_push": "payload.on_push",
    "register_type": "payload.strict_json", "step": "jobs.steps", "Call": "jobs.calls", "Member": "jobs.calls",
    "result": "jobs.calls", "results": "jobs.calls", "Flow": "jobs.flows", "php": "jobs.php", "chain": "jobs.composing",
    "group": "jobs.composing", "Concurrency": "jobs.limits", "Rate": "jobs.limits",
})  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "testing":
        return import_module(f"{__name__}.testing")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
