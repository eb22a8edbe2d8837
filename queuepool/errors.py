"""The errors that queuepool raises deliberately.

QueuepoolError
├── ConfigError          a setting is wrong; nothing has started
├── StoreError           the store refused a command
│   ├── TagRetired       a worker's tag is no longer registered; it needs a new one
│   ├── NoSuchFlow       nothing is known of a flow
│   ├── NeedsOneSlot     it cannot be done on a cluster where queues are in slots of their own
│   └── StoreDown        the store cannot be reached or cannot serve now; worth a retry
│       ├── StoreFull    it has no room for anything new
│       │   └── RefusesNew   it still serves what it holds
│       ├── PartDown     one of several nodes is away; the others serve their queues
│       ├── NotReplicated  it has done what was asked, but too few replicas have it
│       │   └── PartNotReplicated  likewise on one of several nodes, and so a PartDown, too
│       ├── LoginRefused it does not accept the user or the password
│       └── StoreDenied  its rules forbid this user the command, until they are changed
│           ├── TableMissing  the database lacks a table
│           └── StoreUnfit  the server is unsuitable: a cluster's node, a Sentinel
├── BadPayload           bytes that cannot be a job: refused at the push, quarantined by a worker
│   └── NotSendable      an argument that cannot be written as JSON: refused at the push
├── NotTracked           the store knows nothing about the job to follow
├── JobError             a job that must not be retried
│   ├── UnknownJob       nothing is registered under its name
│   ├── BadArguments     its data does not fit its handler
│   ├── NeedsLaravel     it belongs to a chain, a batch …, and nothing could tell Laravel how it ended
│   ├── ResultTooLarge   a job of its flow takes its result, which cannot be kept
│   ├── TooManyAttempts  it has used all its attempts
│   ├── NoTriesLeft      its handler called ``current().release()`` in its last attempt
│   ├── JobExpired       its retryUntil has passed
│   └── JobFailedByHand  its handler called ``current().fail()``
├── AttemptLost          an attempt that ended with its process
│   ├── TimedOut         the deadline passed
│   ├── Cancelled        the job was cancelled, while it ran or before
│   └── WorkerDied       a signal, or an unexpected exit
├── BootFailure          the user's modules did not import
├── NoRoom               the disk (or tmpfs) has no room for the pool's files
├── NoStack              the stack of a running job cannot be read
├── PoolRunning          another master holds the pidfile
└── NotRunning           no pool of that name runs on this host

SoftTimeout              raised in a handler at its soft timeout; like KeyboardInterrupt, not an ``Exception``
Leaving                  raised in a handler at the end of a step: its job goes on in another worker
LeaseEnded               raised in a handler by a step: another worker may have its job; neither is an ``Exception``
"""

from __future__ import annotations


class QueuepoolError(Exception):
    """The base of every error above."""


class ConfigError(QueuepoolError):
    """A setting is wrong; ``where`` is ``file:line: [section] key``, as far as known."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)


class StoreError(QueuepoolError):
    """The store answered with an error; the same command would be refused again.

    ``store`` names a store other than the queue's: ``"failed store"``, ``"control store"``.
    """

    def __init__(self, problem: str, store: str = "") -> None:
        super().__init__(f"{store}: {problem}" if store else problem)
        self.store = store


class TagRetired(StoreError):
    """Nothing was done: the worker's tag was retired or its registration was lost. The worker needs a new tag."""


class NoSuchFlow(StoreError):
    """Nothing is known of a flow: it never existed or never started, or has ended and is not kept any more."""

    def __init__(self, flow_id: str) -> None:
        super().__init__(f"nothing is known of flow {flow_id!r}: it never existed, or is not kept any more")


class NeedsOneSlot(StoreError):
    """It cannot be done on a cluster where each queue is in the slot of its own hash tag."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs all keys of a cluster in one slot: give [connection] prefix a tag, as in {{app}}:"
        )


class StoreDown(StoreError):
    """The store cannot be reached, or reports that it cannot serve now."""


class StoreFull(StoreDown):
    """The store has no room for anything new."""


class RefusesNew(StoreFull):
    """It refuses only what is new, and still moves and settles what it holds: a full Redis does, a database cannot."""


class PartDown(StoreDown):
    """The node with these queues is away, on a cluster whose other nodes may serve theirs."""


class NotReplicated(StoreDown):
    """The server has done what was asked, but too few replicas (``wait_replicas``) had it in time.

    A job that was pushed is there, and will run unless a failover loses it: another push may be a second one.
    """


class PartNotReplicated(PartDown, NotReplicated):
    """Likewise, on one of several nodes; the others serve their queues."""


class LoginRefused(StoreDown):
    """The store does not accept the user or the password."""


class StoreDenied(StoreDown):
    """The store's rules forbid this user the command. Worth a retry: no work is lost once they are changed."""


class StoreUnfit(StoreDenied):
    """The server is unsuitable or lacks what we need: a mistake in the configuration."""


class TableMissing(StoreDenied):
    """The database lacks a table: it was made by an older version, or is not migrated yet."""


