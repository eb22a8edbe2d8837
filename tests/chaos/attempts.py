"""The attempts of each job: starts, finishes and what was reported in between (I2, I4, I5, I6)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queuepool.errors import TimedOut
from tests.chaos import graphs
from tests.chaos.lane_modes import IN_LANES, IN_THREADS
from tests.chaos.ledger import Event
from tests.chaos.tables import FAILED, FINISHED, INVOKED, Jobs, Stream, is_ours
from tests.chaos.times import Times
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

_MS = 1_000_000
#: nanoseconds between the last effect and the settlement in which a kill makes a job run twice
_UNSETTLED = 200 * _MS
#: such kills are rare, though each may hit a whole batch: above this share of all kills, or of jobs, their moment does
#: not explain what was done twice
_FEW, _SHARE = 5, 0.01
_FEW_JOBS, _JOBS_SHARE = 20, 0.05
#: nanoseconds by which a death may be seen late, if the harness did not cause it
_SEEN_LATE = 200 * _MS
_KILLED = "twice: killed between its last effect and its settlement"
#: a member of a flow is not marked as done on the board: its worker has it until the store has its end, however long
#: that takes
_MEMBER = "twice: a member of a flow, whose worker ended before it had settled it"
_BESIDE = "twice: done in a thread, while another job kept the loop until it ended their worker"
_OVERRAN = "twice: done in a thread, when its time was over"
#: nanoseconds before its deadline from which a thread that has written its last line may still overrun it
_RETURNS = 50 * _MS
#: nemeses in which stewards leave, and nanoseconds for which one tells of nothing: until it has settled all of a worker
_UNTOLD = {"born_deaf", "leave_now"}
_SETTLING = 1_000 * _MS


@dataclass(frozen=True, slots=True)
class Again:
    """A start after an earlier one, and how far the earlier one got. Times in nanoseconds, 0 = it did not."""

    job: str
    pid: int
    started: int
    finished: int
    died: int
    again: int
    by: int
    attempt: int
    #: whether the earlier one was a plain function in a thread, beside others
    in_a_thread: bool
    #: whether it was a member of a flow, and the last that its worker began
    is_held: bool


@dataclass(frozen=True, slots=True)
class Odd:
    """A start whose attempt does not follow the one before."""

    job: str
    before: int
    attempt: int
    since: int
    until: int


class Attempts:
    """Judges repeated starts of a job once all deaths are known: other processes write those, and late."""

    EVENTS = ("run", "worker", "start", "finish", "die", "ack", "release", "fail", "requeue", "stale", "undeleted")

    def __init__(self, findings: Findings, jobs: Jobs, windows: Windows, times: Times) -> None:
        self._findings = findings
        self._jobs = jobs
        self._windows = windows
        self._times = times
        self._again: list[Again] = []
        self._dying: dict[str, int] = {}
        self._odd: list[Odd] = []
        self._returned: set[tuple[str, int]] = set()
        self._settled: set[tuple[str, str, int]] = set()
        self._failed: dict[str, int] = {}
        self._undeleted: set[tuple[str, int]] = set()
        #: the workers that died between a job's last effect and its settlement
        self._killed: set[int] = set()
        #: workers that run several jobs at once, and the jobs of their loops; all others are in threads
        self._wide: set[int] = set()
        self._on_loops: set[tuple[str, int]] = set()
        #: the deadlines of attempts in threads, and the attempts that were released as they had overrun theirs
        self._deadlines: dict[tuple[str, int], int] = {}
        self._overran: set[tuple[str, int]] = set()
        #: of how many jobs in threads of one worker the loop did not learn before that died
        self._unlearned: Counter[int] = Counter()
        #: what each worker has begun last
        self._last: dict[int, str] = {}
        self._lanes = 0

    def read(self, event: Event) -> None:
        if event["f"] == "run":
            self._lanes = event.get("lanes", 0)
        elif event["f"] == "worker":
            (self._wide.add if event.get("lanes") else self._wide.discard)(event["pid"])
        elif self._is_a_job(event):
            self._read(event)

    def _read(self, event: Event) -> None:
        stream, number = self._jobs.find(event["id"])
        if stream.is_retried:
            self._retried(stream, number, event["f"])
            return
        match event["f"]:
            case "start":
                self._start(stream, number, event)
            case "finish":
                self._finish(stream, number, event)
            case "die":
                self._die(stream, number, event)
            case "requeue":
                self._returned.add((event["id"], event["a"]))
                self._findings.count("given back")
            case "undeleted":
                self._undeleted.add((event["id"], event["pid"]))
            case "stale":
                self._findings.count("settlements refused")
            case "ack":
                pass
            case what:
                self._settle(what, event, stream, number)

    def _is_a_job(self, event: Event) -> bool:
        """Not so the producer's payload that cannot be read, which may be given back as any other."""
        if event["id"] and not is_ours(event["id"]):
            self._findings.violated("I2 invented", f"{event['f']} of {event['id']}, which is another store's")
        return is_ours(event["id"])

    def _retried(self, stream: Stream, number: int, what: str) -> None:
        """Tried again by people, it begins anew as often as they like."""
        if what == "start":
            self._findings.count("starts")
            stream.starts[number] += 1
        elif what == "fail":
            self._findings.count("failed and tried again" if stream.has(number, FAILED) else "failed")
            stream.mark(number, FAILED)
        elif what == "finish":  # by Laravel's worker, where no mode does harm
            stream.mark(number, FINISHED)

    def _start(self, stream: Stream, number: int, event: Event) -> None:
        self._findings.count("starts")
        job, attempt, now = event["id"], event["a"], event["t"]
        if event.get("m") in IN_LANES:
            self._on_loops.add((job, event["pid"]))
        elif event.get("m") in IN_THREADS:
            self._deadlines[job, attempt] = event["until"]
        if not stream.has(number, INVOKED):
            self._findings.violated("I2 invented", job)
        if stream.has(number, FAILED):
            self._findings.violated("I5 started after it had failed", job)
        before = stream.attempt[number]
        if stream.starts[number]:
            finished = stream.finished[number]
            self._again.append(
                Again(
                    job,
                    stream.pid[number],
                    stream.started[number],
                    finished,
                    self._dying.pop(job, 0),
                    now,
                    event["pid"],
                    before,
                    stream.pid[number] in self._wide and (job, stream.pid[number]) not in self._on_loops,
                    stream.name == graphs.STREAM and self._last.get(stream.pid[number]) == job,
                )
            )
        if attempt != before + 1:
            self._odd.append(Odd(job, before, attempt, stream.started[number] or stream.pushed[number], now))
        self._last[event["pid"]] = job
        stream.starts[number] += 1
        stream.attempt[number], stream.pid[number] = attempt, event["pid"]
        stream.started[number], stream.finished[number] = now, 0

    def _finish(self, stream: Stream, number: int, event: Event) -> None:
        self._findings.count("finishes")
        stream.mark(number, FINISHED)
        if (stream.attempt[number], stream.pid[number]) == (event["a"], event["pid"]):
            stream.finished[number] = event["t"]
        else:
            self._findings.violated("I4 overlap", f"{event['id']}: attempt {event['a']} ended after the next had begun")

    def _die(self, stream: Stream, number: int, event: Event) -> None:
        """It is about to end by itself: also one whose soft timeout came between its last line and its return."""
        self._dying[event["id"]] = event["t"]
        if (stream.attempt[number], stream.pid[number]) == (event["a"], event["pid"]):
            stream.finished[number] = 0

    def _settle(self, what: str, event: Event, stream: Stream, number: int) -> None:
        """Each attempt may be settled once; after ``fail`` no other settlement may follow."""
        self._findings.count({"release": "released", "fail": "failed"}[what])
        key = (what, event["id"], event["a"])
        # The process that released an earlier attempt may have been stopped before it could report it.
        is_late = what == "release" and event["a"] < self._failed.get(event["id"], 0)
        if key in self._settled or (stream.has(number, FAILED) and not is_late):
            self._findings.violated("I5 settled twice", f"{event['id']}: {what} of attempt {event['a']}")
        self._settled.add(key)
        if event.get("e") == TimedOut.__name__:
            self._overran.add((event["id"], event["a"]))
        if what == "fail":
            stream.mark(number, FAILED)
            self._failed[event["id"]] = event["a"]

    def rule(self) -> None:
        for again in self._again:
            if again.finished:
                self._twice(again)
            else:
                self._anew(again)
        for odd in self._odd:
            self._count(odd)
        kills, jobs = self._findings.counts.get("kills", 0), self._findings.counts.get(_KILLED, 0)
        if len(self._killed) > max(_FEW, _SHARE * kills) or jobs > max(_FEW_JOBS, _JOBS_SHARE * kills):
            words = f"{jobs} jobs of {len(self._killed)} that were killed after their last effect are too many"
            self._findings.violated("I5 done twice, unexplained", words)

    def _count(self, odd: Odd) -> None:
        """An attempt given back counts as not made; it is reported after the job is available again."""
        if odd.attempt == odd.before and (odd.job, odd.before) in self._returned:
            return
        # Killed after it was marked as started, but before its first line: that attempt has no start.
        unseen = range(odd.before + 1, odd.attempt)
        if unseen and all(("release", odd.job, attempt) in self._settled for attempt in unseen):
            self._findings.count("attempts without a start", len(unseen))
            return
        if excuse := self._excuse(odd):
            self._findings.excused(f"attempts not +1: in {excuse}", f"{odd.job}: {odd.attempt} after {odd.before}")
        else:
            self._findings.violated("I6 attempts", f"{odd.job}: {odd.attempt} after {odd.before}")

    def _excuse(self, odd: Odd) -> str:
        if odd.attempt > odd.before and (ended := self._windows.ended_lease(odd.since, odd.until)):
            return ended
        # It was settled by a process that died before reporting it.
        since, until = odd.since, odd.until + _SETTLING
        return self._windows.steward_killed(since, until) or self._windows.any_of(_UNTOLD, since, until)

    def _twice(self, again: Again) -> None:
        """It had finished: only a death before the settlement, or a store that was away or refused, explains it."""
        findings, windows = self._findings, self._windows
        findings.count("twice")
        what = f"{again.job}: {(again.again - again.finished) / 1e9:.3f} s after it had finished"
        ends = windows.killed(again.pid, again.finished), windows.died(again.pid, again.finished)
        killed = min((end for end in ends if end), default=None)  # a later kill may be another process's of that pid
        if board := windows.written_over(again.started, again.again):
            findings.excused(f"twice: in {board}", what)  # however it ended: nothing says what it had done
        elif loss := windows.loss(again.started, again.finished, again.again):
            findings.excused(f"twice: in {loss}", what)  # of several workers at once, so before their kills are counted
        elif killed and killed < again.again and (death := self._by_death(again, killed)):
            findings.excused(death, what)
        elif self._has_overrun(again):
            findings.excused(_OVERRAN, what)
        elif (again.job, again.pid) in self._undeleted:
            findings.excused("twice: Laravel's worker was not let delete it", what)
        elif excuse := windows.ended_lease(again.started, again.again):
            findings.excused(f"twice: in {excuse}", what)
        elif windows.is_long(again.started, again.again):  # a crowded machine may hold up a settlement for that long
            findings.late.setdefault("I5 done twice, unexplained", []).append(what)
        else:
            findings.violated("I5 done twice, unexplained", what)

    def _by_death(self, again: Again, killed: int) -> str:
        """Words for a death that came before anybody knew that the job was done; '' = it came later."""
        if self._is_beside(again):
            return _BESIDE
        if again.is_held:
            return _MEMBER
        if not self._is_unsettled(again, killed):
            return ""
        self._killed.add(again.pid)
        return _KILLED

    def _has_overrun(self, again: Again) -> bool:
        """Whether it was released as it was over too late: a thread cannot be ended at its deadline."""
        attempt = again.job, again.attempt
        return attempt in self._overran and again.finished >= self._deadlines.get(attempt, again.again) - _RETURNS

    def _is_unsettled(self, again: Again, killed: int) -> bool:
        """Whether it was killed before it could show that it was done, as a worker that was stopped meanwhile is."""
        stopped = self._windows.stopped(again.pid, again.started)
        if stopped is not None and stopped <= killed:
            return True
        return killed - again.finished <= self._windows.slowed(_UNSETTLED, again.finished, killed)

    def _is_beside(self, again: Again) -> bool:
        """Whether it may be one of the neighbours, of which there are as many as lanes, of a worker's death."""
        if not again.in_a_thread:
            return False
        self._unlearned[again.pid] += 1
        return self._unlearned[again.pid] <= self._lanes

    def _anew(self, again: Again) -> None:
        """The earlier start had not finished: its process must have been gone."""
        windows = self._windows
        killed, died = windows.killed(again.pid, again.started), windows.died(again.pid, again.started)
        if killed and killed <= again.again:
            self._times.recovered(again.job, killed, again.again)
        elif not (again.died or (died and died <= again.again + windows.slowed(_SEEN_LATE, again.started, died))):
            self._findings.violated("I4 overlap", f"{again.job}: started anew while pid {again.pid} had it")
