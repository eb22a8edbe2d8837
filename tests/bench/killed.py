"""The sum law after many deaths: ``python -m tests.bench.killed [--kills COUNT]``; half an hour on a busy machine.

Some workers kill themselves in a job, the others are killed from outside at any moment. Each attempt writes its
number down in its first line. The store counts attempts without gaps, also those that were killed before that line: so
the last number of a job that is done is how many attempts it had, and the meters must say the same.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import time
from itertools import repeat
from pathlib import Path

from queuepool import current, job
from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.counts import PoolCounts, counts_of
from queuepool.unix.proc import start_time
from tests.bench.rig import Rig, redis_rig, until
from tests.bench.words import say
from tests.support.http_pages import Pages
from tests.support.meters import board_in

NAMES = ("mail", "report", "resize", "invoice", "import")
#: workers; jobs that are in the queue at least; seconds between two samples
_WORKERS, _WAITING, _EVERY = 4, 40, 0.05
_FLAGS = ("--tries", "0", "--max-crashes", "0", "--metrics")
#: all that only grows
_COUNTER = re.compile(r"queuepool_(\w+_total|job_\w+_seconds_(bucket|count|sum)){")


def attempt(deaths: int, seconds: float) -> None:
    """Kill the worker in each of the first attempts; then take some time."""
    this, pid = current(), os.getpid()
    is_last = this.attempts > deaths
    _write("start", this.name, this.id, this.attempts)
    if not is_last:
        _write("kill", pid, start_time(pid))
        os.kill(pid, signal.SIGKILL)
    time.sleep(seconds)


for _name in NAMES:
    job(_name)(attempt)


def _write(*words: object) -> None:
    """In one write, which a death leaves whole."""
    fd = os.open(os.environ["TRAIL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (" ".join(map(str, words)) + "\n").encode())
    os.close(fd)


class Ledger:
    """What the jobs have written, read as it grows."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open()
        self._part = ""
        #: the last attempt, by name and id of the job; the workers that killed themselves, by pid and start time
        self.attempts: dict[tuple[str, str], int] = {}
        self.killed: set[tuple[int, int]] = set()

    def read(self) -> None:
        *lines, self._part = (self._part + self._file.read()).split("\n")
        for kind, *words in map(str.split, lines):
            if kind == "kill":
                self.killed.add((int(words[0]), int(words[1])))
            else:
                key = words[0], words[1]
                self.attempts[key] = max(int(words[2]), self.attempts.get(key, 0))


class Samples:
    """The counters as the web process serves them, from the pool's memory; remembers whatever has gone back."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.taken, self.changed = 0, 0
        self.backwards: list[str] = []
        self._before: dict[str, float] = {}

    def take(self) -> None:
        lines = map(str.rpartition, self._pages.get("/metrics")[1].splitlines(), repeat(" "))
        now = {name: float(value) for name, _, value in lines if _COUNTER.match(name)}
        lower = [key for key, value in self._before.items() if now.get(key, -1.0) < value]
        self.backwards += [f"{key}: {self._before[key]:g}, then {now.get(key)}" for key in lower]
        self.taken += 1
        self.changed += now != self._before
        self._before = now


class Killer:
    """Kills workers from outside, as many as have killed themselves."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._due = 0.0
        self.killed: set[tuple[int, int]] = set()

    def kill(self) -> None:
        """One of the workers that work or wait, if it is time to."""
        working = [slot for slot in self.board.of(Role.WORKER) if slot.state in (State.IDLE, State.BUSY)]
        if working and time.monotonic() >= self._due:
            self._due = time.monotonic() + random.uniform(0.0, 0.4)
            self._kill(random.choice(working))

    def _kill(self, slot: Slot) -> None:
        worker = slot.pid, slot.start_time
        if not slot.dead and worker[0] > 0 and start_time(worker[0]) == worker[1]:
            os.kill(worker[0], signal.SIGKILL)
            self.killed.add(worker)


def torment(rig: Rig, pages: Pages, kills: int) -> bool:
    """Let so many workers be killed; whether all was counted exactly."""
    samples, ledger, killer = Samples(pages), Ledger(rig.trail_file), Killer(board_in(rig.path / "run"))
    began, said = time.monotonic(), 0
    while len(dead := ledger.killed | killer.killed) < kills:
        killer.kill()
        if rig.queue.size() < _WAITING:
            rig.queue.bulk([(random.choice(NAMES), _data()) for _ in range(_WAITING)])
        samples.take()
        ledger.read()
        if len(dead) >= said + 100:
            said = len(dead)
            say(f"  {said} killed after {time.monotonic() - began:.0f} s")
        time.sleep(_EVERY)
    return _compared(rig, ledger, samples, killer, time.monotonic() - began)


def _data() -> dict[str, float]:
    return {"deaths": random.choice((*[0] * 10, 1, 2)), "seconds": random.uniform(0.0, 0.05)}


def _compared(rig: Rig, ledger: Ledger, samples: Samples, killer: Killer, seconds: float) -> bool:
    _stand_still(samples)
    ledger.read()
    counts = counts_of(killer.board)
    dead, own = ledger.killed | killer.killed, len(ledger.killed)
    say(f"{len(dead):,} workers killed in {seconds:.0f} s: {own:,} by their own jobs, the others from outside")
    say(f"{samples.taken:,} samples, {samples.changed:,} that differ, numbers that went back: {len(samples.backwards)}")
    exits = counts.exits["killed"]
    say(f"  counted exits of killed workers: {exits:,}{_verdict(exits == len(dead))}")
    right = [_of_name(name, ledger, counts) for name in NAMES]
    return all(right) and exits == len(dead) and not samples.backwards


def _of_name(name: str, ledger: Ledger, counts: PoolCounts) -> bool:
    """Whether the jobs of this name are counted as the ledger has them."""
    row = counts.jobs["default", name]
    jobs = [last for (job, _), last in ledger.attempts.items() if job == name]
    wanted = sum(jobs), len(jobs), sum(jobs) - len(jobs), sum(jobs)
    found = row.ended, row.done, row.crash, row.run.observations
    ledgers = f"{wanted[0]:,} attempts in the ledger, done {wanted[1]:,}, lost {wanted[2]:,}"
    ours = f"counted {found[0]:,}, {found[1]:,}, {found[2]:,}, with {found[3]:,} run times"
    say(f"  {name}: {ledgers}; {ours}{_verdict(wanted == found)}")
    return wanted == found


def _verdict(is_right: bool) -> str:
    return ": exact" if is_right else ": WRONG"


def _stand_still(samples: Samples, seconds: float = 4.0) -> None:
    """Wait until nothing has changed for so long: all jobs are done, the dead are settled, and all is published."""
    changed, since = samples.changed, time.monotonic()
    while time.monotonic() < since + seconds:
        samples.take()
        if samples.changed != changed:
            changed, since = samples.changed, time.monotonic()
        time.sleep(_EVERY)


def main() -> int:
    """Returns the exit code: 1 if anything was not counted exactly once, or went back."""
    parser = argparse.ArgumentParser(prog="tests.bench.killed", description="Kill workers and compare what is counted.")
    parser.add_argument("--kills", type=int, default=1000)
    kills = parser.parse_args().kills
    with redis_rig("tests.bench.killed") as rig:
        pages = Pages(f"{rig.path}/web.sock")
        with rig.pool(_WORKERS, *_FLAGS, "--listen", pages.address, "--log", f"{rig.path}/log"):
            until(lambda: pages.status("/readyz") == 200)
            return 0 if torment(rig, pages, kills) else 1


if __name__ == "__main__":
    raise SystemExit(main())
