"""OpenTelemetry's SDK for a process under test: each span that is sent is a line of the trail."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

sys.path.append(f"{sys.prefix}/otel")  # see scripts/setup

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tests.support.poolapp import note


class ToTrail(SpanExporter):
    """With ``COLLECTOR=away`` it waits, as one whose server does not answer."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if os.environ.get("COLLECTOR") == "away":
            time.sleep(60)
        for span in spans:
            write(span)
        return SpanExportResult.SUCCESS


def write(span: ReadableSpan) -> None:
    context = span.get_span_context()
    assert context
    note(
        event="span",
        name=span.name,
        trace=f"{context.trace_id:032x}",
        span=f"{context.span_id:016x}",
        parent=f"{span.parent.span_id:016x}" if span.parent else "",
        links=[f"{link.context.trace_id:032x}" for link in span.links],
        kind=span.kind.name,
        status=span.status.status_code.name,
        why=span.status.description or "",
        about=dict(span.attributes or {}),
        events=[dict(event.attributes or {}) for event in span.events],
        began=(span.start_time or 0) / 1e9,
        ended=(span.end_time or 0) / 1e9,
    )


def set_up() -> None:
    """Nothing is sent for a minute, unless it is flushed."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(ToTrail(), schedule_delay_millis=60_000))
    trace.set_tracer_provider(provider)


if os.environ.get("SPANS") != "later":
    set_up()
