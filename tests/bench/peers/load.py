"""How long a push takes to its start while a queue is half as busy as it could be, or is given so many a second."""

from __future__ import annotations

import math
import time

from tests.bench.peers.asides import Load
from tests.bench.peers.cases import is_done, warm
from tests.bench.peers.elsewhere import Remote
from tests.bench.peers.peer import Peer, push_singly
from tests.bench.peers.sizing import LONG, rate
from tests.bench.peers.stage import Stage
from tests.bench.rig import until

#: the part of what a queue drains that it is given, and of what its producer can push
_HALF, _PUSHED = 0.5, 0.6
#: the part of what a queue drains that it bears at a steady rate
_BORNE = 0.8
#: jobs that are pushed to learn how quick its producer is
_TRIAL = 500


def half(stage: Stage, peer: Peer, seconds: float) -> int:
    """How many jobs in so many seconds are half of what it drained with two workers, or what its producer can push."""
    wanted, possible = _HALF * rate(stage, peer, "noop", 2, 0.0), _PUSHED * _pushed(stage, peer)
    load = stage.asides.loads[peer.name] = Load(min(wanted, possible), limited=possible < wanted)
    return max(1, int(seconds * load.rate))


def at_half_load(stage: Stage, peer: Peer, jobs: int) -> list[float]:
    """Milliseconds from when each job was to be pushed to its first line, on two workers."""
    pause = 1 / stage.asides.loads[peer.name].rate
    with stage.workers(peer, 2):
        warm(stage, peer)
        began = time.monotonic()
        push_on_time(peer, jobs, began, pause)
        until(lambda: is_done(stage, jobs), LONG)
    stage.asides.doubles[peer.name] += len(stage.trail) - jobs
    return [1000 * (started - (began + n * pause)) for n, started in stage.trail.starts().items()]


def at_pace(stage: Stage, peer: Peer, jobs: int, pace: int) -> list[float]:
    """Milliseconds from before each push to its first line, on two workers; infinite: it drains too few."""
    if pace > _BORNE * rate(stage, peer, "noop", 2, 0.0):
        return [math.inf]
    with stage.workers(peer, 2):
        warm(stage, peer)
        pushed = peer.push_singly(jobs, 1 / pace) if isinstance(peer, Remote) else push_singly(peer, jobs, 1 / pace)
        until(lambda: is_done(stage, jobs), LONG)
    stage.asides.doubles[peer.name] += len(stage.trail) - jobs
    return [1000 * (started - pushed[n]) for n, started in stage.trail.starts().items()]


def push_on_time(peer: Peer, jobs: int, began: float, pause: float) -> None:
    """What is due, in bulk. Its time does not move when the push before it took long: so that counts too."""
    pushed = 0
    while pushed < jobs:
        due = min(jobs, int((time.monotonic() - began) / pause) + 1)
        if due > pushed:
            peer.bulk("noop", range(pushed, due))
        pushed = due
        time.sleep(max(0.0, began + pushed * pause - time.monotonic()))


def _pushed(stage: Stage, peer: Peer) -> float:
    stage.clear()
    began = time.monotonic()
    peer.bulk("noop", range(_TRIAL))
    return _TRIAL / (time.monotonic() - began)
