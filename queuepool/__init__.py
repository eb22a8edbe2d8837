"""A queue and a pool of workers for background jobs, compatible with Laravel's queue."""

from importlib import import_module
from types import MappingProxyType

TYPE_CHECKING = False  # typing's own would cost more than all of this; type checkers know the name
if TYPE_CHECKING:
    from queuepool.client import Queue, configure, connect
    from queuepool.current_job import current
    from queuepool.decorator import job
    from queuepool.job_class import Job
    from queuepool.listeners import on
    from queuepool.to_json import register_type

__all__ = ["Job", "Queue", "configure", "connect", "current", "job", "on", "register_type"]
__version__ = "0.1.0"

#: where each name is; imported at its first use, so that no process has more of us in memory than it needs
_PLACES = MappingProxyType({
    "Job": "job_class", "Queue": "client", "configure": "client", "connect": "client", "current": "current_job",
    "job": "decorator", "on": "listeners", "register_type": "to_json",
})  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
