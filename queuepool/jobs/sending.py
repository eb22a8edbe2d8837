"""How a dispatch pushes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queuepool.jobs.job_options import Delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """Options of ``Queue.push``, and the application's connection to use."""

    queue: str
    delay: Delay = 0
    within: Any = None
    after_commit: Any = None
