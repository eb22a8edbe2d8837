"""How many jobs a queue is given, so that each run lasts about as long."""

from __future__ import annotations

import statistics
import time

from tests.bench.peers.peer import Peer
from tests.bench.peers.stage import About, Stage
from tests.bench.peers.trail import rate_of
from tests.bench.rig import until

#: seconds that a run may take at all
LONG = 900.0
#: jobs of a first run, and the seconds after which it says enough
_FIRST, _SHORT = 2000, 0.5
#: the fewest and the most that a queue is then measured with
_LEAST, _MOST = 60, 200_000


def fitting(stage: Stage, peer: Peer, job: str, workers: int, delay: float, seconds: float) -> int:
    """How many jobs this queue runs in so many seconds."""
    about = (peer.name, job, workers, delay)
    likely = next((guess for known in stage.rates if (guess := _likely(stage, known, about))), None)
    return max(_LEAST, min(_MOST, int(seconds * (likely or rate(stage, peer, job, workers, delay)))))


def affordable(stage: Stage, peer: Peer, wanted: int, seconds: float) -> int:
    """So many no-ops as are wanted, or as two of its workers run in so many seconds."""
    return min(wanted, fitting(stage, peer, "noop", 2, 0.0, seconds))


def rate(stage: Stage, peer: Peer, job: str, workers: int, delay: float) -> float:
    """Jobs a second: what was measured so far, else what a short run shows."""
    known = stage.rates[peer.name, job, workers, delay]
    return statistics.median(known) if known else _tried(stage, peer, job, workers, delay)


def _likely(stage: Stage, known: About, wanted: About) -> float | None:
    """Jobs a second, from what it did with other workers, or with another server that is far too; else ``None``."""
    rates = stage.rates[known]
    if not rates or known[:2] != wanted[:2] or bool(known[3]) != bool(wanted[3]):
        return None
    slower = known[3] / wanted[3] if wanted[3] else 1.0
    return statistics.median(rates) * wanted[2] / known[2] * slower


def _tried(stage: Stage, peer: Peer, job: str, workers: int, delay: float) -> float:
    """Of a run that is broken off as soon as it says enough; a run that is over too soon says too little."""
    jobs = _FIRST
    while _lasted(_cut_short(stage, peer, jobs, job, workers, delay)) < _SHORT / 5 and jobs < _MOST:
        jobs = 10 * jobs
    return rate_of(stage.trail.notes())


def _cut_short(stage: Stage, peer: Peer, jobs: int, job: str, workers: int, delay: float) -> Stage:
    stage.clear()
    peer.bulk(job, range(jobs))
    with stage.workers(peer, workers, delay):
        until(lambda: _says_enough(stage, jobs), LONG)
    return stage


def _says_enough(stage: Stage, jobs: int) -> bool:
    time.sleep(0.02)
    return len(stage.trail) >= jobs or (len(stage.trail) > 3 and _lasted(stage) >= _SHORT)


def _lasted(stage: Stage) -> float:
    times = [note.began for note in stage.trail.notes()]
    return max(times) - min(times)
