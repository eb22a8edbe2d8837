"""OpenTelemetry: one trace through dispatches and jobs, in Python and in Laravel. Needs the extra ``otel``.

Workers and the steward import it with ``listeners = queuepool.contrib.otel``, other programs with ``import``. The
application sets up the SDK. A payload carries the keys of opentelemetry-php-contrib: ``traceparent``, ``tracestate``
and ``baggage``. Spans are named and described by the semantic conventions for messaging (in development).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from queuepool import __version__, around, on, on_push
from queuepool.errors import AttemptLost, Cancelled, Leaving, TimedOut, WorkerDied
from queuepool.events import (
    Event,
    JobCancelled,
    JobFacts,
    JobLost,
    JobTimedOut,
    KilledAttempt,
    StewardStopping,
    WorkerStopping,
)
from queuepool.jobs.current_job import Current
from queuepool.log.tracebacks import summary, text_of
from queuepool.payload.envelope import SCHEDULED_FOR
from queuepool.settlement.verdict import Fail, Release

try:
    from opentelemetry import context, trace
    from opentelemetry.baggage.propagation import W3CBaggagePropagator
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("it needs pip install 'queuepool-worker[otel]'", name=error.name) from error

#: most characters of a key's value: W3C asks for as much of ``tracestate``; ``@on_push`` has 8 KiB in all
_MOST = {"traceparent": 55, "tracestate": 512, "baggage": 3072}
#: most characters of a value that is read
_MOST_READ = 8192
#: seconds that the end of a process waits for the SDK to send what it has
_FLUSH_TIMEOUT = 2.0
_log = logging.getLogger("queuepool")
_tracer = trace.get_tracer("queuepool", __version__)
_trace_context, _baggage = TraceContextTextMapPropagator(), W3CBaggagePropagator()


@on_push
def _created(name: str, queue: str, fields: Mapping[str, Any]) -> Mapping[str, object] | None:
    """A span for the payload, which becomes the parent of the job's span, and the keys that record this."""
    if SCHEDULED_FOR in fields:
        return None  # every steward encodes it and one pushes it: the job's trace begins with the job
    about = {**_about("create", name, queue), "messaging.message.id": str(fields["uuid"])}
    with _tracer.start_as_current_span(f"create {queue}", kind=SpanKind.PRODUCER, attributes=about):
        carrier: dict[str, str] = {}
        _trace_context.inject(carrier)
        _baggage.inject(carrier)
    return {key: short for key, value in carrier.items() if (short := _shortened(key, value))}


@around
def _processed(job: Current) -> Iterator[None]:
    """The span of an attempt."""
    span, surrounding = _begun(job.name, job.queue, job.uuid or job.id, job.attempts, job.extra)
    token = context.attach(trace.set_span_in_context(span, surrounding))
    try:
        yield
        _add_verdict(span, job)
    except Leaving:
        span.set_attribute("messaging.message.released", True)
        raise
    except BaseException as raised:
        _add_error(span, _name_of(type(raised)), summary(raised), text_of(raised))
        raise
    finally:
        context.detach(token)
        span.end()


@on(JobTimedOut)
def _timed_out(event: JobTimedOut) -> None:
    if not event.killed.is_cancelled:  # else the hook has ended its span
        _write_killed(event.job, event.killed, TimedOut, "ran past its deadline", event.trace)


@on(JobLost)
def _lost(event: JobLost) -> None:
    _write_killed(event.job, event.killed, WorkerDied, event.cause, event.trace)


@on(JobCancelled)
def _cancelled(event: JobCancelled) -> None:
    killed = event.killed
    if killed.ended and not killed.is_cancelled:  # else it waited, or the hook has ended its span
        _write_killed(event.job, killed, Cancelled, f"cancelled by {event.by}", "")


@on(WorkerStopping, StewardStopping)
def _flush(event: Event) -> None:
    """Send what the SDK still has: the process ends without Python's exit handlers."""
    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush:
        # In a thread: exporters keep no timeout while their collector is away.
        thread = threading.Thread(target=flush, daemon=True)
        thread.start()
        thread.join(_FLUSH_TIMEOUT)


def _write_killed(job: JobFacts, killed: KilledAttempt, kind: type[AttemptLost], why: str, stack: str) -> None:
    """By the steward: the span of an attempt that its worker could not end."""
    ended = _nanoseconds(killed.ended)
    began = ended if killed.began is None else min(_nanoseconds(killed.began), ended)
    span, _ = _begun(job.name, job.queue, job.uuid or job.id, job.attempt, killed.extra, began)
    _add_error(span, _name_of(kind), why, stack, ended)
    span.end(ended)


def _begun(
    name: str, queue: str, message: str, attempt: int, extra: Mapping[str, Any], began: int | None = None
) -> tuple[Span, Context]:
    """The span of an attempt, and the context around it; ``began`` in Unix nanoseconds, now if it is not given.

    Its parent is the span that created the payload. A later attempt begins a trace of its own, with a link to that
    span: jobs that release themselves again and again would make one trace of any size.
    """
    carrier = {key: value for key in _MOST if isinstance(value := extra.get(key), str) and len(value) <= _MOST_READ}
    surrounding = _baggage.extract(carrier, Context())
    creation = _trace_context.extract(carrier, surrounding)
    about = {**_about("process", name, queue), "messaging.message.id": message, "queuepool.attempt": attempt}
    is_first = attempt <= 1
    span = _tracer.start_span(
        f"process {queue}",
        creation if is_first else surrounding,
        SpanKind.CONSUMER,
        about,
        () if is_first else _links(creation),
        began,
    )
    return span, surrounding


def _links(creation: Context) -> Sequence[Link]:
    found = trace.get_current_span(creation).get_span_context()
    return [Link(found)] if found.is_valid else []


def _about(operation: str, name: str, queue: str) -> dict[str, str | int]:
    return {
        "messaging.system": "queuepool",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": queue,
        "queuepool.job": name,
    }


def _add_verdict(span: Span, job: Current) -> None:
    """What the handler has decided without an exception."""
    if isinstance(job.verdict, Fail):
        error = job.verdict.error
        _add_error(span, _name_of(type(error)), summary(error), text_of(error))
    elif isinstance(job.verdict, Release):
        span.set_attribute("messaging.message.released", True)  # as the PHP package names it


def _add_error(span: Span, kind: str, why: str, stack: str, at: int | None = None) -> None:
    about = {"exception.type": kind, "exception.message": why, "exception.stacktrace": stack}
    span.add_event("exception", about, at)
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, why))


def _name_of(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _shortened(key: str, value: str) -> str:
    """Baggage is cut to whole members; a ``tracestate`` that is too long is left out, as its readers do."""
    if len(value) <= _MOST[key]:
        return value
    _warn(key)
    return value[: _MOST[key] + 1].rpartition(",")[0] if key == "baggage" else ""


@cache
def _warn(key: str) -> None:
    """Once for each key."""
    _log.warning(
        "otel: %s is longer than the %d characters that a job can carry: shortened or left out", key, _MOST[key]
    )


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
