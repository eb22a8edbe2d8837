"""A shop whose names, hosts, errors, tags, arguments and payloads were all written by somebody who means ill."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import cycle
from typing import Any

from queuepool.board.counts import NO_RUNS, Histogram, JobCounts, PoolCounts, QueueFacts
from queuepool.config.alerts import AlertSettings
from queuepool.config.loader import Config
from queuepool.config.settings import ScheduleSettings
from queuepool.history.rollup import GRAINS, rollup_of
from queuepool.payload.limits import PlaceAsked, holding, word_of
from queuepool.payload.members import NewFlow, NewMember, names_as_text
from queuepool.stores.contract import NewJob
from queuepool.stores.factory import Stores
from queuepool.stores.records import PendingFailure
from tests.support.dashboards import config_of
from tests.support.pools import Site
from tests.support.samples import payload

#: each is tried in every field; one that runs as a script, or loads a picture that is not there, sets ``window.hacked``
HACK = "window.hacked=1"
TEXTS = (
    f"<script>{HACK}</script>", f"\"><svg onload='{HACK}'>", f"'><img src=x onerror=\"{HACK}\">",
    f"</textarea></title></style><script>{HACK}</script>", f"javascript:{HACK}", "{{7*7}}{% raw %}", "a&amp;b<!--",
    "\u202egnp.exe\u2066 \u05d0\u05d1\u05d2 \u0627\u0644\u0639", "\x1b[31mred\x07\x00\x85", "\u2028\u2029\ufeff",
    "Z" + "\u0300" * 200, "w" * 10_000,
)  # fmt: skip


def fill(site: Site) -> str:
    """Put them into every field of its store; returns the id of a job that a host elsewhere runs."""
    stores, texts = site.queue.stores, cycle(TEXTS)
    for number, text in enumerate(TEXTS):
        raw = payload(
            f"job-{number}",
            displayName=text,
            job=text,
            data={text: text, "big": 2**60 + number},
            tags=[text, *TEXTS[:3]],
        )
        stores.queue.push("default", [NewJob(raw)])
        stores.queue.push("default", [NewJob(raw)], delay=3600.0)
        stores.queue.push(text[:200], [NewJob(raw)])
        stores.records.record(PendingFailure(f"failure-{number}", _failed(text, f"failed-{number}{text[:40]}", raw)))
        stores.journal.write(f"{text}@{text}", text, text, 3)
    for number, text in enumerate(TEXTS):
        _write_flow(stores, number, text)
        _limit(stores, number, text)
    stores.control.pause("default", stores.queue.now(), f"{next(texts)}@{next(texts)}")
    stores.control.pause_schedule("nightly", stores.queue.now(), next(texts))
    _keep_history(stores)
    for number, text in enumerate(TEXTS):
        stores.control.publish(f"{number}", _notice(number, text))
        left = _notice(100 + number, f"left {text}")
        stores.control.note_left({**left, "at": stores.queue.now(), "done": 5, "failed": 1})
    site.queue.push_raw(json.dumps({"uuid": TEXTS[0], "job": 7, "data": TEXTS}).encode(), queue="odd")
    site.queue.push_raw(b"\xff\xfe" + "".join(TEXTS).encode(), queue="odd")
    site.work("--queue", "odd")  # they go to the quarantine
    return "runs-0"


def config(site: Site, **web: Any) -> Config:
    """Its configuration, with a schedule and with alerts."""
    found = config_of(site, **web)
    nightly = ScheduleSettings(name="nightly", cron="0 2 * * *", job="do", connection=site.connection)
    pools = (replace(pool, schedules=(nightly,), alerts=AlertSettings()) for pool in found.pools)
    return replace(found, pools=tuple(pools))


def _write_flow(stores: Stores, number: int, text: str) -> None:
    """Two jobs, one after the other."""
    flow_id = flow_of(number)
    known: dict[str, Any] = {"stops": True, "deadline": 1000.0, "keep": 100.0}
    flow = NewFlow(flow_id, text[:100], 2, 1, **known, names=names_as_text({text[:200]: ["0", "1"]}))
    raws = [payload(f"of-{flow_id}-{one}", displayName=text, job=text) for one in "01"]
    first = NewMember("0", "s", "flows", 0.0, raws[0], edges=("1s",))
    stores.flows.write(flow, [first, NewMember("1", "s", "flows", 0.0, raws[1], follows=1)])


def flow_of(number: int) -> str:
    """The id of this flow."""
    return f"{number:022}"


def _limit(stores: Stores, number: int, text: str) -> None:
    """One job holds the only place, one waits."""
    raws = [payload(f"of-limit-{number}-{one}", displayName=text, job=text) for one in "01"]
    stores.queue.push("limited", [NewJob(raw) for raw in raws])
    place = PlaceAsked(f"import={word_of(text)}", word_of(text), 1)
    for lease in map(holding, stores.queue.reserve(["limited"], stores.queue.join(), 2).leases):
        stores.limits.enter(lease, f"{number}{lease.row}", [place])


def _failed(text: str, job_id: str, raw: bytes) -> dict[str, Any]:
    about = {"id": job_id, "name": text, "queue": "default", "connection": "default", "attempts": 1}
    return {**about, "payload": raw.decode(), "exception": f"Traceback:\n  {text}\n{text}: {text}"}


def _notice(number: int, text: str) -> dict[str, Any]:
    job = {
        "name": text, "id": f"runs-{number}", "queue": text, "attempt": 2, "since": "2026-11-23T03:01:10Z",
        "running": 5.0, "time_left": 1.0, "progress": 0.5, "note": text,
    }  # fmt: skip
    alert = {"kind": text, "subject": text, "text": text, "value": 1.0, "limit": 1.0, "since": "2026-11-23T03:01:10Z"}
    process = {"role": "worker", "number": 3, "pid": 77, "state": "busy", "memory": 20, "job": job}
    return {
        "host": text[:200], "pool": text[:200], "id": f"{number:016x}", "state": "running", "workers": 1,
        "runtime_directory": text, "boot_problem": text, "processes": [process], "alerts": [alert], "queues": [text],
    }  # fmt: skip


def _keep_history(stores: Stores) -> None:
    run = Histogram((4, *NO_RUNS.counts[1:]), 0.5)
    jobs = {(text[:100], text[:100]): JobCounts(done=3, failed=1, run=run) for text in TEXTS}
    queues = {text[:100]: QueueFacts(ready=3, measured_at=1.0) for text in TEXTS}
    text = rollup_of(stores.queue.now(), PoolCounts(jobs=jobs, queues=queues)).text()
    for grain in GRAINS:
        bucket = int(stores.queue.now() // grain.seconds) * grain.seconds
        stores.values.keep_history(grain.name, bucket, "shop", text, 3600.0)
