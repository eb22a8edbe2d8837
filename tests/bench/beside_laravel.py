"""Real pools and Laravel's real workers drain the same jobs on the same server, in turn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from queuepool.payload.envelope import Envelope, encode
from tests.bench.rig import Rig, until
from tests.bench.tables import execute, insert
from tests.support.laravel_peer import Peer

#: what is left out of the measure at both ends: processes that start, and those that find nothing any more
_EDGE = 0.1
THEIRS = r"App\Jobs\Noop@run"


def ours(rig: Rig, jobs: int, workers: int, *flags: str) -> float:
    """Jobs a second of a pool."""
    with rig.pool(workers, *flags):
        return _drained(rig, "noop", jobs)


def theirs(rig: Rig, jobs: int, workers: int) -> float:
    """Jobs a second of so many ``php artisan queue:work``."""
    with _laravel(rig, workers):
        return _drained(rig, THEIRS, jobs)


def pushed_by_laravel(rig: Rig, jobs: int) -> list[float]:
    """Seconds from Laravel's push to the first line of the job, on an idle pool."""
    rig.forget()
    with _peer(rig).serving() as laravel:
        for number in range(jobs):
            _, raw = encode("stamp", {"at": time.monotonic()}, Envelope(created_at=int(time.time())))
            laravel.ask("push", now=int(time.time()), raw=raw.decode(), queue="default")
            until(lambda number=number: len(rig.trail()) > number)  # type: ignore[misc]
    return [began - pushed for pushed, began, _ in rig.trail()]


@contextmanager
def _laravel(rig: Rig, workers: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(workers):
            stack.enter_context(_peer(rig).staying("work"))
        rig.queue.bulk([(THEIRS, {})])
        until(lambda: rig.queue.size() == 0)
        yield


def _drained(rig: Rig, name: str, jobs: int) -> float:
    """Between two looks at how many are left; a look costs more where more are left."""
    insert(rig, jobs, job=name)
    first, began = _left(rig, jobs * (1 - _EDGE))
    last, ended = _left(rig, jobs * _EDGE)
    until(lambda: _count(rig) == 0)
    return (first - last) / (ended - began)


def _left(rig: Rig, most: float) -> tuple[int, float]:
    while (left := _count(rig)) > most:
        time.sleep(0.05)
    return left, time.monotonic()


def _count(rig: Rig) -> int:
    return int(execute(rig, "SELECT count(*) FROM jobs")[0][0])


def _peer(rig: Rig) -> Peer:
    return Peer.on(rig.connection.url, rig.path / "out")
