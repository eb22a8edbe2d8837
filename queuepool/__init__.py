"""A prefork worker pool with a watchdog for Laravel's queue."""

from importlib import import_module
from typing import TYPE_CHECKING

from queuepool.current import current
from queuepool.job import job
from queuepool.job_class import Job

if TYPE_CHECKING:
    from queuepool.client import Queue, configure, connect
    from queuepool.listeners import on

__all__ = ["Job", "Queue", "configure", "connect", "current", "job", "on"]
__version__ = "0.1.0"

#: imported at the first use: a module that only defines jobs does without, and so does the master
_LATER = {"Queue": "client", "configure": "client", "connect": "client", "on": "listeners"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return found
