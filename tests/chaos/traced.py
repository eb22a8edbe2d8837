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

_MS = 1_000_000
#: nanoseconds between the end of an attempt and its settlement, in which a worker's death may cost the span, or add one
_UNSETTLED = 200 * _MS
#: nanoseconds after a death in which a steward that is harmed may lose the event
_UNTOLD = 3_000 * _MS
_Attempt = tuple[str, int]


def has_span(job_id: str) -> bool:
    """Whether attempts at this job are traced."""
    return not job_id.startswith(("t.", "r.")) or (job_id.startswith("t.") and job_id.endswith("00"))


class Traced:
    """Judged at the end, when all deaths are known."""

    EVENTS = ("worker", "start", "finish", "requeue", "span", "killed_span")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        #: the workers with our hook; others are Laravel's
        self._workers: set[int] = set()
        #: by attempt, each with its worker and moment
        self._starts: dict[_Attempt, list[tuple[int, int]]] = defaultdict(list)
        self._spans: dict[_Attempt, list[tuple[int, int]]] = defaultdict(list)
        self._of_killed: Counter[_Attempt] = Counter()
        self._finished: dict[tuple[_Attempt, int], int] = {}
        self._returned: set[_Attempt] = set()

    def read(self, event: Event) -> None:
        if event["f"] == "worker":
            self._workers.add(event["pid"])
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
            case "span":
                self._findings.count("spans")
                self._spans[attempt].append((event["pid"], event["t"]))
            case _:
                self._findings.count("spans of killed attempts")
                self._of_killed[attempt] += 1

    def rule(self) -> None:
        for attempt in self._spans.keys() | self._of_killed.keys():
            self._at_most_one(attempt)
        for attempt, starts in self._starts.items():
            for pid, started in starts:
                if pid in self._workers and not self._of_killed[attempt] and not self._has_left(attempt, pid):
                    self._none(attempt, pid, started)

    def _at_most_one(self, attempt: _Attempt) -> None:
        spans, starts = self._spans.get(attempt, []), self._starts.get(attempt, [])
        unsettled = sum(self._ends(pid, at, at + _UNSETTLED) for pid, at in spans)
        # One that was given back is made once more under its number.
        more = len(spans) + self._of_killed[attempt] - unsettled - max(1, len(starts))
        if more > 0:
            what = f"{attempt[0]}: attempt {attempt[1]} has {len(spans)}, and {self._of_killed[attempt]} of killed ones"
            self._findings.violated("I27 more than one span", what)

    def _has_left(self, attempt: _Attempt, worker: int) -> bool:
        return any(pid == worker for pid, _ in self._spans.get(attempt, ()))

    def _none(self, attempt: _Attempt, pid: int, started: int) -> None:
        """Only a death beside the settlement, or one that nobody could report, explains it."""
        windows, finished = self._windows, self._finished.get((attempt, pid))
        if finished:
            is_explained = self._ends(pid, finished, finished + _UNSETTLED)
        else:
            ended = windows.died(pid, started) or windows.killed(pid, started) or started
            is_explained = attempt in self._returned or bool(windows.excuse(started, ended + _UNTOLD))
        if not is_explained:
            self._findings.violated("I27 no span", f"{attempt[0]}: attempt {attempt[1]} in pid {pid}")

    def _ends(self, pid: int, since: int, until: int) -> bool:
        """Whether this worker was killed, died or was stopped in this time."""
        windows = self._windows
        return any(
            (found(pid, since) or until + 1) <= until for found in (windows.killed, windows.died, windows.stopped)
        )
