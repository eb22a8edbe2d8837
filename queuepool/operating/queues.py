"""What is known of queues beside their sizes: which there are, who serves them, and whether they are paused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from queuepool.board.pauses import pause_words
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import iso
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError, NotRunning, StoreDenied, StoreError
from queuepool.jobs.client import Queue
from queuepool.operating.choice import Choice
from queuepool.payload.envelope import ready_for
from queuepool.stores.contract import Control, Measured
from queuepool.stores.control import served_in
from queuepool.stores.factory import Stores
from queuepool.unix.escape import counted

#: is told what is unknown or left out, and why
Tell = Callable[[str], object]
#: seconds after which an outcome should have been taken
_TAKEN_WITHIN = 60.0


def all_queues(choice: Choice, connection: ConnectionSettings, opened: Queue, tell: Tell) -> Iterator[str]:
    """The pools' queues and that of outcomes, then the others, if the store lets us list them; of one pool its own."""
    configured = dict.fromkeys((*choice.queues(connection), *filter(None, [connection.outcomes])))
    yield from configured
    if choice.is_part:
        return
    try:
        existing = opened.stores.queue.queues()
    except StoreDenied as error:  # a Redis user without +scan
        tell(f"note: queues that no pool of this configuration serves are left out: {error}")
    else:
        yield from (name for name in existing if name not in configured)


def known_queues(choice: Choice, connection: ConnectionSettings, stores: Stores) -> list[str]:
    """The pools' queues and, if the store lets us list them, those that are not empty."""
    found = dict.fromkeys(choice.queues(connection))
    with suppress(StoreDenied):  # a Redis user without +scan
        found |= dict.fromkeys(stores.queue.queues())
    return [*found]


def age(found: Measured) -> float | None:
    """For how many seconds the queue's next job has been ready; ``None`` if there is none, or it is unknown."""
    if not (found.ready or found.oldest):
        return None
    known = ready_for(found.payload, found.now) if found.oldest is None else found.oldest
    return None if known is None else round(known, 1)


def untaken(queue: str, found: Measured) -> str:
    """The warning if outcomes wait in ``queue`` for more than a minute; empty if none does."""
    waited = age(found)
    if waited is None or waited <= _TAKEN_WITHIN:
        return ""
    waiting = f"{counted(found.ready, 'outcome')} waiting in queue {queue}, the oldest for {waited:.0f} s"
    return f"{waiting}: is it served by a worker of Laravel? Chains and batches stand still until it is"


class QueueMark(NamedTuple):
    """What is known of one queue beside its size; ``None``: unknown."""

    #: whether a pool that runs, on any host, serves it
    served: bool | None = None
    paused: bool | None = None
    #: as ISO 8601, and as ``user@host``
    paused_since: str | None = None
    paused_by: str | None = None

    def words(self, queue: str) -> Iterator[str]:
        """A line for each thing that is odd."""
        if self.served is False:
            yield f"warn: queue {queue}: no running pool serves it"
        if self.paused:
            since = pause_words(self.paused_since, self.paused_by) if self.paused_since else ""
            yield f"warn: queue {queue} is paused{since}"


def marks_of(choice: Choice, connection: Queue, queues: Sequence[str], tell: Tell) -> dict[str, QueueMark]:
    """The mark of each queue. What a store refuses to show is unknown, and a note explains it: the sizes are known."""
    served, control = _served(choice, connection, tell), _control(connection, queues, tell)
    outcomes = connection.settings.outcomes  # Laravel's workers serve it, which cannot be seen
    return {queue: _mark(queue, None if queue == outcomes else served, control) for queue in queues}


def is_served(choice: Choice, connection: Queue, queue: str) -> bool:
    """Whether a pool of the configuration serves this queue, or one that runs, on any host."""
    if queue in choice.queues(connection.settings):
        return True
    return queue in (_served(choice, connection, lambda _: None) or ())


def may_be_misspelled(choice: Choice, connection: Queue, queue: str) -> bool:
    """Whether a queue holds nothing, and surely no pool serves it: its name may be misspelled."""
    if queue == connection.settings.outcomes or any(queue in pool.queues for pool in choice.load().pools):
        return False
    served = _served(choice, connection, lambda _: None)
    if served is None or queue in served:
        return False
    sizes = connection.sizes(queue)
    return not (sizes.total or sizes.quarantined)


def _mark(queue: str, served: frozenset[str] | None, control: Control | None) -> QueueMark:
    is_served = None if served is None else queue in served
    if control is None:
        return QueueMark(is_served)
    since, by = control.pauses.get(queue, (0.0, ""))
    return QueueMark(is_served, queue in control.paused, iso(since) if since else None, by or None)


def _served(choice: Choice, connection: Queue, tell: Tell) -> frozenset[str] | None:
    """The queues that are served, by the pools' notices and by the boards of this host."""
    try:
        found = served_in(connection.stores.control.pools())
    except StoreError as error:
        tell(_unknown(connection, "served", error))
        return None
    return None if found is None else found.union(*_local(choice, connection))


def _local(choice: Choice, connection: Queue) -> Iterator[Sequence[str]]:
    """The queues of each pool that runs here on this connection; it may not have published itself yet."""
    for pool in choice.pools():
        if pool.connection == connection.settings:
            with suppress(NotRunning, ConfigError, OSError):
                runtime = RuntimeDir(pool)
                runtime.master_pid()
                yield about.queues if (about := runtime.about()) else ()


def _control(connection: Queue, queues: Sequence[str], tell: Tell) -> Control | None:
    try:
        return connection.stores.control.read(queues)
    except StoreError as error:  # it may be elsewhere, and away; or a user may not read Laravel's keys
        tell(_unknown(connection, "paused", error))
        return None


def _unknown(connection: Queue, what: str, error: StoreError) -> str:
    return f"note: connection {connection.settings.name}: which queues are {what} is unknown: {error}"


def complaints(marks: Mapping[str, QueueMark], busy: Mapping[str, Any]) -> Iterator[str]:
    """The lines below a table; of queues without jobs only that they are paused."""
    for queue, mark in marks.items():
        yield from (mark if busy[queue] else mark._replace(served=None)).words(queue)
