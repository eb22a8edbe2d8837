"""How many jobs an action would concern, counted before it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.web.scans import MOST_COUNTS, Scan

Facts = dict[str, Any]
#: jobs that are counted, and seconds that this may take: who asks for that waits
_MOST, _WITHIN = 10_000_000, 5.0


def concerned(look: Look, pages: Iterable[Sequence[FoundJob]], until: float) -> Facts:
    """How many of each queue; ``until``: when this was asked, in the store's Unix seconds."""
    queues, scan = Counter[str](), Scan(look, _MOST, _WITHIN)
    for page in scan.pages(pages):
        queues.update(job.queue for job in page)
    return counted(queues, until, is_whole=not scan.is_cut)


def counted(queues: Counter[str], until: float, *, is_whole: bool = True) -> Facts:
    """The same, of what was counted."""
    rows = [{"queue": queue, "jobs": jobs} for queue, jobs in queues.most_common(MOST_COUNTS)]
    return {"count": queues.total(), "queues": rows, "until": until, "is_whole": is_whole}


#: where nothing could be counted
NONE: Facts = {"count": 0, "queues": [], "until": None, "is_whole": True}
