"""Each attempt has one span: its worker writes it, or the steward if the worker was killed (I27).

Of the tiny jobs one in a hundred is traced. Those that people try again are not: they repeat their attempts' numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: nanoseconds after a death in which a steward that is harmed may lose the event
_UNTOLD = 3_000_000_000
#: nanoseconds after a settlement in which a death comes before the board shows it; and deaths are seen late
_UNSHOWN = 100_000_000
#: what a worker writes after it has left the hooks, and what once it has settled an attempt that was not done
_LEFT, _SETTLED = ("ack", "release", "fail"), ("release", "fail", "stale")
_Attempt = tuple[str, int]


def has_span(job_id: str) -> bool:
    """Whether attempts at this job are traced."""
    return not job_id.startswith(("t.", "r.")) or (job_id.startswith("t.") and job_id.endswith("00"))


class Traced:
    """Judged at the end, when all deaths are known."""

    EVENTS = ("worker", "start", "finish", "requeue", "span", "killed_span", "lease_kill", *{*_LEFT, *_SETTLED})

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        #: the workers with our hook; others are Laravel's
        self._workers: set[int] = set()
        #: by attempt, each with its worker and moment
        self._starts: dict[_Attempt, list[tuple[int, int]]] = defaultdict(list)
        self._spans: dict[_Attempt, list[tuple[int, int]]] = defaultdict(list)
        self._of_killed: dict[_Attempt, list[int]] = defaultdict(list)
        #: with the worker
        self._finished: dict[tuple[_Attempt, int], int] = {}
        #: those that failed all the same, as they had overrun their deadline
        self._overran: set[tuple[_Attempt, int]] = set()
        self._left: set[tuple[_Attempt, int]] = set()
        #: with the moment
        self._settled: dict[tuple[_Attempt, int], int] = {}
        #: those that another process was not let settle once more
        self._refused: set[_Attempt] = set()
        self._returned: set[_Attempt] = set()
        #: when workers were killed as a lease had ended: another one may have the job, so nothing is told of it
        self._killed_for_leases = defaultdict[int, list[int]](list)
        #: how often it was given back after a span: if it was killed, perhaps before the first line of its handler
        self._given_back = Counter[_Attempt]()

    def read(self, event: Event) -> None:
        if event["f"] == "worker":
            self._workers.add(event["pid"])
        elif event["f"] == "lease_kill":
            self._killed_for_leases[event["pid"]].append(event["t"])
        elif has_span(event["id"]):
            self._note((event["id"], event["a"]), event)

    def _note(self, attempt: _Attempt, event: Event) -> None:
        match event["f"]:
            case "start":
                self._starts[attempt].append((event["pid"], event["t"]))
            case "finish":
                self._finished[attempt, event["pid"]] = event["t"]
            case "requeue":
                self._returned.add(attempt)
                spans = len(self._of_killed.get(attempt, ())) + len(self._spans.get(attempt, ()))
                self._given_back[attempt] += spans > self._given_back[attempt]
            case "span":
                self._findings.count("spans")
                self._spans[attempt].append((event["pid"], event["t"]))
                self._overran.update([(attempt, event["pid"])] if "e" in event else ())
            case "killed_span":
                self._findings.count("spans of killed attempts")
                self._of_killed[attempt].append(event["t"])
            case what:
                self._left.update([(attempt, event["pid"])] if what in _LEFT else ())
                if what in _SETTLED:
                    self._settled[attempt, event["pid"]] = event["t"]
                if what == "stale":
                    self._refused.add(attempt)

    def rule(self) -> None:
        for attempt in self._spans.keys() | self._of_killed.keys():
            self._at_most_one(attempt)
        for attempt, starts in self._starts.items():
            for pid, started in starts:
                if pid in self._workers and attempt not in self._of_killed and not self._has_left(attempt, pid):
                    self._none(attempt, pid, started)

    def _at_most_one(self, attempt: _Attempt) -> None:
        spans, killed = self._spans.get(attempt, []), self._of_killed.get(attempt, [])
        last = max([*killed, *(at for _, at in spans)])
        unsettled = sum(self._is_unsettled(attempt, pid) and self._ends(pid, at, last) for pid, at in spans)
        # One that was given back is made once more under its number.
        most = max(1, len(self._starts.get(attempt, [])), self._given_back[attempt] + 1)
        if len(spans) + len(killed) - unsettled > most:
            what = f"{attempt[0]}: attempt {attempt[1]} has {len(spans)}, and {len(killed)} of killed ones"
            self._findings.violated("I27 more than one span", what)

    def _is_unsettled(self, attempt: _Attempt, worker: int) -> bool:
        """Whether this worker's death would make the attempt a killed one: it has not settled it, nor had it done.

        Or it had no time to show that it has: then the store refuses the second settlement.
        """
        is_done = (attempt, worker) in self._finished and (attempt, worker) not in self._overran
        if is_done and not attempt[0].startswith("g."):  # a member of a flow is done once it is settled
            return False
        settled = self._settled.get((attempt, worker))
        if settled is None or attempt not in self._refused:
            return settled is None
        died = self._windows.died(worker, settled)
        return died is not None and died - settled <= self._windows.slowed(_UNSHOWN, settled, died)

    def _has_left(self, attempt: _Attempt, worker: int) -> bool:
        return any(pid == worker for pid, _ in self._spans.get(attempt, ()))

    def _none(self, attempt: _Attempt, pid: int, started: int) -> None:
        """Only a death beside the settlement, or one that nobody could report, explains it."""
        windows, finished = self._windows, self._finished.get((attempt, pid))
        if finished:
            is_explained = (attempt, pid) not in self._left and windows.died(pid, finished) is not None
        else:
            ended = windows.died(pid, started) or windows.killed(pid, started)
            # One that is given back has none; so has one whose lease had ended when it was to be given back.
            has_none = attempt in self._returned or attempt in self._refused
            # A lease whose tag was forgotten ends at its next renewal, when that may be over.
            forgotten = windows.any_of({"tags_repeat"}, started - round(windows.retry_after * 1e9), ended or started)
            is_lost = any(killed >= started for killed in self._killed_for_leases[pid])
            is_explained = (
                not ended or has_none or is_lost or bool(forgotten or windows.excuse(started, ended + _UNTOLD))
            )
        if not is_explained:
            self._findings.violated("I27 no span", f"{attempt[0]}: attempt {attempt[1]} in pid {pid}")

    def _ends(self, pid: int, since: int, until: int) -> bool:
        """Whether this worker was killed, died or was stopped in this time."""
        windows = self._windows
        return any(
            (found(pid, since) or until + 1) <= until for found in (windows.killed, windows.died, windows.stopped)
        )
