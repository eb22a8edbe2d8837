"""What is odd about a queue beside its size: that no pool serves it, or that it is paused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from queuepool.board.pauses import pause_words
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.options import Where
from queuepool.errors import ConfigError, NotRunning, StoreError
from queuepool.jobs.client import Queue
from queuepool.stores.contract import Control
from queuepool.stores.control import served_in


class Mark(NamedTuple):
    """What is known of one queue; ``None``: it cannot be told."""

    #: whether a pool that runs, on any host, serves it
    served: bool | None = None
    paused: bool | None = None
    #: as ISO 8601, and as ``user@host``
    paused_since: str | None = None
    paused_by: str | None = None

    def words(self, queue: str) -> Iterator[str]:
        """A line for each thing that is odd."""
        if self.served is False:
            yield f"warn: queue {queue}: no pool that runs serves it"
        if self.paused:
            since = pause_words(self.paused_since, self.paused_by) if self.paused_since else ""
            yield f"warn: queue {queue}: is paused{since}"


def marks_of(where: Where, connection: Queue, queues: Sequence[str]) -> dict[str, Mark]:
    """The mark of each queue; what a store does not tell is unknown, and a note says why: the sizes are known."""
    served, control = _served(where, connection), _control(connection, queues)
    outcomes = connection.settings.outcomes  # Laravel's workers serve it, which cannot be seen
    return {queue: _mark(queue, None if queue == outcomes else served, control) for queue in queues}


def _mark(queue: str, served: frozenset[str] | None, control: Control | None) -> Mark:
    is_served = None if served is None else queue in served
    if control is None:
        return Mark(is_served)
    since, by = control.pauses.get(queue, (0.0, ""))
    return Mark(is_served, queue in control.paused, iso(since) if since else None, by or None)


def _served(where: Where, connection: Queue) -> frozenset[str] | None:
    """The queues that are served, by the pools' notices and by the boards of this host."""
    try:
        found = served_in(connection.stores.control.pools())
    except StoreError as error:
        _note_unknown(connection, "served", error)
        return None
    return None if found is None else found.union(*_local(where, connection))


def _local(where: Where, connection: Queue) -> Iterator[Sequence[str]]:
    """The queues of each pool that runs here on this connection; it may not have published itself yet."""
    for pool in where.pools():
        if pool.connection == connection.settings:
            with suppress(NotRunning, ConfigError, OSError):
                runtime = RuntimeDir(pool)
                runtime.master_pid()
                yield about.queues if (about := runtime.about()) else ()


def _control(connection: Queue, queues: Sequence[str]) -> Control | None:
    try:
        return connection.stores.control.read(queues)
    except StoreError as error:  # it may be elsewhere, and away; or a user may not read what Laravel has there
        _note_unknown(connection, "paused", error)
        return None


def _note_unknown(connection: Queue, what: str, error: StoreError) -> None:
    output.complain(f"note: connection {connection.settings.name}: which queues are {what} is unknown: {error}")


def complaints(marks: Mapping[str, Mark], busy: Mapping[str, Any]) -> Iterator[str]:
    """The lines below a table; of queues without jobs only that they are paused."""
    for queue, mark in marks.items():
        yield from (mark if busy[queue] else mark._replace(served=None)).words(queue)
