"""What pools have done in a span of time, ready to be shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

from queuepool.board.meters import RUN_BOUNDS, WAIT_BOUNDS
from queuepool.board.status import iso
from queuepool.history.past import HistorySpan, Names, Past, past_of
from queuepool.history.rollup import COUNTED, EVENTS, KeptSizes, Tally
from queuepool.stores.factory import Stores


def read_past(stores: Stores, seconds: float) -> tuple[HistorySpan, Past]:
    """What the store keeps of the last ``seconds``."""
    span = HistorySpan.until(stores.queue.now(), seconds)
    texts, ignored = stores.values.history(span.grain.name, span.with_the_one_before)
    past = past_of(span, texts)
    return span, replace(past, ignored=past.ignored + ignored)


def chosen_of(past: Past, meant: Collection[str] | None, job: str | None) -> Past:
    """The part about these queues and this job; for a single job, only its attempts are known."""

    def is_meant(queue: str) -> bool:
        return meant is None or queue in meant

    jobs = {
        at: {names: one for names, one in tallies.items() if is_meant(names[0]) and job in (None, names[1])}
        for at, tallies in past.gained.items()
    }
    queues = {
        at: {name: sizes for name, sizes in known.items() if is_meant(name) and job is None}
        for at, known in past.queues.items()
    }
    events = past.events if meant is None and job is None else {}
    return replace(past, gained=jobs, events=events, queues=queues)


def document_of(span: HistorySpan, past: Past) -> dict[str, Any]:
    """All of it, ready for JSON."""
    minutes = past.minutes(span.buckets[0], span.now)
    return {
        "from": iso(span.buckets[0]),
        "to": iso(span.buckets[-1] + span.grain.seconds),
        "bucket_seconds": span.grain.seconds,
        "ignored": past.ignored,
        "queues_left_out": past.left_out,
        "jobs": [job_times(names, tally, minutes) for names, tally in busiest(past)],
        "queues": list(queue_rows(past)),
        "events": past.event_totals(),
        "buckets": list(_buckets(past)),
    }


def busiest(past: Past) -> list[tuple[Names, Tally]]:
    """The busiest first."""
    ended = [(names, tally) for names, tally in past.totals().items() if tally.ended]
    return sorted(ended, key=lambda item: (-item[1].ended, item[0]))


def job_times(names: Names, tally: Tally, minutes: float) -> dict[str, Any]:
    """The row of one job's name from one queue."""
    return {
        "queue": names[0],
        "job": names[1],
        **counts_of_tally(tally),
        "per_minute": round(tally.ended / minutes, 2),
        **times_of_tally(tally),
    }


def queue_rows(past: Past) -> Iterator[dict[str, Any]]:
    """The latest sizes of each queue, and the largest."""
    for queue, known in sorted(past.by_queue().items()):
        last, most = known[-1], reduce(KeptSizes.most, known)
        sizes = {"ready": last.ready, "ready_most": most.ready, "delayed": last.delayed, "reserved": last.reserved}
        ages = {"oldest": _digits(last.oldest), "oldest_most": _digits(most.oldest)}
        yield {"queue": queue, **sizes, "quarantined": last.quarantined, **ages}


def counts_of_tally(tally: Tally) -> dict[str, int]:
    """How attempts ended."""
    return dict(zip(COUNTED, tally.counts, strict=True))


def times_of_tally(tally: Tally) -> dict[str, float | None]:
    """Percentiles in seconds, with three digits: a bucket is much wider."""
    runs, waits = ((0.5, "run_p50"), (0.95, "run_p95"), (0.99, "run_p99")), ((0.5, "wait_p50"), (0.95, "wait_p95"))
    found = {name: _digits(tally.run.quantile(share, RUN_BOUNDS)) for share, name in runs if tally.run.observations}
    found |= {
        name: _digits(tally.wait.quantile(share, WAIT_BOUNDS)) for share, name in waits if tally.wait.observations
    }
    return {name: found.get(name) for _, name in (*runs, *waits)}


def _buckets(past: Past) -> Iterator[dict[str, Any]]:
    """All chosen jobs together, the queues and the events, bucket by bucket."""
    for at, tallies in past.gained.items():
        total = Tally()
        for tally in tallies.values():
            total = total.plus(tally)
        queues = {queue: sizes._asdict() for queue, sizes in past.queues[at].items()}
        events = {event: count for event, count in zip(EVENTS, past.events.get(at, ()), strict=False) if count}
        yield {"at": iso(at), **counts_of_tally(total), **times_of_tally(total), "queues": queues, "events": events}


def _digits(seconds: float) -> float:
    return float(f"{seconds:.3g}")
