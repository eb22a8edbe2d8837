"""What was done in the last hour, day or month: charts, and what is slowest or fails most."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from queuepool.board.meters import RUN_BOUNDS
from queuepool.operating.past_report import chosen_of, document_of
from queuepool.web.asked import Asked
from queuepool.web.charts import line, throughput
from queuepool.web.connections import FIRST_PATIENCE, RANGES, StoreLink
from queuepool.web.desk import Desk
from queuepool.web.guard import Refusal
from queuepool.web.pages.failed import named_or_first

Facts = dict[str, Any]
#: by what the jobs are sorted: the largest first
_ORDERS: Mapping[str, str] = MappingProxyType({
    "busiest": "per_minute", "slowest": "run_p95", "failing": "failed", "waiting": "wait_p95",
})  # fmt: skip
#: most rows, and most buckets of a chart
_MOST, _MOST_BUCKETS = 200, 1000


def history(desk: Desk, asked: Asked) -> Facts:
    """One connection's history over a range: all of it, of one queue, or of one job."""
    link, chosen_range, order = named_or_first(desk, asked), _range(asked), _order(asked)
    queue, job = asked.text("queue"), asked.text("job")
    facts = past(link, chosen_range, queue, job)
    rows = sorted(facts.pop("jobs", ()), key=lambda row: -(row[_ORDERS[order]] or 0))
    chosen: Facts = {"range": chosen_range, "order": order, "queue": queue, "job": job}
    about: Facts = {
        "ranges": list(RANGES), "orders": list(_ORDERS), "connections": list(desk.links), "steps": list(RUN_BOUNDS),
    }  # fmt: skip
    return {"connection": link.name, **chosen, **about, "jobs": rows[:_MOST], **facts}


def past(link: StoreLink, name: str, queue: str = "", job: str = "", *, patience: float = FIRST_PATIENCE) -> Facts:
    """The report of one of the ranges, and its charts; without them, why."""
    found = link.past(name, patience)
    problems = [f"connection {link.name}: {found.problem}"] if found.problem else []
    if found.value is None:
        return {"problems": problems or ["the history is being read: look again"], "charts": [], "queues": []}
    span, whole = found.value
    report = document_of(span, chosen_of(whole, (queue,) if queue else None, job or None))
    buckets = report.pop("buckets")[-_MOST_BUCKETS:]
    return {**report, "charts": charts_of(buckets), "problems": problems}


def charts_of(buckets: list[Facts]) -> list[Facts]:
    """What is drawn: how attempts ended, how long they waited, how much was ready."""
    ready = [sum(one["ready"] for one in bucket["queues"].values()) if bucket["queues"] else None for bucket in buckets]
    waits = [bucket["wait_p95"] for bucket in buckets]
    return [
        throughput(buckets),
        line(buckets, "Waited, 95th percentile", waits, "s"),
        line(buckets, "Ready", ready, ""),
    ]


def _range(asked: Asked) -> str:
    found = asked.text("range") or next(iter(RANGES))
    if found not in RANGES:
        raise Refusal(400, f"range is one of {', '.join(RANGES)}")
    return found


def _order(asked: Asked) -> str:
    found = asked.text("order") or next(iter(_ORDERS))
    if found not in _ORDERS:
        raise Refusal(400, f"order is one of {', '.join(_ORDERS)}")
    return found
