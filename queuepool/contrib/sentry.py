"""Sentry: failed and killed jobs, and one trace through dispatches and jobs, also with Laravel's. Needs ``sentry``.

Workers and the steward import it with ``listeners = queuepool.contrib.sentry``, other programs with ``import``. The
application calls ``sentry_sdk.init``. A payload carries the keys of sentry-laravel: ``sentry_trace_parent_data``,
``sentry_baggage_data`` and ``sentry_publish_time``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from queuepool import around, on, on_push
from queuepool.errors import AttemptLost, Leaving
from queuepool.events import (
    Event,
    JobExceptionOccurred,
    JobFacts,
    JobFailed,
    JobLost,
    JobReleased,
    JobTimedOut,
    KilledAttempt,
    StewardStopping,
    WorkerStopping,
)
from queuepool.jobs.current_job import Current
from queuepool.log.tracebacks import users_traceback
from queuepool.payload.envelope import SCHEDULED_FOR
from queuepool.settlement.verdict import Fail, Release

try:
    import sentry_sdk
    from sentry_sdk.integrations.logging import ignore_logger
    from sentry_sdk.scope import should_send_default_pii, use_isolation_scope
    from sentry_sdk.utils import event_from_exception
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("it needs pip install 'queuepool-worker[sentry]'", name=error.name) from error

_TRACE, _BAGGAGE, _PUBLISHED = "sentry_trace_parent_data", "sentry_baggage_data", "sentry_publish_time"
#: most characters of a key that is written, as ``@on_push`` has 8 KiB in all, and of one that is read
_MOST, _MOST_READ = 2048, 8192
#: most attempts that are kept for their reports
_MOST_ATTEMPTS = 2048
#: seconds that the end of a process waits for the SDK to send what it has
_FLUSH_TIMEOUT = 2.0
_MECHANISM = {"type": "queuepool", "handled": False}

# The lines of the log about failed jobs would be events too, without their tracebacks.
ignore_logger("queuepool")


@dataclass(slots=True, eq=False)
class _Attempt:
    """A scope that is kept for what is reported after it has ended."""

    job: Current
    scope: Any
    span: Any
    reported: BaseException | None = None


@dataclass(slots=True)
class _State:
    """This process's settings; its attempts that have not ended well and are not settled, by id and number."""

    every_exception: bool = False
    attempts: dict[tuple[str, int], _Attempt] = field(default_factory=dict)

    def begins(self, attempt: _Attempt) -> None:
        if len(self.attempts) >= _MOST_ATTEMPTS:  # some, as after a lost lease, are never reported as settled
            del self.attempts[next(iter(self.attempts))]
        self.attempts[attempt.job.id, attempt.job.attempts] = attempt

    def of(self, job: JobFacts) -> _Attempt | None:
        return self.attempts.get((job.id, job.attempt))

    def forget(self, identity: str, attempt: int) -> None:
        self.attempts.pop((identity, attempt), None)


_state = _State()


def report_every_exception() -> None:
    """Report each exception of a job, also of those that are retried; without this, of failed jobs alone."""
    _state.every_exception = True


@on_push
def _published(name: str, queue: str, fields: Mapping[str, Any]) -> Mapping[str, object] | None:
    """A span in the current transaction, and the keys by which the job's transaction continues its trace."""
    if SCHEDULED_FOR in fields or not sentry_sdk.is_initialized():
        return None  # every steward encodes a schedule's job, and one pushes it
    with sentry_sdk.start_span(op="queue.publish", name=name, origin="auto.queue.queuepool") as span:
        _describe(span, queue, str(fields["uuid"]))
        texts = {_TRACE: sentry_sdk.get_traceparent(), _BAGGAGE: sentry_sdk.get_baggage()}
    return {key: text for key, text in texts.items() if text and len(text) <= _MOST} | {_PUBLISHED: time.time()}


@around
def _processed(job: Current) -> Iterator[None]:
    """A scope and a transaction for each attempt."""
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()
        transaction = _continued(job.extra, job.name)
        with sentry_sdk.start_transaction(transaction) as span:
            _describe(span, job.queue, job.uuid or job.id)
            span.set_data("messaging.message.retry.count", job.attempts - 1)
            published = job.extra.get(_PUBLISHED)
            if isinstance(published, (int, float)):
                span.set_data("messaging.message.receive.latency", (time.time() - published) * 1000)
            _state.begins(_Attempt(job, scope, span))
            try:
                yield
                span.set_status("internal_error" if isinstance(job.verdict, Fail) else "ok")
                if not isinstance(job.verdict, (Fail, Release)):
                    _state.forget(job.id, job.attempts)
            except Leaving:
                span.set_status("ok")
                raise
            except BaseException:
                span.set_status("internal_error")
                raise


