"""A pool's log says what runs where, reports every job, and holds whatever the jobs write."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuepool import log
from queuepool.config.settings import PoolSettings
from queuepool.events import JobFacts, JobProcessed
from queuepool.log import JobLines
from queuepool.payload.envelope import decode
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.own_logger import restored

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
JOBS = """
import logging, os, subprocess, sys, time
from queuepool import job

@job("talk")
def talk() -> None:
    print("printed", "words")
    print("complained", file=sys.stderr)
    logging.getLogger("shop").info("logged %s", "words\\nin lines")
    logging.getLogger("shop").debug("too quiet")
    print("streams", sys.stdout.name, sys.stdout.mode, sys.stderr.name)
    os.write(1, b"written past Python\\n")
    subprocess.run(["echo", "by another program"])

@job("hang", timeout=6)
def hang() -> None:
    print("about to hang")
    os.write(2, b"still here\\n")
    print("half a line", end="", flush=True)
    time.sleep(60)
"""
TWO = """
[pool:mail]
queue = mail
[pool:reports]
queue = reports
"""
PAST_PYTHON = ["written past Python", "by another program", "still here"]


def test_the_log_of_two_pools_tells_the_story(site):
    (site.path / "shop.py").write_text(JOBS)
    with site.pool("--workers", "2", "--modules", "shop", config=TWO, wait=False) as pool:
        eventually(lambda: len(pool.workers()) == 4)
        eventually(lambda: [pool.pid] == pool.pids(r"^queuepool: parent \[mail,reports\] running masters=2$"))
        talk, hang = site.queue.push("talk", queue="mail"), site.queue.push("hang", queue="reports")
        eventually(lambda: "job failed" in pool.log() and "job done" in pool.log())
        eventually(lambda: len(pool.workers()) == 4)
        pool.signal(signal.SIGHUP)
        eventually(lambda: 4 == pool.log().count("reason=restart_signal"))
        eventually(lambda: 4 == pool.log().count(" jobs found count=2 names=hang,talk\n"))
    text, lines = pool.log(), pool.log().splitlines()
    heads = [line for line in lines if line not in PAST_PYTHON and not line.startswith("    ")]

    assert [] == [line for line in heads if not re.match(rf"{STAMP} [A-Z]+ pool=(mail|reports) \S+ pid=\d+ ", line)]
    assert set(PAST_PYTHON) <= set(lines)
    said = rf" INFO pool=mail worker=\d pid=\d+ id={talk} "
    assert re.search(said + "stdout: printed words\n", text)
    assert re.search(said + "stderr: complained\n", text)
    assert re.search(said + "stdout: streams <stdout> w <stderr>\n", text)
    assert re.search(said + "shop: logged words\n    in lines\n", text)
    assert "too quiet" not in text
    assert re.search(rf" job done id={talk} queue=mail job=talk attempts=1 duration=[\d.]+ wait=\d+\.\d+\n", text)
    assert re.search(rf" pool=reports worker=\d pid=\d+ id={hang} stdout: about to hang\n", text)
    assert re.search(rf" id={hang} stdout: half a line\n", text)
    for name in ("mail", "reports"):
        assert re.search(rf" INFO pool={name} master pid=\d+ queuepool \S+ starts\n    store: +\S+\n", text)
        assert re.search(rf"\n    queues: +{name}\n    workers: +2\n    modules: +shop\n", text)
    assert f"\n    configuration:     {site.path}/pool.ini\n" in text
    assert (4, 4) == (text.count("reason=restart_signal"), text.count("reason=stop_signal"))
    for name in ("mail", "reports"):
        last = [line for line in heads if f" pool={name} " in line][-1]
        assert re.search(r" master pid=\d+ stopped: every process of the pool has ended, exit code 0$", last)


APPLICATIONS = {
    "that configures nothing": "",
    "with a handler of its own": "logging.basicConfig(level='DEBUG', format='own %(message)s', stream=sys.stdout)",
    "that closes all handlers": "logging.config.dictConfig({'version': 1})",
}


@pytest.mark.by_turns("application")
@pytest.mark.parametrize("application", APPLICATIONS)
def test_what_an_application_logs_is_in_the_log_whatever_it_has_configured(site, application):
    (site.path / "shop.py").write_text(f"import logging, logging.config, sys\n{APPLICATIONS[application]}\n{LOGGING}")
    site.push("log", name="log")
    done = site.run("work", *site.flags("--modules", "shop"), "--stop-when-empty", "--log-level", "warning", "--json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    messages = [line.get("message", line.get("event")) for line in lines]

    own = application == "with a handler of its own"
    assert ("own an info" if own else "a warning") in messages
    assert ("own a warning" if own else "a warning") in messages
    assert own or "an info" not in messages
    assert ["JobProcessed", "WorkerStopping"] == messages[-2:]
    assert {"default"} == {line["pool"] for line in lines}
    assert "" == done.stdout


LOGGING = """
from queuepool import job

