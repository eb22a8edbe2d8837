"""Says which job blocks the event loop that it shares with others, and at which line.

The main thread looks. While C code keeps the interpreter's lock it cannot: of that only the alarm tells, at the job's
deadline.
"""

from __future__ import annotations

import sys
import time
import traceback
from types import FrameType

from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE
from queuepool.board.lanes import Lanes
from queuepool.events import LoopBlocked
from queuepool.events.listeners import Listeners
from queuepool.settlement.facts import facts_in
from queuepool.worker.stepped import Stepped

#: seconds that a step of a job's code may take before that is said
_LONG = 1.0
#: seconds until it is said again of jobs with this name
_AGAIN = 60.0
#: most names that are remembered, and most frames that are shown
_MOST, _MOST_FRAMES = 256, 50
_STEPS = {Stepped.send.__code__, Stepped.throw.__code__, Stepped.close.__code__}


class LoopWatch:
    """That of one worker, whose lanes these are."""

    def __init__(self, lanes: Lanes, listeners: Listeners) -> None:
        self._lanes = lanes
        self._listeners = listeners
        #: by name of the job: when it was said (monotonic)
        self._said: dict[str, float] = {}

    def look(self, now: float) -> None:
        """Call some times a second; ``now`` is monotonic."""
        step = self._step()
        if step and now - step[1] >= _LONG:
            self._say(*step, now)

    def _step(self) -> tuple[int, float] | None:
        """The lane whose code runs, and since when (monotonic)."""
        lanes = self._lanes
        lane = lanes.wholes[ON_CPU] - 1  # first: of another step, the time would be later
        return (lane, lanes.reals[ON_CPU_SINCE]) if lane >= 0 else None

    def _say(self, lane: int, since: float, now: float) -> None:
        held = next((one for one in self._lanes.held() if one.lane == lane), None)
        if held is None or now - self._said.get(held.job, -_AGAIN) < _AGAIN:
            return
        trace = _trace(sys._current_frames().get(self._lanes.thread))
        if self._step() != (lane, since):
            return  # it has just ended: this may be its neighbour's
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said[held.job] = now
        self._listeners.emit(LoopBlocked(facts_in(held.lease), round(time.monotonic() - since, 3), trace))


def _trace(frame: FrameType | None) -> str:
    """The frames of the job's own code, the innermost last."""
    frames: list[FrameType] = []
    while frame and frame.f_code not in _STEPS and len(frames) < _MOST_FRAMES:
        frames.append(frame)
        frame = frame.f_back
    return "".join(traceback.StackSummary.extract((one, one.f_lineno) for one in reversed(frames)).format())
