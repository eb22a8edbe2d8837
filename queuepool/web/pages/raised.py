"""The alerts that are raised, with the figures of this moment: what a pool has told of them may be a minute old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from queuepool.board.open_alerts import OpenAlert, words_of
from queuepool.board.overview import AlertRow, PoolOverview
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.pool_rows import Watched, overviews

Facts = dict[str, Any]
#: the figure of its queue that an alert is about
_FIGURES: Mapping[str, str] = MappingProxyType({
    "wait": "oldest", "unserved": "oldest", "overdue": "overdue", "quarantine": "quarantined",
})  # fmt: skip


def alert_rows(desk: Desk, asked: Asked, stores: Watched, queues: Sequence[Facts]) -> list[Facts]:
    """The alerts that any pool has raised, each once, the oldest first. ``queues``: as the page shows them."""
    found: dict[tuple[str, str], Facts] = {}
    for pool, one in overviews(desk, stores):
        for alert in one.alerts:
            text = _text(alert, alert.value if _hides(alert, asked) else _figure(alert, one, stores, queues))
            row = {"kind": alert.kind, "subject": alert.subject, "since": alert.since, "text": text, "pool": pool}
            known_row = found.setdefault((alert.kind, alert.subject), row)
            if alert.since < known_row["since"]:
                found[alert.kind, alert.subject] = row
    return sorted(found.values(), key=lambda row: str(row["since"]))


def _hides(alert: AlertRow, asked: Asked) -> bool:
    """Whether its details are not shown: the name of a flow may be made of values (``flow_without_data``)."""
    return alert.kind == "stalled" and asked.data != "yes"


def _text(alert: AlertRow, value: float | None) -> str:
    if value is None:
        return alert.text
    return words_of(OpenAlert(alert.kind, alert.subject, value, alert.limit, since=0.0))


def _figure(alert: AlertRow, pool: PoolOverview, stores: Watched, queues: Sequence[Facts]) -> float | None:
    """What the pages show of what it is about; ``None`` if they do not, or if that is not sure."""
    if alert.kind == "running":
        jobs = (job for process in pool.processes for job in process.jobs if job.name == alert.subject)
        return max((job.running for job in jobs), default=None)
    if alert.kind == "failed" and len(stores) == 1:
        facts = stores[0][1].value
        return facts.failed if facts else None
    rows = [row for row in queues if row["queue"] == alert.subject] if alert.kind in _FIGURES else []
    return _of_queue(rows[0], _FIGURES[alert.kind]) if len(rows) == 1 else None


def _of_queue(row: Facts, figure: str) -> float | None:
    found: float | None = row[figure]
    return 0.0 if found is None and not row["ready"] else found
