"""What one attempt runs, or why it must not begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from queuepool.errors import JobError
from queuepool.events import JobSkipped
from queuepool.events.listeners import Listeners
from queuepool.jobs.registry import Handler, Registry, Task, bound
from queuepool.payload.expiry import late_by
from queuepool.settlement.endings import Endings
from queuepool.settlement.run import Run
from queuepool.settlement.states import result_of
from queuepool.settlement.verdict import may_be_newer, may_start
from queuepool.stores.batches import Batches
from queuepool.worker.preparation import Attempt


class Starter:
    """Binds handlers to their arguments. ``batches`` returns the place of Laravel's batches.

    ``code`` says which code this worker runs, for errors that newer code might not have; empty = unknown.
    """

    def __init__(
        self, registry: Registry, listeners: Listeners, endings: Endings, batches: Callable[[], Batches], code: str
    ) -> None:
        self._registry = registry
        self._listeners = listeners
        self._endings = endings
        self._batches = batches
        self._code = code

    def task(self, attempt: Attempt, now: float) -> Task:
        """The handler with its arguments. Raises ``JobError`` if the job may not or cannot start."""
        try:
            return self._task(attempt, now)
        except JobError as refusal:
            refusal.began = False
            if self._code and may_be_newer(refusal):
                refusal.args = (f"{refusal}; {self._code}",)
            raise

    def _task(self, attempt: Attempt, now: float) -> Task:
        payload, plan = attempt.payload, attempt.plan
        handler = plan.handler or self._registry.find(payload.name)
        if refusal := may_start(payload.name, payload.attempts, plan.policy, now):
            raise refusal.error
        if plan.has_end and (late := self._late(attempt, handler, now)):
            return late
        if not plan.is_object_job:
            return bound(handler, self._endings.commands.data_of(payload), plan.read)
        command = self._endings.commands.of(payload)
        task = bound(handler, command.arguments, plan.read)
        if command.is_alone:
            return task
        if missing := self._endings.refusal(payload):
            raise missing
        why = self._cancelled(attempt, handler.options.skip_if_cancelled)
        return self._skipped(attempt, why) if why else task

    def task_of(self, attempt: Attempt) -> Task | None:
        """The handler with its arguments, for a hook of a job that is over; ``None`` if it has none that fit."""
        if attempt.plan.handler is None:
            return None
        try:
            return bound(attempt.plan.handler, self._endings.commands.data_of(attempt.payload), attempt.plan.read)
        except Exception:  # noqa: BLE001 - arguments that do not fit are why it failed
            return None

    def _late(self, attempt: Attempt, handler: Handler, now: float) -> Skipped | None:
        """A job whose handler says ``expires``, and that comes too late to begin; one that has begun is another's."""
        payload = attempt.payload
        late = late_by(payload.fields, now) if handler.options.expires and payload.attempts <= 1 else 0.0
        return self._skipped(attempt, f"it expired {late:.1f} s before it could begin") if late else None

    def _skipped(self, attempt: Attempt, why: str) -> Skipped:
        self._listeners.emit(JobSkipped(attempt.facts, why))
        return Skipped(why)

    def _cancelled(self, attempt: Attempt, asks: bool) -> str:
        """Why the job is left out: its batch was cancelled, and its handler or its middleware asks for that."""
        batch_id = self._endings.batch_of(attempt.payload, if_skipped=not asks)
        batch = self._batches().find(batch_id) if batch_id else None
        return f"batch {batch.id} was cancelled" if batch and batch.cancelled else ""


class Skipped(NamedTuple):
    """Runs nothing; the job counts as done."""

    why: str
    after_succeeded: None = None

    def run(self) -> object:
        return None

    def after_failed(self, error: BaseException) -> object:
        return None


def followed(run: Run, task: Task, returned: object) -> Run:
    """What those that follow the job learn of a task that has returned this value."""
    if isinstance(task, Skipped):
        return run._replace(cancelled=task.why)
    result, problem = result_of(returned)
    return run._replace(result=result, result_problem=problem)
