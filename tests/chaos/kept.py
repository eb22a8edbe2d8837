"""What is kept of attempts: one record of each, and none of a settled one says that its lease was lost (I33)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING

from queuepool.config.settings import ConnectionSettings
from queuepool.search.ended import read
from queuepool.stores.attempts import MOST_RECORDS
from queuepool.stores.factory import Stores
from tests.chaos.ledger import Event
from tests.chaos.tables import Jobs, is_ours
from tests.chaos.windows import Windows
from tests.chaos.world import QUEUES, WIDE

if TYPE_CHECKING:
    from tests.chaos.checker import Findings
    from tests.chaos.rig import Rig

#: an attempt: its job, its number, and its worker's pid
_Attempt = tuple[str, int, int]
#: nanoseconds in which the lease of a job that has ended is ended: by its worker's next reserve, or after its death
_UNTIL_ENDED = 1e9


def note_kept(rig: Rig) -> None:
    """Each record, as people are shown it."""
    with closing(Stores(ConnectionSettings(url=rig.store.url, prefix=rig.prefix))) as stores:
        for queue in (*QUEUES, WIDE):
            for one in read(chain.from_iterable(stores.attempts.pages(queue))):
                rig.ledger.write("kept", id=one.id, a=one.attempts, pid=one.pid, lost=one.is_lost)


class Kept:
    """Judged at the end. Not of jobs that people try again: the numbers of their attempts begin anew."""

    EVENTS = ("run", "worker", "start", "finish", "die", "release", "fail", "kept")

    def __init__(self, findings: Findings, jobs: Jobs, windows: Windows) -> None:
        self._findings = findings
        self._jobs = jobs
        self._windows = windows
        self._is_on = False
        self._workers: set[int] = set()
        self._starts = Counter[_Attempt]()
        #: of each number of a job's attempts who began it last, and when; and when it was settled, or had finished
        self._last: dict[tuple[str, int], tuple[int, int]] = {}
        self._settled: dict[tuple[str, int], int] = {}
        self._finished: dict[tuple[str, int], int] = {}
        #: when each process has ended jobs
        self._ends = defaultdict[int, list[int]](list)
        #: whether each of its records says that the lease was lost
        self._kept = defaultdict[_Attempt, list[bool]](list)

    def read(self, event: Event) -> None:
        if event["f"] == "run":
            self._is_on = event.get("records", False)
        elif event["f"] == "worker":
            self._workers.add(event["pid"])
        elif self._is_on and is_ours(event["id"]) and not self._jobs.find(event["id"])[0].is_retried:
            self._read(event, (event["id"], event["a"], event["pid"]))

    def _read(self, event: Event, attempt: _Attempt) -> None:
        match event["f"]:
            case "kept":
                self._kept[attempt].append(event["lost"])
            case "start" if event["pid"] in self._workers:  # else it is Laravel's
                self._starts[attempt] += 1
                self._last[attempt[:2]] = event["pid"], event["t"]
            case "finish" | "die":
                self._ends[event["pid"]].append(event["t"])
                if event["f"] == "finish":
                    self._finished[attempt[:2]] = event["t"]
            case "release" | "fail":
                self._settled[attempt[:2]] = event["t"]

    def rule(self) -> None:
        self._findings.count("records of attempts", sum(map(len, self._kept.values())))
        for attempt, starts in self._starts.items():
            job, number, pid = attempt
            if len(self._kept[attempt]) > starts:
                self._findings.violated("I33 recorded twice", f"{job}: attempt {number} in pid {pid}")
            if self._must_be_there(attempt):
                what = "not recorded" if not self._kept[attempt] else "settled, and recorded as lost"
                if not self._kept[attempt] or any(self._kept[attempt]):
                    self._findings.violated(f"I33 {what}", f"{job}: attempt {number} in pid {pid}")

    def _must_be_there(self, attempt: _Attempt) -> bool:
        """Whether it was settled while nothing was wrong with the store, and is not among too many."""
        stream, job = self._jobs.find(attempt[0])
        settled, (pid, began) = self._settled.get(attempt[:2], 0), self._last[attempt[:2]]
        if stream.attempt[job] == attempt[1]:  # else it may have finished without being settled
            settled = settled or self._finished.get(attempt[:2], 0)
        is_calm = not self._windows.excuse(began, self._ended_by(pid, settled))
        return bool(settled) and pid == attempt[2] and is_calm and len(self._starts) < MOST_RECORDS // 2

    def _ended_by(self, pid: int, settled: int) -> float:
        """When the lease was ended at the latest: its worker may first have run the next job that it held."""
        ends = self._ends[pid]
        after = bisect_right(ends, settled)
        last = ends[after] if after < len(ends) else settled
        return last + self._windows.slowed(_UNTIL_ENDED, settled, last + round(_UNTIL_ENDED))
