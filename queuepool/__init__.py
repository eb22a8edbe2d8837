"""A prefork worker pool with a watchdog for Laravel's queue."""

from queuepool.client import Queue, configure, connect
from queuepool.current import current
from queuepool.job import job
from queuepool.job_class import Job
from queuepool.listeners import on
from queuepool.to_json import register_type

__all__ = ["Job", "Queue", "configure", "connect", "current", "job", "on", "register_type"]
__version__ = "0.1.0"