@on(JobExceptionOccurred)
def _raised(event: JobExceptionOccurred) -> None:
    if _state.every_exception:
        _report(event.job, event.error)


@on(JobFailed)
def _failed(event: JobFailed) -> None:
    if not isinstance(event.error, AttemptLost):  # whose own event has more
        _report(event.job, event.error)
    _state.forget(event.job.id, event.job.attempt)


@on(JobReleased)
def _released(event: JobReleased) -> None:
    _state.forget(event.job.id, event.job.attempt)


@on(JobTimedOut)
def _timed_out(event: JobTimedOut) -> None:
    why = f"{event.job.name} (attempt {event.job.attempt}) ran past its deadline"
    _report_killed("JobTimedOut", why, event.job, event.killed, event.trace)


@on(JobLost)
def _lost(event: JobLost) -> None:
    _report_killed("JobLost", event.cause, event.job, event.killed, event.trace)


@on(WorkerStopping, StewardStopping)
def _flush(event: Event) -> None:
    """Send what the SDK still has: the process ends without Python's exit handlers."""
    sentry_sdk.flush(timeout=_FLUSH_TIMEOUT)


def _report(job: JobFacts, error: BaseException) -> None:
    """Report the error of an attempt once, in the attempt's scope and trace."""
    if attempt := _state.of(job):
        if error is attempt.reported:
            return
        attempt.reported = error
    options = dict(sentry_sdk.get_client().options)
    if not should_send_default_pii():
        options["include_local_variables"] = False  # a handler's arguments are among them
    event, hint = event_from_exception((type(error), error, users_traceback(error)), options, _MECHANISM)
    with _scope_of(attempt) as scope:
        _add_facts(scope, job)
        sentry_sdk.capture_event(event, hint)


def _report_killed(kind: str, why: str, job: JobFacts, killed: KilledAttempt, stack: str) -> None:
    """By the steward: an attempt that its worker could not report."""
    value = {"type": kind, "value": why, "mechanism": _MECHANISM}
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()  # they are about the steward, not the job
        _continued(killed.extra, job.name)
        if stack:
            scope.add_attachment(bytes=stack.encode(), filename="stack.txt", content_type="text/plain")
        _add_facts(scope, job)
        event: Any = {"level": "error", "exception": {"values": [value]}}
        sentry_sdk.capture_event(event | {"fingerprint": ["queuepool", kind, job.name]})


@contextmanager
def _scope_of(attempt: _Attempt | None) -> Iterator[Any]:
    """The attempt's scope; a new one for a job that this process has not run."""
    if attempt is None:
        with sentry_sdk.isolation_scope() as scope:
            yield scope
        return
    # A new one, since that of the caller may be shared with other threads.
    with use_isolation_scope(attempt.scope) as scope, sentry_sdk.new_scope() as current:
        current.span = attempt.span
        if should_send_default_pii():
            scope.set_context("arguments", {"data": attempt.job.payload.data})
        yield scope


def _add_facts(scope: Any, job: JobFacts) -> None:
    scope.set_transaction_name(job.name, source="task")
    scope.set_tag("queuepool.job", job.name)
    scope.set_tag("queuepool.queue", job.queue)
    scope.set_context("job", {"id": job.id, "name": job.name, "queue": job.queue, "attempt": job.attempt})


def _continued(extra: Mapping[str, Any], name: str) -> Any:
    """A transaction in the trace that a payload belongs to."""
    keys = {"sentry-trace": _TRACE, "baggage": _BAGGAGE}
    headers = {header: text for header, key in keys.items() if (text := _text_of(extra.get(key)))}
    about = {"op": "queue.process", "name": name, "source": "task", "origin": "auto.queue.queuepool"}
    return sentry_sdk.continue_trace(headers, **about)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= _MOST_READ else ""


def _describe(span: Any, queue: str, message: str) -> None:
    span.set_data("messaging.system", "queuepool")
    span.set_data("messaging.destination.name", queue)
    span.set_data("messaging.message.id", message)
