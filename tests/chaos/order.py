"""First in, first out, as far as starts show it (I7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queuepool.worker.prefetch_size import MOST
from tests.chaos.at_wires import NEMESES as WIRES
from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

_STREAM = "t."
#: a given-back job that this many others of a backlog overtook was not at the head
_BACKLOG, _SHARE = 300, 0.8
#: another session locks a job's row, so others rightly skip it, wherever it stands; or the steward is stopped that
#: should give back what waits behind a slow job; or the host that has just reserved it is cut off
_HOLDING_UP = {"lock_rows", "deadlock", "stop_steward", *WIRES}
#: nanoseconds that a worker ran one job while the next ones that it held had to wait
_SLOW = 10_000_000
#: in a rolling restart a worker has an elder beside it for a moment
_HANDS = 2


class Pauses:
    """How many jobs had been started when a worker began a slow one, before the others that it held."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}
        self._before: dict[int, tuple[int, int]] = {}

    def start(self, pid: int, now: int, started: int) -> None:
        then, count = self._last.get(pid, (now, started))
        before, since = self._before.get(pid, (0, 2 * MOST))
        self._before[pid] = (count, 0) if now - then > _SLOW else (before, since + 1)
        self._last[pid] = now, started

    def reserved_by(self, pid: int, started: int) -> int:
        """Of all jobs started so far, those before this worker must have had the one that it starts now."""
        before, since = self._before[pid]
        return before if since < 2 * MOST else started


class Order:
    """Of the stream ``t``: one queue, one producer, no delays.

    In a calm, when a job starts, older ones may be missing that are in some other worker's hand, and no more. A job
    that was given back is at the head: the backlog does not overtake it.
    """

    EVENTS = ("run", "nemesis", "enq_inv", "enq_unknown", "start", "requeue", "release", "kill")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: jobs that some worker may hold
        self._held = _HANDS
        self._calm = self._held_up = False
        self._first = -1
        self._highest = -1
        self._missing: set[int] = set()
        self._pushed = 0
        self._started = 0
        #: by job: the attempt that was taken back, the jobs started until then, and those that waited
        self._returned: dict[str, tuple[int, int, int]] = {}
        self._pauses = Pauses()
        #: overtaken, by job; but another worker may have held it meanwhile, which is reported late
        self._overtaken: dict[str, str] = {}

    def read(self, event: Event) -> None:
        match event["f"]:
            case "start":
                self._start(event)
            case "enq_inv" if event["p"] == "t":
                self._pushed += event["hi"] - event["lo"] + 1
                if self._calm and self._first < 0:
                    self._first, self._highest = event["lo"], event["lo"] - 1
            case "requeue" if event["id"].startswith(_STREAM):
                self._return(event["id"], event["a"])
            case "run":
                beside = event.get("lanes", 0) * event.get("wide", 0)
                self._held = _HANDS * (event["workers"] * (event.get("ahead", 1) or MOST) + beside)
            case "nemesis":
                self._window(event["name"] == "calm" and bool(event["on"]))
                self._hold_up(event["name"] in _HOLDING_UP and bool(event["on"]))
            case "enq_unknown":
                self._window(False)
            case "release":
                self._returned.pop(event["id"], None)  # begun once more, and at the end now
            case "kill" if event["why"] not in ("worker", "template", "quit"):
                self._returned.clear()  # the worker that holds it may be delayed

    def _return(self, job: str, attempt: int) -> None:
        self._overtaken.pop(job, None)
        if not self._held_up:
            self._returned[job] = (attempt, self._started, self._pushed - self._started)

    def _window(self, calm: bool) -> None:
        self._calm, self._first = calm, -1
        self._missing.clear()

    def _hold_up(self, on: bool) -> None:
        self._held_up = on
        if on:
            self._returned.clear()

    def _start(self, event: Event) -> None:
        self._pauses.start(event["pid"], event["t"], self._started)
        if not event["id"].startswith(_STREAM):
            return
        if event["id"] in self._returned:
            reserved = self._pauses.reserved_by(event["pid"], self._started)
            attempt, started, backlog = self._returned.pop(event["id"])
            if event["a"] == attempt:  # else it was reserved once more, and came back by the end of that lease
                self._back(event["id"], reserved, started, backlog)
        if event["a"] != 1:
            return
        self._started += 1
        number = int(event["id"][2:])
        if self._first < 0 or number < self._first:
            return
        if number < self._highest:
            self._missing.discard(number)
            return
        self._missing.update(range(self._highest + 1, number))
        self._highest = number
        self._findings.count("jobs seen in order")
        if len(self._missing) >= self._held:
            self._findings.violated(
                "I7 order", f"{event['id']} before {len(self._missing)} older, {min(self._missing)} first"
            )
            self._missing.clear()

    def _back(self, job: str, reserved: int, started: int, backlog: int) -> None:
        # What other workers hold goes before it, wherever it stands.
        overtaken = reserved - started - self._held
        self._findings.count("given back and followed")
        if backlog >= _BACKLOG and overtaken >= _SHARE * backlog:
            self._overtaken[job] = f"{job}: overtaken by {overtaken} of {backlog}"

    def rule(self) -> None:
        for what in self._overtaken.values():
            self._findings.violated("I7 given back, but not to the head", what)
