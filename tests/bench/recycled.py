"""What 10,000 recycled workers leave: ``python -m tests.bench.recycled [--workers COUNT]``; half an hour if busy.

Each worker does one job. The files of the pool, the memory of its lasting processes and the time of a scrape are to be
the same after them as before.
"""

from __future__ import annotations

import argparse
import statistics
import time

import psutil

from queuepool.board.board import Board
from queuepool.board.counts import counts_of
from tests.bench.rig import Rig, redis_rig, until
from tests.bench.words import say
from tests.support.http_pages import Pages
from tests.support.meters import board_in

#: workers at once; how many have left when it is measured, in parts of all; scrapes of which the median counts
_WORKERS, _PARTS, _SCRAPES = 8, (0.0, 0.1, 0.5, 1.0), 20
#: seconds between two looks, and after which the last worker's successor waits for a job
_EVERY, _TO_SETTLE = 0.5, 3.0
_FLAGS = ("--max-jobs", "1", "--metrics")


def measure(rig: Rig, pages: Pages, workers: int) -> None:
    """A line for each part of so many recycled workers."""
    board, began = board_in(rig.path / "run"), time.monotonic()
    for wanted in (round(part * workers) for part in _PARTS):
        missing = wanted - _recycled(board)
        rig.queue.bulk([("noop", {})] * max(missing, 0))
        while _recycled(board) < wanted:
            time.sleep(_EVERY)
        until(lambda: rig.queue.size() == 0 and pages.status("/readyz") == 200)
        time.sleep(_TO_SETTLE)
        say(f"{_recycled(board):,} recycled after {time.monotonic() - began:.0f} s: {_state(rig, pages)}")


def _recycled(board: Board) -> int:
    return counts_of(board).exits.get("max_jobs", 0)


def _state(rig: Rig, pages: Pages) -> str:
    files = [path.stat() for path in rig.path.glob("run/*/*")]
    size, used = sum(one.st_size for one in files), sum(512 * one.st_blocks for one in files)
    lasting = {_role(one): one for one in rig.family()}
    memory = ", ".join(f"{role} {_weight(lasting[role])}" for role in ("master", "steward", "web"))
    lines, taken = _scraped(pages, lasting["web"])
    kb = f"{size / 1024:,.0f} KB, {used / 1024:,.0f} KB on disk"
    return f"{len(files)} files, {kb}; {memory}; scrape {lines} lines, {taken:.2f} ms"


def _role(process: psutil.Process) -> str:
    return process.cmdline()[0].split()[1]


def _weight(process: psutil.Process) -> str:
    return f"{process.memory_info().rss / 2**20:.1f} MB ({process.num_fds()} fds)"


def _scraped(pages: Pages, web: psutil.Process) -> tuple[int, float]:
    """Lines of a scrape, and the milliseconds of processor that the web process needs for one: the median of five."""
    text, means = "", []
    for _ in range(5):
        before = sum(web.cpu_times()[:2])
        for _ in range(_SCRAPES):
            _, text = pages.get("/metrics")
        means.append(1000 * (sum(web.cpu_times()[:2]) - before) / _SCRAPES)
    return text.count("\n"), statistics.median(means)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.bench.recycled", description="Recycle workers; measure what stays.")
    parser.add_argument("--workers", type=int, default=10_000)
    workers = parser.parse_args().workers
    with redis_rig() as rig:
        pages = Pages(f"{rig.path}/web.sock")
        with rig.pool(_WORKERS, *_FLAGS, "--listen", pages.address, "--log", f"{rig.path}/log"):
            measure(rig, pages, workers)


if __name__ == "__main__":
    main()
