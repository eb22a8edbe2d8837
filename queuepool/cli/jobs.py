"""Finding jobs: in queues, with workers and among the failed, by what they are and what is in their arguments."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any, NamedTuple

import click

from queuepool.board.shown_pools import RunningJob, ShownPool, running_jobs
from queuepool.cli import output
from queuepool.cli.finding import BY, COUNT, filtered, limited, note_closed, show_facets, states_of
from queuepool.cli.local import runtime_of
from queuepool.cli.options import JSON, PLACE, Where, located, option, parsed
from queuepool.cli.queues import QUEUES
from queuepool.cli.reading import Reading
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.jobs.client import Queue
from queuepool.operating.attempts import moment
from queuepool.operating.job_rows import job_row
from queuepool.operating.queues import all_queues
from queuepool.operating.scopes import scope_of
from queuepool.search.ended import EndedAttempt
from queuepool.search.facets import Facets
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob, plain
from queuepool.search.look import SHELVES, Look
from queuepool.search.running import pools_of
from queuepool.unix.exit_codes import FAILED, OK

#: characters of the arguments in a table
_SHOWN = 200
#: jobs that are shown by default
_MOST = 100


@click.command()
@located(*PLACE)
@QUEUES
@option(
    "--state",
    "states",
    metavar="STATE,...",
    type=parsed(states_of(*SHELVES, "running", "parked", "failed", "done")),
    default=SHELVES,
    help="Of ready, delayed, reserved, running, parked, failed and done  [default: the first three]",
)
@filtered
@limited(_MOST)
@COUNT
@BY
@JSON
def jobs(
    where: Where, queues: Sequence[str], states: Sequence[str], wanted: Filter, limit: int, is_count: bool,
    by: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Find jobs by what they are, where they are, and what is in their arguments

    By default: in the pools' queues, that of outcomes, and all others that are not empty; with --pool, only in its
    queues. A reserved job that a known worker runs is shown as running; one that waits for a place of a limit is
    parked. As done it shows each attempt that has ended, if the pool keeps them (keep_done), and how; --by outcome or
    host counts them. However many jobs it reads, it leaves the store half of its time.
    """
    reading = Reading(where.connections())
    search = _Search(where, queues, states, wanted, reading)
    found = reading.each(search.on)
    if is_count or by:
        facets = Facets(by or "")
        for one in found:
            facets.add(one.job)
        show_facets(facets, limit, as_json)
    else:
        rows = _Rows(islice(found, limit or None), reading, as_json)
        output.listing(rows, as_json, spare=("tags", "attempts", "at", "connection", "queue"))
        if limit and rows.count == limit:
            output.complain(f"note: these are the first {limit}: --limit 0 shows all, --count counts them")
    return max(reading.code, search.code())


class _Placed(NamedTuple):
    """A job, where it is, and who runs it."""

    connection: ConnectionSettings
    job: FoundJob
    by: RunningJob | None


class _Search:
    """Looks on one connection after the other."""

    def __init__(
        self, where: Where, queues: Sequence[str], states: Collection[str], wanted: Filter, reading: Reading
    ) -> None:
        self._reading = reading
        self._where = where
        self._queues = queues
        self._states = states
        self._wanted = wanted
        #: the queues in which there was any job, and those in which there was none
        self._held, self._empty = set[str](), set[str]()

    def on(self, connection: ConnectionSettings) -> Iterator[_Placed]:
        """The jobs there."""
        with closing(Queue(connection, by_hand=True)) as queue:
            look = Look(queue.stores, self._wanted)
            running = self._running(queue) if {"reserved", "running"} & {*self._states} else {}
            for name in self._queues or all_queues(self._where, connection, queue, output.complain):
                try:
                    for job in self._in(look, name, running):
                        yield _Placed(connection, job, running.get(job.id) if job.state == "running" else None)
                except StoreDown:
                    raise
                except StoreError as error:  # a key of the wrong type hides no other queue
                    self._held.add(name)
                    self._reading.refuse(f"queue {name}: {error}")
            if "failed" in self._states:
                yield from (_Placed(connection, job, None) for job in self._failed(connection))
            note_closed(look)

    def code(self) -> int:
        """Report the named queues without any job; returns the exit code."""
        code = OK
        for name in self._queues:
            if name in self._empty - self._held:
                note = self._where.note_on(name)
                output.complain(
                    f"{note}, and it holds no such jobs" if note else f"note: queue {name} holds no such jobs"
                )
                code = FAILED if note else code
        return code

    def _in(self, look: Look, queue: str, running: Mapping[str, RunningJob]) -> Iterator[FoundJob]:
        seen = look.seen
        shelved = [state for state in self._states if state not in ("parked", "failed", "done")]
        yield from look.in_states(queue, shelved, running)
        if "parked" in self._states:
            yield from look.parked(queue)
        if "done" in self._states:
            yield from look.ended(queue)
        (self._held if look.seen > seen else self._empty).add(queue)

    def _failed(self, connection: ConnectionSettings) -> Iterator[FoundJob]:
        with scope_of(self._where, connection) as scope:
            look = Look(scope.queue.stores, self._wanted)
            for job in chain.from_iterable(scope.pages(look)):
                if not self._queues or job.queue in self._queues:
                    self._held.add(job.queue)
                    yield job
            note_closed(look)

    def _running(self, queue: Queue) -> Mapping[str, RunningJob]:
        """What workers run; where the notices cannot be read, only those of this host."""
        found = list[ShownPool]()
        pools = (pool for pool in self._where.pools() if pool.connection == queue.settings)
        try:
            for shown in pools_of([runtime_of(self._where, pool) for pool in pools], queue.stores):
                found.append(shown)
        except StoreDenied as error:
            output.complain(f"note: what pools of other hosts run is unknown: {error}")
        return running_jobs(found)


class _Rows:
    """What is shown of the jobs, and how many there were."""

    def __init__(self, found: Iterator[_Placed], reading: Reading, as_json: bool) -> None:
        self._found = found
        self._reading = reading
        self._as_json = as_json
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for one in self._found:
            self.count += 1
            yield self._reading.place(one.connection) | (job_row(one.job, one.by) if self._as_json else _row(one.job))


def _row(job: FoundJob) -> dict[str, Any]:
    shown = json.dumps(plain(job.arguments), ensure_ascii=False, default=str)
    return {
        "id": job.id,
        "state": job.where.outcome if isinstance(job.where, EndedAttempt) else job.state,
        "queue": job.queue,
        "name": job.name or "-",
        "attempts": job.attempts,
        "at": moment(job.since),
        "tags": ",".join(job.tags) or "-",
        "arguments": job.error or (shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"),
    }
