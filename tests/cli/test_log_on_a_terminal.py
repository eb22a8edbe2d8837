"""On a terminal the log is for eyes; files and pipes have the full form, whatever was started where."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuepool import log
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.events import (
    Event,
    JobExceptionOccurred,
    JobFacts,
    JobFailed,
    JobProcessed,
    JobProcessing,
    JobReleased,
    StoreLost,
    WorkerStopping,
)
from queuepool.jobs.client import Queue
from queuepool.log import Passing
from queuepool.log.formats import took
from tests.support.commands import ROOT
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.own_logger import restored
from tests.support.terminal import CTRL_C, terminal

ID = "9f3c1a2b-0c4d-4e5f-8a6b-7c8d9e0f1a2b"
FIRST, SECOND = JobFacts(ID, ID, "app.mail", "default", 1), JobFacts(ID, ID, "app.mail", "emails", 2)
TIME = r"\d\d:\d\d:\d\d"
Tell = Callable[..., list[str]]


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tell]:
    """Tell these events to a log on a terminal; gives the lines that come out of it."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    screen, end = os.openpty()

    def tell(*events: Event, role: str = "worker=2", **settings: object) -> list[str]:
        log.setup(PoolSettings(log=Path(os.ttyname(end)), **settings), role, 1.0, running=lambda: ID)  # type: ignore[arg-type]
        for event in events:
            log.write(event)
        os.write(end, b"\0")
        raw = b""
        while not raw.endswith(b"\0"):
            raw += os.read(screen, 65536)
        return raw.rstrip(b"\0").decode().splitlines()

    with restored():
        yield tell
    os.close(screen)
    os.close(end)


@each(
    ("event", "expected"),
    [
        (JobProcessed(FIRST, 0.0123, 0.4), "job done     app.mail                  12ms  9f3c1a2b"),
        (JobProcessed(FIRST, 5.0013, 1.204), "job done     app.mail                  5.0s  waited 1.2s  9f3c1a2b"),
        (JobProcessed(SECOND, 0.5), "job done     app.mail                  0.50s  attempt=2 queue=emails  9f3c1a2b"),
        (JobReleased(FIRST, 300.0, None), "job released app.mail                  again in 5m00s  9f3c1a2b"),
        (
            JobFailed(FIRST, ValueError("told to fail\nand how")),
            f"ERROR job failed   app.mail                  ValueError: told to fail  {ID}",
        ),
        (JobFailed(FIRST, ValueError()), f"ERROR job failed   app.mail                  ValueError  {ID}"),
        (StoreLost("gone"), "ERROR store lost, waiting for it problem=gone"),
        (WorkerStopping(2, "memory", 12, 7), "worker stopping worker=2 reason=memory code=12 jobs=7"),
    ],
)
def test_a_line_on_a_terminal_is_short_and_aligned(tell, event, expected):
    [line] = tell(event)

    assert re.fullmatch(f"{TIME} worker 2  {re.escape(expected)}", line)


def test_a_trace_stands_below_its_line(tell):
    head, *trace = tell(JobExceptionOccurred(FIRST, ValueError("told to"), 0.5))

    assert head.endswith(f"WARNING job raised   app.mail                  0.50s  ValueError: told to  {ID}")
    assert ["    ValueError: told to"] == trace


def test_what_the_application_says_has_the_beginning_of_its_jobs_id(tell):
    tell()
    Passing().handle(logging.makeLogRecord({"name": "shop", "msg": "sold", "levelno": 20}))

    assert re.fullmatch(f"{TIME} worker 2  9f3c1a2b shop: sold", tell()[0])


def test_a_name_of_a_pool_is_there_if_there_are_several(tell):
    [line] = tell(WorkerStopping(2, "memory", 12, 7), name="mail", has_neighbours=True)

    assert re.match(f"{TIME} mail worker 2 worker stopping", line)


