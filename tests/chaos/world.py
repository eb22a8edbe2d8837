"""Names that every part of the run uses."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PREFIX = "chaos_"
QUEUES = ("high", "steps", "default", "side")
#: of the pool whose workers run jobs side by side
WIDE = "wide"
