"""What workers run on all hosts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from queuepool.board.overview import JobRow, ProcessRow
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.pool_rows import place_of, places_here, watched
from queuepool.web.pages.queues import remarks
from queuepool.web.shown import without_data

Facts = dict[str, Any]
#: most jobs that are shown: those that have used most of their time
_MOST = 500


def running(desk: Desk, asked: Asked) -> Facts:
    """The jobs that run, those nearest to their limit first."""
    stores = watched(desk)
    rows = [*_here(desk), *_elsewhere(desk, stores)]
    name, queue = asked.text("name"), asked.text("queue")
    meant = [row for row in rows if name in (row["name"] or "") and queue in ("", row["queue"])]
    meant.sort(key=lambda row: (-(row["share"] or 0.0), -row["running"]))
    shown = [without_data(row, asked) for row in meant[:_MOST]]
    return {"jobs": shown, "count": len(meant), "left_out": max(len(meant) - _MOST, 0), **remarks(stores)}


def _here(desk: Desk) -> Iterator[Facts]:
    for one in desk.boards.readings():
        if one.reading and one.reading.running:
            place = {
                "host": socket.gethostname(), "pool": one.settings.name, "connection": one.settings.connection.name,
                "is_here": True, "notice_age": None,
            }  # fmt: skip
            for process in one.reading.running.overview.processes:
                yield from (place | _row(process, job) for job in process.jobs)


def _elsewhere(desk: Desk, stores: Any) -> Iterator[Facts]:
    here = places_here(desk)
    for connection, facts in stores:
        for pool in facts.value.pools if facts.value else ():
            if pool.overview is None or place_of(pool) in here:
                continue
            place = {
                "host": pool.host, "pool": pool.name, "connection": connection, "is_here": False,
                "notice_age": round(pool.age, 1), "is_lost": pool.is_lost,
            }  # fmt: skip
            for process in pool.overview.processes:
                yield from (place | _row(process, job) for job in process.jobs)


def _row(process: ProcessRow, job: JobRow) -> Facts:
    limit = None if job.time_left is None else job.running + job.time_left
    share = job.running / limit if limit and limit > 0 else None
    return {
        "id": job.id,
        "name": job.name,
        "queue": job.queue,
        "attempt": job.attempt,
        "since": job.since,
        "running": round(job.running, 1),
        "limit": None if limit is None else round(limit, 1),
        "share": None if share is None else round(share, 3),
        "progress": job.progress,
        "note": job.note,
        "worker": process.number,
        "pid": process.pid,
        "memory": process.memory,
    }