def test_a_terminal_is_commanded_by_nobody_but_the_colours(tell, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    evil = JobFacts("\x1b[2J", "\x1b[2J", "\x1b]0;root\x07", "q", 1)

    done, failed, other = tell(
        JobProcessed(FIRST, 1.0), JobFailed(evil, ValueError("\x1b[2J")), WorkerStopping(1, "m", 1, 1)
    )

    assert re.fullmatch(r"\x1b\[2m" + TIME + r"\x1b\[0m \x1b\[32m[^\x1b]+\x1b\[0m", done)
    assert re.fullmatch(r"\x1b\[2m" + TIME + r"\x1b\[0m \x1b\[31m[^\x1b\x07]+\x1b\[0m", failed)
    assert re.fullmatch(r"\x1b\[2m" + TIME + r"\x1b\[0m [^\x1b]+", other)


@each(("name", "value"), [("TERM", "dumb"), ("NO_COLOR", "yes")])
def test_a_terminal_without_colours_gets_none(tell, monkeypatch, name, value):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)

    assert not any("\x1b" in line for line in tell(JobProcessed(FIRST, 1.0), StoreLost("gone")))


def test_json_is_json_on_a_terminal_too(tell):
    [line] = tell(JobProcessing(FIRST), json=True, verbose=True)

    assert line.startswith('{"level"')


@each(
    ("seconds", "words"),
    [(0.0004, "0ms"), (0.25, "0.25s"), (12.34, "12.3s"), (59.99, "60.0s"), (125, "2m05s"), (3600 * 3 + 420, "3h07m")],
)
def test_a_time_is_short(seconds, words):
    assert words == took(seconds)


def test_a_pool_on_a_terminal_says_at_the_first_ctrl_c_what_it_waits_for(tmp_path):
    gate = tmp_path / "gate"
    words = (
        "start",
        "--workers",
        "1",
        "--modules",
        "tests.support.poolapp",
        "--runtime-dir",
        "run",
        "--timeout",
        "500",
    )
    env = {"PYTHONPATH": str(ROOT), "TRAIL": str(tmp_path / "trail"), "NO_COLOR": "1"}
    with terminal(*words, cwd=tmp_path, columns=160, lines=40, **env) as found:
        found.shows("worker 1  worker starting")
        with closing(Queue(ConnectionSettings(url=f"sqlite:///{tmp_path}/queuepool.db"))) as queue:
            queue.push("do", {"mode": "until", "gate": str(gate)})
        eventually(lambda: '"start"' in (tmp_path / "trail").read_text() if (tmp_path / "trail").exists() else "")
        found.press(CTRL_C)
        told = found.shows("stopping: running jobs may finish (1, in at most ", "a further Ctrl-C (INT) stops at once")
        gate.touch()

        assert 0 == found.ends()
        text = found.text()

    assert re.search(r"in at most (4\d\d|500) s\)", told)
    assert re.search(rf"^{TIME} worker 1  job done     do  ", text, re.MULTILINE)
    assert re.search(rf"^{TIME} master    stopped: every process of the pool has ended", text, re.MULTILINE)
    assert "pool=" not in text
    assert "pid=" not in text


def test_a_second_ctrl_c_stops_now(tmp_path):
    words = ("start", "--workers", "1", "--modules", "tests.support.poolapp", "--runtime-dir", "run", "--timeout", "0")
    env = {"PYTHONPATH": str(ROOT), "TRAIL": str(tmp_path / "trail"), "NO_COLOR": "1"}
    with terminal(*words, cwd=tmp_path, columns=160, lines=40, **env) as found:
        found.shows("worker 1  worker starting")
        with closing(Queue(ConnectionSettings(url=f"sqlite:///{tmp_path}/queuepool.db"))) as queue:
            queue.push("do", {"mode": "until", "gate": str(tmp_path / "never")})
            eventually(lambda: '"start"' in (tmp_path / "trail").read_text() if (tmp_path / "trail").exists() else "")
            found.press(CTRL_C)
            found.shows("running jobs may finish (1, however long that takes)")
            found.press(CTRL_C)

            assert 0 == found.ends()
            assert 1 == queue.size()