class BadPayload(QueuepoolError):
    """These bytes cannot be a job; ``reason`` is one word, which the quarantine records."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not a job: {reason}")
        self.reason = reason


class NotSendable(BadPayload, TypeError):
    """A dispatched argument is not JSON, and its type is not registered."""

    def __init__(self, problem: str) -> None:
        QueuepoolError.__init__(self, problem)
        self.reason = problem


class NotTracked(QueuepoolError):
    """Nothing is known about a job: it is not tracked, its state has expired, or it never existed."""

    def __init__(self, job_id: str) -> None:
        why = "it is not tracked, its state has expired, or it never existed"
        super().__init__(f"nothing is known of job {job_id!r}: {why}")


class JobError(QueuepoolError):
    """A job that fails at once, even with tries left, unless newer code may know better."""

    #: whether its handler was called; if not, nothing has run
    began = True


#: Laravel's class for a closure that was dispatched
CLOSURE = "Illuminate\\Queue\\CallQueuedClosure"


class UnknownJob(JobError):
    """Nothing is registered under this name; a payload never causes an import. ``lacks``: what its class is missing."""

    def __init__(self, name: str, lacks: str = "") -> None:
        problem = f"no job is registered as {name!r}: import its module in `modules`, or register it"
        self.name, self.lacks = name, lacks
        php = "a closure holds PHP code, which cannot run here: dispatch a class, or push it to one of Laravel's queues"
        super().__init__(f"{name} has no {lacks}" if lacks else php if name == CLOSURE else problem)


class BadArguments(JobError):
    """The payload's data does not fit the handler's signature."""

    def __init__(self, name: str, problem: object) -> None:
        super().__init__(f"bad arguments for {name}: {problem}")


class NeedsLaravel(JobError):
    """An object job that only Laravel can conclude; it has not begun, and can be retried once that is configured.

    ``by_outcome``: whether all that is ``lacking`` can be handed to Laravel.
    """

    def __init__(self, name: str, lacking: list[str], *, by_outcome: bool = True) -> None:
        outcomes = "set `outcomes` in [connection], so that Laravel continues it, or " if by_outcome else ""
        super().__init__(
            f"{name} {' and '.join(lacking)}, so it was not begun: {outcomes}run it in Laravel, or "
            "ignore that with `foreign = ignore`; then retry it"
        )


class ResultTooLarge(JobError):
    """Another job of the flow takes what this one has returned, and it cannot be kept."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: another job of its flow takes its result, which cannot be kept: {problem}")


class TooManyAttempts(JobError):
    """Laravel's MaxAttemptsExceededException: raised before the attempt, not after it."""

    def __init__(self, name: str, attempts: int, tries: int, lost: int = 0) -> None:
        why = f", {lost} of them lost with their workers or hosts" if lost else ""
        super().__init__(f"{name} has been attempted too many times (attempt {attempts} of {tries}{why})")


class NoTriesLeft(JobError):
    """The handler called ``current().release()`` with no tries left."""

    def __init__(self, name: str, attempts: int, tries: int) -> None:
        more = "give it more tries, or 0 for no limit"
        super().__init__(
            f"{name} was released by its handler with no tries left (attempt {attempts} of {tries}): {more}"
        )


class JobExpired(JobError):
    """The job's ``retryUntil`` passed before this attempt began."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} may not be tried any more: its retryUntil has passed")


class JobFailedByHand(JobError):
    """The handler called ``current().fail(reason)``."""


class AttemptLost(QueuepoolError):
    """An attempt that ended because its process did; ``trace`` is faulthandler's dump, or empty."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


class TimedOut(AttemptLost):
    """The attempt ran past its deadline and was killed."""


class Cancelled(AttemptLost):
    """``by``, as ``user@host``, has cancelled the job: it is not tried again, whatever its tries."""

    def __init__(self, message: str, trace: str = "", by: str = "") -> None:
        super().__init__(message, trace)
        self.by = by


class WorkerDied(AttemptLost):
    """The worker was ended by a signal, by the memory limit, or by an unexpected exit."""


class SoftTimeout(BaseException):
    """The handler has run for ``seconds``, its soft timeout; in an async handler it follows a ``CancelledError``.

    Not an ``Exception``: code that logs and ignores whatever goes wrong must not ignore this too.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the handler has run for {seconds:g} s, its soft timeout")


class Leaving(BaseException):
    """The job goes back to the head of its queue, and goes on behind its last step: its worker is to stop.

    Not an ``Exception``, as ``SoftTimeout``. A handler that catches it and goes on gets it again at its next step.
    """


class LeaseEnded(BaseException):
    """Another worker may have the job: nothing that this attempt does is kept or settled. Not an ``Exception``."""

    def __init__(self) -> None:
        super().__init__("the lease of the job was lost: another worker may have it")


class BootFailure(QueuepoolError):
    """The user's modules did not import, or define no job; ``trace`` is the original traceback, if it adds anything."""

    def __init__(self, problem: str, trace: str = "") -> None:
        super().__init__(problem)
        self.trace = trace


class NoStack(QueuepoolError):
    """The stack of a running job cannot be read, or not in time."""


class NoRoom(QueuepoolError):
    """The disk, or the memory that backs it, has no room for the pool's files."""

    def __init__(self, where: object) -> None:
        super().__init__(f"no room left for {where}")


class PoolRunning(QueuepoolError):
    """Another master holds this pool's pidfile: the process ``pid``."""

    def __init__(self, name: str, pid: int, where: object, description: str = "") -> None:
        self.pid = pid
        another = "to run another one beside it, give that a name: [pool:NAME] in a file, or --pool NAME"
        which = f"; it is {description}" if description else ""
        super().__init__(f"pool {name!r} is already running (pid {pid}, in {where}{which}): {another}")


class NotRunning(QueuepoolError):
    """No master of this pool runs on this host; ``another``: the pool whose master runs in its place, in words."""

    def __init__(self, name: str, where: object, another: str = "") -> None:
        hint = "choose another pool by -c FILE, --pool NAME or --runtime-dir DIR"
        plain = f"pool {name!r} is not running (no live master in {where}; {hint})"
        super().__init__(f"pool {name!r}: {another}" if another else plain)
        self.another = another
