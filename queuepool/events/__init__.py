"""Every event, as a frozen dataclass of facts.

A listener is a function in a module that the configuration names under ``listeners``::

    from queuepool import on
    from queuepool.events import JobFailed

    @on(JobFailed)
    def report(event: JobFailed) -> None:
        print(event.job.name, event.error)

A worker emits the events of its running job. The steward emits those that a dead worker cannot (``JobTimedOut``,
``JobLost``, ``JobCancelled``, the ``JobReleased`` or ``JobFailed`` that follows, ``WorkerDied``) and the pool's own
events. Listeners run in the process that emits.
"""

from queuepool.events.base import Event, JobEvent, JobFacts, KilledAttempt
from queuepool.events.jobs import (
    HookRaised,
    JobCancelled,
    JobExceptionOccurred,
    JobFailed,
    JobGivenBack,
    JobLost,
    JobProcessed,
    JobProcessing,
    JobQuarantined,
    JobQueued,
    JobReleased,
    JobReserving,
    JobSkipped,
    JobTimedOut,
    LeaseLost,
    LoopBlocked,
    PayloadOdd,
    ResultNotKept,
    TasksLeft,
)
from queuepool.events.pool import (
    AlertCleared,
    AlertEvent,
    AlertRaised,
    AlertUnsent,
    BootFailed,
    FailureUnrecorded,
    Looping,
    MaintenanceChanged,
    PoolContinued,
    PoolPaused,
    PoolRestarting,
    ScheduleMissed,
    SchedulePushed,
    SideStoreLost,
    SideStoreRegained,
    StewardStopping,
    StoreLost,
    StoreRefused,
    StoreRegained,
    StoreStillLost,
    WorkerContinued,
    WorkerDied,
    WorkerPaused,
    WorkerStarting,
    WorkerStopping,
)

__all__ = [
    "AlertCleared",
    "AlertEvent",
    "AlertRaised",
    "AlertUnsent",
    "BootFailed",
    "Event",
    "FailureUnrecorded",
    "HookRaised",
    "JobCancelled",
    "JobEvent",
    "JobExceptionOccurred",
    "JobFacts",
    "JobFailed",
    "JobGivenBack",
    "JobLost",
    "JobProcessed",
    "JobProcessing",
    "JobQuarantined",
    "JobQueued",
    "JobReleased",
    "JobReserving",
    "JobSkipped",
    "JobTimedOut",
    "KilledAttempt",
    "LeaseLost",
    "LoopBlocked",
    "Looping",
    "MaintenanceChanged",
    "PayloadOdd",
    "PoolContinued",
    "PoolPaused",
    "PoolRestarting",
    "ResultNotKept",
    "ScheduleMissed",
    "SchedulePushed",
    "SideStoreLost",
    "SideStoreRegained",
    "StewardStopping",
    "StoreLost",
    "StoreRefused",
    "StoreRegained",
    "StoreStillLost",
    "TasksLeft",
    "WorkerContinued",
    "WorkerDied",
    "WorkerPaused",
    "WorkerStarting",
    "WorkerStopping",
]
