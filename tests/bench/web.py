"""What the dashboard takes and what it costs its store: ``scripts/bench --web [--quick] [--store redis|sqlite]``."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psutil

from tests.bench.rig import PATIENCE, ROOT, Rig, redis_rig, until
from tests.bench.scale.fill import Filler
from tests.bench.tables import insert, sql_rig
from tests.bench.words import QUICK, say, spread
from tests.support.many_failed import failed_in_thousands
from tests.support.redis_server import free_port

#: jobs that wait, and failed ones
_WAITING, _FAILED = (50_000, 5_000) if QUICK else (1_000_000, 100_000)
#: times that each page is asked for; seconds that tabs are watched, and between two polls of one; polls for the memory
_TIMES, _WATCHED, _REFRESH, _POLLS = (5, 6.0, 2.0, 200) if QUICK else (30, 20.0, 2.0, 3_000)
#: what an open tab asks for again and again
_POLLED = (
    "/?part=live",
    "/queues?part=live",
    "/queues/default/default?part=live",
    "/running?part=live",
    "/pools?part=live",
)


class Answer(NamedTuple):
    """``first``: seconds until its first byte."""

    status: int
    first: float
    body: bytes


class Dashboard:
    """``queuepool web`` as a process."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self._port = port
        self._process = process

    def get(self, path: str) -> Answer:
        client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        client.connect()
        try:
            began = time.perf_counter()
            client.request("GET", path)
            answer = client.getresponse()
            first = time.perf_counter() - began
            return Answer(answer.status, first, answer.read())
        finally:
            client.close()

    def megabytes(self) -> float:
        """Those that are its own."""
        return float(self._process.memory_full_info().uss) / 2**20


