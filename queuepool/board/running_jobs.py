"""What a pool runs, or ran when it last said so, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def ran_words(pool: Mapping[str, Any], most: int) -> str:
    """The names and ids of ``most`` of its jobs; ``pool`` is as of ``overview``, or a notice in any form."""
    try:
        jobs = [process["job"] for process in pool["processes"] if "job" in process]
        shown = [f"{job['name']} {job['id']}" for job in jobs[:most]]
    except (LookupError, TypeError, AttributeError):
        return ""
    more = f" and {len(jobs) - most} more" if len(jobs) > most else ""
    return f"it ran {', '.join(shown)}{more}" if shown else "it ran no job"
