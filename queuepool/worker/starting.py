"""What one attempt runs, or why it must not begin."""

from __future__ import annotations

from collections.abc import Callable

from queuepool.events import JobSkipped
from queuepool.events.listeners import Listeners
from queuepool.jobs.registry import Registry, Task, bound
from queuepool.settlement.endings import Endings
from queuepool.settlement.verdict import may_start
from queuepool.stores.batches import Batches
from queuepool.worker.preparation import Attempt


class Starter:
    """Binds handlers to their arguments. ``batches`` returns the place of Laravel's batches."""

    def __init__(
        self, registry: Registry, listeners: Listeners, endings: Endings, batches: Callable[[], Batches]
    ) -> None:
        self._registry = registry
        self._listeners = listeners
        self._endings = endings
        self._batches = batches

    def task(self, attempt: Attempt, now: float) -> Task:
        """The handler with its arguments. Raises ``JobError`` if the job may not or cannot start."""
        payload, plan = attempt.payload, attempt.plan
        handler = plan.handler or self._registry.find(payload.name)
        if refusal := may_start(payload.name, payload.attempts, plan.policy, now):
            raise refusal.error
        if not plan.is_object_job:
            return bound(handler, self._endings.commands.data_of(payload), plan.read)
        command = self._endings.commands.of(payload)
        task = bound(handler, command.arguments, plan.read)
        if command.is_alone:
            return task
        if missing := self._endings.refusal(payload):
            raise missing
        return _Skipped() if self._is_cancelled(attempt, handler.options.skip_if_cancelled) else task

    def task_of(self, attempt: Attempt) -> Task | None:
        """The handler with its arguments, for a hook of a job that is over; ``None`` if it has none that fit."""
        if attempt.plan.handler is None:
            return None
        try:
            return bound(attempt.plan.handler, self._endings.commands.data_of(attempt.payload), attempt.plan.read)
        except Exception:  # noqa: BLE001 - arguments that do not fit are why it failed
            return None

    def _is_cancelled(self, attempt: Attempt, asks: bool) -> bool:
        """Whether the job is left out as its batch was cancelled, if its handler or its middleware asks for that."""
        batch_id = self._endings.batch_of(attempt.payload, if_skipped=not asks)
        batch = self._batches().find(batch_id) if batch_id else None
        if batch is None or not batch.cancelled:
            return False
        self._listeners.emit(JobSkipped(attempt.facts, f"batch {batch.id} was cancelled"))
        return True


class _Skipped:
    """Runs nothing; the job counts as done."""

    after_succeeded = None

    def run(self) -> object:
        return None

    def after_failed(self, error: BaseException) -> object:
        return None
