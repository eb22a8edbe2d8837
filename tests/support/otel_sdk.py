"""OpenTelemetry's SDK, imported from where ``scripts/setup`` has put it, apart."""

from __future__ import annotations

import sys

sys.path.append(f"{sys.prefix}/otel")

import opentelemetry.sdk.trace.export as export

__all__ = ["export"]
