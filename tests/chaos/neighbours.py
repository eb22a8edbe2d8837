"""Who runs beside a job that ends their worker is innocent: the attempt counts as not made (I28).

Where nothing proves who it was, as after a kill from outside, each may have been: their attempts count, and I31 rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.chaos.lane_modes import DEADLY, INNOCENT, UNPROVEN
from tests.chaos.lanes import STREAM, Begun, begun
from tests.chaos.ledger import Event
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: nanoseconds after a death in which a steward that is harmed may settle it otherwise
_SETTLED = 3_000_000_000


class _Interrupted(NamedTuple):
    """An innocent attempt, the birth and the death of its worker, and who may have caused that."""

    one: Begun
    born: int
    died: int
    culprits: tuple[Begun, ...]


class Neighbours:
    """Judged at the end: the steward tells of an attempt before or after its worker's death is seen."""

    EVENTS = ("worker", "start", "finish", "die", "death", "release", "fail", "requeue")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._open: dict[int, dict[str, Begun]] = {}
        #: jobs that said that they were about to end this worker
        self._deadly: dict[int, list[Begun]] = {}
        self._interrupted: list[_Interrupted] = []
        #: when each worker began; in a long run a pid may come again
        self._born: dict[int, int] = {}
        #: of each job: what became of its attempts, in order
        self._known: dict[str, list[tuple[int, int, str]]] = {}

    def read(self, event: Event) -> None:
        match event["f"]:
            case "worker" if event.get("lanes"):
                self._open[event["pid"]], self._deadly[event["pid"]] = {}, []
                self._born[event["pid"]] = event["t"]
            case "worker":
                self._open.pop(event["pid"], None)  # one that has no neighbours
            case "death":
                self._death(event["pid"], event["t"])
            case _ if not event["id"].startswith(f"{STREAM}."):
                pass
            case "start":
                self._note(event)
                if event["pid"] in self._open:
                    self._open[event["pid"]][event["id"]] = begun(event)
            case "finish" | "die" as what:
                one = self._open.get(event["pid"], {}).pop(event["id"], None)
                if one and what == "die" and one.mode in DEADLY:
                    self._deadly[one.pid].append(one)
            case _:
                self._note(event)

    def _note(self, event: Event) -> None:
        self._known.setdefault(event["id"], []).append((event["t"], event["a"], event["f"]))

    def _death(self, pid: int, now: int) -> None:
        interrupted = self._open.pop(pid, {}).values()
        deadly = [one for one in interrupted if one.mode in DEADLY and one.attempt == 1]
        culprits = (*self._deadly.pop(pid, []), *deadly)
        born = self._born.get(pid, 0)
        self._interrupted += [_Interrupted(one, born, now, culprits) for one in interrupted if one.mode in INNOCENT]

    def rule(self) -> None:
        for interrupted in self._interrupted:
            self._judge(*interrupted)

    def _judge(self, one: Begun, born: int, died: int, culprits: tuple[Begun, ...]) -> None:
        windows, findings = self._windows, self._findings
        if windows.killed(one.pid, born) or windows.stopped(one.pid, born):
            findings.count("neighbours of a kill")
            return
        if any(culprit.mode in UNPROVEN for culprit in culprits):
            findings.count("neighbours of whom nothing proves")
            return
        until, attempt, what = self._next(one) or (died, one.attempt, "nothing")
        if windows.excuse(one.started, max(until, died + _SETTLED)):
            return
        findings.count("neighbours of a culprit")
        words = f"{one.job}, attempt {one.attempt} in pid {one.pid}, beside {_named(culprits)}"
        if not culprits:
            findings.violated("I28 interrupted by nobody", words)
        if attempt > one.attempt or what in ("release", "fail"):
            findings.violated("I28 a neighbour was charged", words)

    def _next(self, one: Begun) -> tuple[int, int, str] | None:
        """What came next of the job: how this attempt was settled, or if nobody could tell, the next one's start.

        An earlier attempt may be told of late: it is available again before that.
        """
        later = (known for known in self._known[one.job] if known[0] > one.started)
        return next((known for known in later if known[2] == "start" or known[1] == one.attempt), None)


def _named(culprits: tuple[Begun, ...]) -> str:
    return " ".join(f"{one.job} ({one.mode})" for one in culprits) or "no culprit"