@job("log")
def log(mode: str) -> None:
    logging.getLogger("shop").info("an info")
    logging.getLogger("shop").warning("a warning")
    logging.getLogger("shop").warning("not a number: %d", "x")
"""

ROTATING = """
import os
from queuepool import job

@job("rotate")
def rotate(mode: str) -> None:
    os.write(1, b"before\\n")
    os.rename("app.log", "app.log.1")
    print("print")
    os.write(2, b"after\\n")
"""


def test_what_is_written_past_python_follows_a_log_that_is_moved_away(site):
    (site.path / "shop.py").write_text(ROTATING)
    site.push("rotate", name="rotate")
    done = site.run("work", *site.flags("--modules", "shop", "--log", "app.log"), "--stop-when-empty")

    assert (site.path / "app.log.1").read_text().endswith("\nbefore\n")
    assert "stdout: print\nafter\n" in (site.path / "app.log").read_text()
    assert ("", "") == (done.stdout, done.stderr)


HALF_LINES = """
import asyncio, sys
from queuepool import job, on
from queuepool.events import JobProcessed

sys.stdout.write("half of an import")

@job
def half() -> None:
    sys.stdout.write("half of it")
    sys.stderr.write("half of its errors")

@job
async def half_async() -> None:
    sys.stdout.write("half of a task, ")
    asyncio.get_running_loop().create_task(half_at_its_end())
    await asyncio.sleep(0)

async def half_at_its_end() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        sys.stdout.write("cancelled")

@job(tries=1)
def half_and_fails() -> None:
    sys.stdout.write("half before an error")
    raise ValueError("no")

@half_and_fails.after_failed
def half_of_a_hook(error: BaseException) -> None:
    sys.stdout.write("half of a hook")

@job
def whole() -> None:
    print("a whole line")

@on(JobProcessed)
def half_of_a_listener(event: JobProcessed) -> None:
    sys.stdout.write("half of a listener")