@contextmanager
def served(rig: Rig) -> Iterator[Dashboard]:
    """For operators: nobody else is on this host."""
    port, config = free_port(), rig.path / "web.ini"
    config.write_text("[pool:default]\n[web]\nanonymous = operator\n")
    where = ["--url", rig.connection.url, *(["--prefix", rig.connection.prefix] if rig.connection.prefix else [])]
    more = ["--runtime-dir", str(rig.path / "run"), "--listen", f"127.0.0.1:{port}", "-c", str(config)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-m", "queuepool", "web", *where, *more], env=env, cwd=ROOT)
    found = Dashboard(port, psutil.Process(process.pid))
    try:
        until(lambda: _answers(found))
        yield found
    finally:
        process.terminate()
        process.wait(30)


def _answers(dashboard: Dashboard) -> bool:
    try:
        return dashboard.get("/no-such-page").status == 404
    except OSError:
        return False


def pages(waiting: str, failed: str) -> dict[str, str]:
    """The paths of all pages, by what they show; both are ids of jobs."""
    queue = "/queues/default/default"
    return {
        "overview": "/",
        "overview, as a tab renews it": "/?part=live",
        "alerts": "/alerts",
        "queues": "/queues",
        "a queue, its first jobs": queue,
        "a queue, as a tab renews it": f"{queue}?part=live",
        "a queue, a job's argument that none has": f"{queue}?where=customer%3D4711",
        "a queue, delayed jobs": f"{queue}?state=delayed",
        "running": "/running",
        "failed": "/failed",
        "failed, those of an error": "/failed?error=KeyError",
        "failed, further ones": "/failed?limit=200&queue=default",
        "a failed job": f"/jobs/{failed}",
        "a job that waits, by its id": f"/jobs/{waiting}",
        "a job that is nowhere": "/jobs/00000000-0000-4000-8000-000000000000",
        "how many failed jobs an error has (asks up to 5 s)": "/failed/confirm?act=retry&error=KeyError",
        "history, 35 days": "/history?range=35d",
        "pools": "/pools",
        "schedules": "/schedules",
        "quarantine": "/quarantine",
        "journal": "/journal",
    }


def first_bytes(dashboard: Dashboard, paths: dict[str, str]) -> None:
    for name, path in paths.items():
        answers = [dashboard.get(path) for _ in range(_TIMES)]
        [status] = {one.status for one in answers}
        spread(f"first byte, {name} ({status}, {len(answers[0].body) / 1000:.0f} kB)", [one.first for one in answers])


def memory(dashboard: Dashboard) -> None:
    """While tabs poll, with a page of jobs now and then."""
    figures = []
    for number in range(_POLLS):
        dashboard.get(_POLLED[number % len(_POLLED)])
        if number % 50 == 0:
            dashboard.get(f"/queues/default/default?name=no{number}")
        if number % (_POLLS // 5) == _POLLS // 5 - 1:
            figures.append(dashboard.megabytes())
    say(f"memory after each {_POLLS // 5} polls: {', '.join(f'{one:.1f}' for one in figures)} MB")


def tabs(rig: Rig, dashboard: Dashboard) -> None:
    """Commands that reach the store while so many are open."""
    one, each = _POLLED[2:3], _POLLED
    twenty = (("the same in 20 tabs", 20 * one), ("five pages", each), ("the same in 20 tabs", 4 * each))
    for name, paths in (("no tab", ()), ("a queue's page", one), *twenty):
        before, stop = _commands(rig), threading.Event()
        people = [threading.Thread(target=_sit, args=(dashboard, path, stop)) for path in paths]
        for one in people:
            one.start()
        stop.wait(_WATCHED)
        asked = _commands(rig) - before
        stop.set()
        for one in people:
            one.join()
        say(f"tabs: {name}: {asked / _WATCHED:.1f} commands a second at the store")


def _sit(dashboard: Dashboard, path: str, stop: threading.Event) -> None:
    while not stop.wait(_REFRESH):
        dashboard.get(path)


def _commands(rig: Rig) -> int:
    return sum(count for name, count in rig.calls().items() if not name.startswith(("info", "config", "client")))


def away() -> None:
    """A store that answers nothing, beside a pool of this host."""
    with redis_rig() as rig, rig.pool(2, "--queue", "default"), served(rig) as dashboard:
        until(lambda: b'"running"' in dashboard.get("/api/v1/pools").body)
        rig.stores.client.command("CLIENT", "PAUSE", 20_000, "ALL")
        until(lambda: json.loads(dashboard.get("/api/v1/overview").body)["problems"])
        for path in ("/", "/queues", "/running", "/pools", "/api/v1/overview", "/failed", "/queues/default/default"):
            answers = [dashboard.get(path) for _ in range(_TIMES)]
            [status] = {one.status for one in answers}
            spread(f"the store hangs, {path} ({status})", [one.first for one in answers])
        pool = json.loads(dashboard.get("/api/v1/overview").body)["pools"][0]
        say(f"the store hangs: the pool is {pool['state']}, {pool['live']} workers")
        stop = threading.Event()
        people = [threading.Thread(target=_ask_lists, args=(dashboard, stop)) for _ in range(12)]
        for one in people:
            one.start()
        answers = [dashboard.get("/") for _ in range(_TIMES)]
        spread("the store hangs, / while twelve ask for lists", [one.first for one in answers])
        stop.set()
        for one in people:
            one.join()


def _ask_lists(dashboard: Dashboard, stop: threading.Event) -> None:
    while not stop.wait(0.5):
        dashboard.get("/failed")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench --web", description="Measure the dashboard.")
    parser.add_argument("--quick", action="store_true", help="fewer jobs")
    parser.add_argument("--store", choices=["redis", "sqlite"], default="redis")
    is_redis = parser.parse_args().store == "redis"
    with redis_rig() if is_redis else sql_rig("sqlite") as rig:
        waiting = rig.queue.push("noop", {"n": 0})
        Filler(rig).waiting("default", _WAITING) if is_redis else insert(rig, _WAITING)
        failed = failed_in_thousands(rig.queue, _FAILED)[-1]
        say(f"{_WAITING:,} jobs wait, {_FAILED:,} have failed; load {os.getloadavg()[0]:.1f}")
        with served(rig) as dashboard:
            say(f"the first page of a new process: {1000 * dashboard.get('/').first:.0f} ms")
            first_bytes(dashboard, pages(waiting, failed))
            memory(dashboard)
            if is_redis:
                tabs(rig, dashboard)
    if is_redis:
        away()


if __name__ == "__main__":
    main()
