"""Which code a worker runs, in words: what it does not know may be in newer code."""

from __future__ import annotations

from datetime import UTC, datetime

from queuepool.jobs import at_import


def words_on(generation: int, *, alone: bool) -> str:
    """Of a pool's worker of this generation, or of one that is alone; empty if this process has imported no modules."""
    if not at_import.ended_at:
        return ""
    at = datetime.fromtimestamp(at_import.ended_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if alone:
        return f"this worker runs code that it imported at {at}: if the job is newer, start it again"
    return f"this worker runs code of generation {generation}, imported at {at}: if the job is newer, reload the pool"
