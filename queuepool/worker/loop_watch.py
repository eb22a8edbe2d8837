"""Reports which job blocks the event loop that many jobs share, and where; ends the worker if no deadline will.

The main thread looks. It cannot while C code holds the interpreter's lock: then only the alarm shows it, at the job's
deadline.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from collections.abc import Callable
from types import FrameType

from queuepool.board.held_jobs import AT_WORK
from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE, WATCHED
from queuepool.board.lanes import HeldLane, Lanes
from queuepool.events import LoopBlocked
from queuepool.events.listeners import Listeners
from queuepool.settlement.facts import facts_in, unknown_in
from queuepool.worker.lane_tasks import Stepped

#: seconds that a step of a job's code may take before it is reported
_LONG = 1.0
#: seconds until jobs of the same name are reported again
_AGAIN = 60.0
#: most seconds between two looks that count: a longer gap is charged to no job, as when the process was stopped
_PAUSE = 1.0
#: most seconds between two looks for which the main thread is taken to go on
_GLANCE = 0.5
#: most names that are remembered, and most frames that are shown
_MOST, _MOST_FRAMES = 256, 50
_STEPS = {
    Stepped.send.__code__, Stepped.throw.__code__, Stepped.close.__code__, asyncio.Handle._run.__code__
}  # fmt: skip
_log = logging.getLogger("queuepool")


class LoopWatch:
    """Watches the loop of one worker, with these lanes. ``end`` is called to end the worker."""

    def __init__(self, lanes: Lanes, listeners: Listeners, silence: Silence, end: Callable[[], object]) -> None:
        self._lanes = lanes
        self._listeners = listeners
        self._silence = silence
        self._end = end
        self._looked_at = 0.0
        #: when each was last reported (monotonic), by name of the job
        self._said: dict[str, float] = {}

    def look(self, now: float, patience: float, *, is_needed: bool) -> None:
        """Call some times a second; ``now`` is monotonic. ``is_needed``: whether anything waits for the loop.

        The worker is to end once the loop has not answered for ``patience`` seconds while no job's own code ran, as
        that alone has a deadline.
        """
        step = self._step()
        self._note(step, now)
        silent = self._silence.look(now) if is_needed else 0.0
        seconds = now - step[1] if step else silent
        if seconds < _LONG:
            if step:  # the loop goes on, though it has too much to do to answer
                self._silence.seconds = 0.0
            return
        job = self._job_of(step)
        if step and not job and step[0] < self._lanes.count:
            return  # it has just ended
        self._say(job, step, seconds, now)
        if job and job.stage in AT_WORK:
            self._silence.seconds = 0.0
        elif silent >= patience:
            _log.error("the event loop has not answered for %.0f s, and runs no job: this worker ends", silent)
            self._silence.seconds = 0.0
            self._end()

    def _note(self, step: tuple[int, float] | None, now: float) -> None:
        """Show that we go on although the loop does not: its step blocks it, not a thread that holds the GIL."""
        if step:
            seen = self._lanes.reals[WATCHED]
            is_same = seen >= step[1]
            self._lanes.reals[WATCHED] = seen + min(now - self._looked_at, _GLANCE) if is_same else step[1]
        self._looked_at = now

    def _step(self) -> tuple[int, float] | None:
        """The lane whose code runs, and since when (monotonic); ``None``: a callback runs, or the loop waits."""
        lanes = self._lanes
        lane = lanes.wholes[ON_CPU] - 1  # first: of another step, the time would be later
        return (lane, lanes.reals[ON_CPU_SINCE]) if lane >= 0 else None

    def _job_of(self, step: tuple[int, float] | None) -> HeldLane | None:
        return next((one for one in self._lanes.held() if step and one.lane == step[0]), None)

    def _say(self, job: HeldLane | None, step: tuple[int, float] | None, seconds: float, now: float) -> None:
        name = job.job if job else ""
        if now - self._said.get(name, -_AGAIN) < _AGAIN:
            return
        trace = _trace(sys._current_frames().get(self._lanes.thread))
        if self._step() != step:
            return  # this may be its neighbour's
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said[name] = now
        facts = facts_in(job.lease) if job else unknown_in("")
        self._listeners.emit(LoopBlocked(facts, round(seconds, 3), trace))


class Silence:
    """For how long the loop has not answered. ``ask`` has it call something, from any thread."""

    def __init__(self, ask: Callable[[Callable[[], object]], object]) -> None:
        self._ask = ask
        self._has_answered = True
        self._looked_at = 0.0
        self.seconds = 0.0

    def look(self, now: float) -> float:
        """Ask, or see how long there has been no answer; ``now`` is monotonic."""
        if self._has_answered:
            self._has_answered, self.seconds = False, 0.0
            self._ask(self._answer)
        else:
            self.seconds += min(now - self._looked_at, _PAUSE)
        self._looked_at = now
        return self.seconds

    def _answer(self) -> None:
        self._has_answered = True


def _trace(frame: FrameType | None) -> str:
    """The frames of the step's own code, or of the callback's, the innermost last."""
    frames: list[FrameType] = []
    while frame and frame.f_code not in _STEPS and len(frames) < _MOST_FRAMES:
        frames.append(frame)
        frame = frame.f_back
    return "".join(traceback.StackSummary.extract((one, one.f_lineno) for one in reversed(frames)).format())