"""


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["--no-preload", "--preload"])
def test_half_a_line_is_logged_at_the_end_of_its_own_job(site, how):
    (site.path / "shop.py").write_text(HALF_LINES)
    names = ("half", "half_async", "half_and_fails", "whole")
    half, half_async, fails, whole = (site.queue.push(f"shop.{name}") for name in names)
    with site.pool("--workers", "1", how, "--modules", "shop") as pool:
        eventually(lambda: f"job done id={whole}" in pool.log())
        text = pool.log()  # while the worker lives: what it has not written is lost when it is killed

    assert 1 == text.count(" stdout: half of an import\n")
    assert f" id={half} stdout: half of it\n" in text
    assert f" id={half} stderr: half of its errors\n" in text
    assert f" id={half_async} stdout: half of a task, cancelled\n" in text
    assert f" id={fails} stdout: half before an error\n" in text
    assert f" id={fails} stdout: half of a hook\n" in text
    assert f" id={whole} stdout: a whole line\n" in text
    assert 2 == len(re.findall(r" pid=\d+ stdout: half of a listener\n", text))
    assert text.index("stdout: half of it\n") < text.index(f"job done id={half}")


# A line for each job, or for many


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[JobLines]:
    """Of a worker whose log is ``tmp_path/log``."""
    with restored():
        log.setup(PoolSettings(log=tmp_path / "log"), "worker=1", write_timeout=0.0)
        yield JobLines()


def do(lines: JobLines, count: int, at: float) -> None:
    """So many jobs, all done at that time."""
    for _ in range(count):
        if lines.is_due(at):
            lines.write(JobProcessed(JobFacts("i", "i", "j", "q", 1), 0.001), at)


def told(tmp_path: Path) -> list[str]:
    return re.findall(r"job done|jobs done count=\d+", (tmp_path / "log").read_text())


def test_a_second_with_too_many_jobs_is_summed_up_and_so_is_the_next_one(lines, tmp_path):
    began = time.monotonic()
    do(lines, 250, began)
    do(lines, 300, began + 1.5)
    do(lines, 5, began + 2.8)  # all of them still are summed up: the last second was busy
    do(lines, 2, began + 4.0)

    assert [*["job done"] * 100, *[f"jobs done count={n}" for n in (150, 300, 5)], *["job done"] * 2] == told(tmp_path)


def test_jobs_after_a_pause_have_lines_of_their_own_again(lines, tmp_path):
    began = time.monotonic()
    do(lines, 101, began)
    do(lines, 1, began + 60)

    assert [*["job done"] * 100, "jobs done count=1", "job done"] == told(tmp_path)


def test_what_is_not_summed_up_yet_is_when_the_worker_leaves(lines, tmp_path):
    began = time.monotonic()
    do(lines, 103, began)
    lines.rest()  # the second is not over
    lines.sum_up(began)
    lines.sum_up(began)

    assert ["jobs done count=3"] == told(tmp_path)[100:]


# How long it waited


@each(
    ("said", "waited"),
    [
        (b'"createdAt":1000', 7),
        (b'"createdAt":1000,"delay":5', 2),
        (b'"createdAt":2000', 0),
        (b'"createdAt":1000,"pushedAt":"1000.2468","delay":5', 2.253),
        (b'"createdAt":1000,"pushedAt":"900.5"', 7),
        (b'"createdAt":1000,"pushedAt":"nan"', 7),
        (b'"createdAt":1000,"pushedAt":[1]', 7),
        (b'"createdAt":1000,"pushedAt":"1%s"' % (b"0" * 400), 7),
        (b'"createdAt":1000,"attempts":2', None),
        (b'"delay":5', None),
        (b'"createdAt":1e99', None),
        (b'"createdAt":"1000"', None),
        (b'"createdAt":' + b"9" * 400, None),
    ],
)
def test_how_long_a_job_waited_is_known_where_its_payload_says_when_it_was_pushed(said, waited):
    assert waited == decode(b'{"uuid":"u","job":"j",' + said + b"}").waited(1007.5)


# Whatever a job does to Python's logging, its worker's log goes on

SILENCING = {
    "dictConfig": "logging.config.dictConfig({'version': 1})",
    "fileConfig": "logging.config.fileConfig('logging.ini')",
    "disable": "logging.disable(logging.CRITICAL)",
    "the root's handlers": "[one.setLevel(99) for one in logging.root.handlers]",
    "no handler of the root's": "logging.root.handlers.clear()",
    "every logger's handlers": (
        "for one in map(logging.getLogger, logging.root.manager.loggerDict):"
        " one.handlers.clear(); one.setLevel(99); one.propagate = True"
    ),
    "shutdown": "logging.shutdown()",
}
#: as alembic's template has it
ALEMBICS = """
[loggers]
keys = root
[handlers]
keys = console
[formatters]
keys =
[logger_root]
level = WARNING
handlers = console
[handler_console]
class = StreamHandler
args = (sys.stderr,)
level = NOTSET
"""
SILENCED = """
import logging, logging.config, sys
from queuepool import job

@job(tries=1)
def configures(code: str) -> None:
    exec(code)

@job(tries=1)
def fails() -> None:
    print("printed after all")
    logging.getLogger("shop").warning("warned after all")
    raise ValueError("no")
"""


@each("how", SILENCING)
def test_a_job_that_configures_logging_silences_no_line_of_its_workers(site, how):
    (site.path / "shop.py").write_text(SILENCED)
    (site.path / "logging.ini").write_text(ALEMBICS)
    done = site.queue.push("shop.configures", {"code": SILENCING[how]})
    failed = site.queue.push("shop.fails")
    log = site.run("work", *site.flags("--modules", "shop", "--stop-when-empty")).stderr

    assert 1 == log.count(f" job done id={done} "), log
    assert 1 == log.count(f" job raised id={failed} "), log
    assert 1 == log.count(f" job failed id={failed} "), log
    assert 1 == log.count("stdout: printed after all\n"), log
    assert 1 == log.count(" worker stopping "), log
    # The application's own lines are its own affair.
    assert (how not in ("disable", "the root's handlers")) == log.count("warned after all"), log
