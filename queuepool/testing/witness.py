"""Listeners that note what becomes of an attempt, and pass every event on to those of the process."""

from __future__ import annotations

from queuepool.errors import BadPayload
from queuepool.events import Event, HookRaised, JobExceptionOccurred, JobFailed, JobQuarantined, JobReleased
from queuepool.events.listeners import LISTENERS, Listeners
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease
from queuepool.testing.attempts import Attempt


class Witness(Listeners):
    """One worker's."""

    def __init__(self) -> None:
        super().__init__()
        self._events: dict[type[Event], Event] = {}

    def wants(self, kind: type[Event]) -> bool:
        return LISTENERS.wants(kind)

    def emit(self, event: Event) -> bool:
        self._events[type(event)] = event
        return LISTENERS.emit(event)

    def begin(self) -> None:
        """Another attempt begins."""
        self._events.clear()

    @property
    def hook_error(self) -> BaseException | None:
        """What a hook of the attempt raised."""
        event = self._events.get(HookRaised)
        return event.error if isinstance(event, HookRaised) else None

    @property
    def raised(self) -> BaseException | None:
        """What the attempt raised, or one of its hooks."""
        event = self._events.get(JobExceptionOccurred)
        return event.error if isinstance(event, JobExceptionOccurred) else self.hook_error

    def attempt(self, lease: Lease) -> Attempt:
        """What became of the attempt with this lease."""
        try:
            job = decode(lease.receipt, lease.attempts)
            about = (job.id, job.name, lease.queue, job.attempts)
        except BadPayload:
            about = ("", "", lease.queue, 1)
        for event in self._events.values():
            if isinstance(event, JobFailed):
                return Attempt(*about, "failed", event.error)
            if isinstance(event, JobReleased):
                return Attempt(*about, "released", event.error, event.delay)
            if isinstance(event, JobQuarantined):
                return Attempt(*about, "quarantined", BadPayload(event.reason))
        return Attempt(*about, "done", self.raised)
