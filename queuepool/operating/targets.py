"""Whether jobs that are put on a queue will be taken from there."""

from __future__ import annotations

from queuepool.config.settings import ConnectionSettings
from queuepool.operating.choice import Choice


def connection_instead(choice: Choice, connection: ConnectionSettings, queue: str) -> ConnectionSettings | None:
    """The connection whose pools serve this queue, if only those of another one than ``connection`` do."""
    others = [one.connection for one in choice.load().pools if queue in one.queues and one.connection != connection]
    return others[0] if others and queue not in choice.queues(connection) else None


def note_on(choice: Choice, queue: str, file: str) -> str:
    """A note if no pool of the configuration in ``file``, or not the chosen one, serves this queue; else empty."""
    if queue in choice.queues():
        return ""
    if choice.is_part and any(queue in pool.queues for pool in choice.load().pools):
        return f"note: pool {choice.pools()[0].name} of {file} does not serve queue {queue}"
    return f"note: no pool of {file} serves queue {queue}"
