"""Names that every part of the run uses."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PREFIX = "chaos_"
QUEUES = ("limited", "high", "steps", "default", "side")
#: the queue of jobs that run side by side, where a pool can
WIDE = "wide"
#: what such a pool serves. The others serve that queue too, so each job may be tried by either kind of worker
WIDE_QUEUES = (WIDE, "default")
