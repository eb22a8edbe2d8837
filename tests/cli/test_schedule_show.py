"""``queuepool schedule show`` and the states of ``list``: how the last run ended, and what stands in the way."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from queuepool.stores.due_log import DueLine, DueLog
from queuepool.stores.values import Due
from tests.support.eventually import eventually
from tests.support.pools import Site

CONFIG = """
[pool]
queue = default,halted
[schedule]
late = 0
[schedule:fine]
every = 1s
job = do
data = {"mode": "ok"}
[schedule:fails]
every = 1s
job = do
data = {"mode": "raise"}
[schedule:nobody]
every = 1s
job = no.such.job
[schedule:lonely]
every = 1h
job = do
queue = nowhere
[schedule:halted]
every = 1h
job = do
queue = halted
"""


@pytest.fixture
def verb(site: Site) -> Callable[..., Any]:
    def verb(*words: str) -> Any:
        done = site.run("schedule", *words, "--json", "-c", "pool.ini", *site.where)
        return json.loads(done.stdout)

    return verb


def test_a_list_says_which_schedules_fail_and_why_none_of_others_can_run(site, verb):
    with site.pool("--workers", "2", config=CONFIG):
        site.run("pause", "halted", "-c", "pool.ini", *site.where)
        expected = {
            "fine": "ok", "fails": "failing", "nobody": "unknown job", "lonely": "unserved", "halted": "queue paused",
        }  # fmt: skip
        eventually(lambda: expected == {row["schedule"]: row["state"] for row in verb("list")})
        fine = eventually(lambda: (found := verb("show", "fine"))["ended_state"] and found)
        # A job comes each second: while many wait, none of the last few may be over.
        fails, nobody = (
            eventually(lambda name=name: (found := verb("show", name))["ended_error"] and found)
            for name in ("fails", "nobody")
        )
        said = site.run("schedule", "show", "halted", "-c", "pool.ini", *site.where).stdout
        site.run("schedule", "pause", "fine", "-c", "pool.ini", *site.where)
        paused = eventually(lambda: (found := verb("show", "fine"))["paused_by"] and found)

    ran = {line["id"] for line in site.trail(event="end")}
    assert {fine["ended_job"]} <= ran
    assert ("done", socket.gethostname()) == (fine["ended_state"], fine["ended_host"])
    assert fine["last"]
    assert fine["last_pushed"]
    assert 0 <= fine["ended_seconds"] < 60
    assert ("failed", "ValueError: as asked") == (fails["ended_state"], fails["ended_error"])
    assert nobody["ended_error"].startswith("UnknownJob: no job is registered as 'no.such.job'")
    assert "state: queue paused\n" in said
    assert "note: warn: queue halted is paused (since " in said
    assert ("paused", f"@{socket.gethostname()}") == (
        paused["state"],
        paused["paused_by"][-len(socket.gethostname()) - 1 :],
    )


def test_what_was_missed_is_shown_with_the_reason_and_what_is_not_known_is_said(site, stores, verb):
    (site.path / "pool.ini").write_text("[pool]\n[schedule:hourly]\nevery = 1h\njob = do\n")
    hour = int(stores.queue.now()) // 3600 * 3600
    stores.values.begin({"hourly": ""}, hour - 6 * 3600)
    assert stores.values.fire(Due("hourly", hour, "default", b"{}"))
    log = DueLog(stores.values)
    log.write("hourly", DueLine(hour - 3600, hour + 1.0, first=hour - 5 * 3600, reason="paused"))
    log.write("hourly", DueLine(hour - 7200, hour + 1.0, first=hour - 7200, reason="overlap"))
    log.write("other", DueLine(hour, hour + 1.0, first=hour, reason="late"))
    said = site.run("schedule", "show", "hourly", "-c", "pool.ini", *site.where).stdout
    missed = verb("show", "hourly")["missed"]

    assert ["it was paused", "its last job was still queued or running"] == [one["reason"] for one in missed]
    first, last = (datetime.fromtimestamp(hour - hours * 3600, UTC).isoformat() for hours in (5, 1))
    assert f"missed: {first} to {last}: it was paused\n" in said
    assert "note: of the last job nothing is kept: " in said
    assert "state: unserved\n" in said


def test_a_schedule_that_is_not_there_is_one_line(site):
    (site.path / "pool.ini").write_text("[pool]\n[schedule:hourly]\nevery = 1h\njob = do\n")
    done = site.run("schedule", "show", "hurly", "-c", "pool.ini", *site.where, check=False)

    assert 2 == done.returncode
    assert "there is no schedule 'hurly'; did you mean 'hourly'?" in done.stderr
