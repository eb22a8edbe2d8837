"""Sentry's SDK for a process under test: each event and transaction that is sent is a line of the trail."""

from __future__ import annotations

import os
from typing import Any

import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from queuepool.contrib import sentry
from tests.support.poolapp import note


class ToTrail(Transport):
    """Sends at once; ``flush`` is noted."""

    def capture_envelope(self, envelope: Envelope) -> None:
        attached = [item.get_bytes().decode() for item in envelope.items if item.type == "attachment"]
        for item in envelope.items:
            if item.type in ("event", "transaction"):
                note(event="sent", kind=item.type, sent=item.payload.json, attached=attached)

    def flush(self, timeout: float, callback: Any = None) -> None:
        note(event="flushed")


sentry_sdk.init(
    dsn="https://key@sentry.invalid/1",
    transport=ToTrail,
    traces_sample_rate=1.0,
    auto_enabling_integrations=False,
    send_default_pii=os.environ.get("PII") == "yes",
)
sentry_sdk.add_breadcrumb(message="what the process itself did, as its own SQL")
if os.environ.get("EVERY") == "yes":
    sentry.report_every_exception()
