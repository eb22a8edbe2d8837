"""A job that was found, with what is known of it; its payload is read when it is asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from queuepool.errors import BadArguments, BadPayload
from queuepool.log.tracebacks import headline
from queuepool.payload.command import Commands
from queuepool.payload.envelope import Payload, decode, digest_of
from queuepool.payload.php_values import PhpEnum, PhpObject
from queuepool.search.ended import EndedAttempt
from queuepool.search.filters import text_of, values_at
from queuepool.stores.contract import ShelfJob
from queuepool.stores.limits import ParkedJob
from queuepool.stores.records import FailedJob, Quarantined

#: most characters of a value, and of an error, by which jobs are counted: all are held at once
_LONGEST = 500
#: levels of arguments that are shown
_DEEPEST = 12
#: what makes each of many errors of one kind another text: numbers, and ids in hexadecimal
_VARIES = re.compile(r"\b[0-9a-f]{8,}(-[0-9a-f]{4,})*\b|\d+")


class FoundJob:
    """One job. ``where`` is what it was read from: a queue, the failed jobs or the quarantine."""

    def __init__(
        self,
        where: ShelfJob | FailedJob | Quarantined | EndedAttempt,
        state: str,
        queue: str,
        raw: bytes,
        commands: Commands,
    ) -> None:
        self.where = where
        #: ``ready``, ``delayed``, ``reserved``, ``running``, ``parked``, ``failed``, ``quarantined`` or ``done``
        self.state = state
        self.queue = queue
        self.raw = raw
        self._commands = commands
        #: whether its arguments were asked for and could not be read: a key is missing, or they are damaged
        self.is_closed = False

    @classmethod
    def waiting(cls, job: ShelfJob, queue: str, commands: Commands) -> FoundJob:
        return cls(job, job.shelf, queue, job.payload, commands)

    @classmethod
    def parked(cls, job: ParkedJob, queue: str, commands: Commands) -> FoundJob:
        """One that waits for a place of a limit; ``where``: as it is in its queue once it is put back there."""
        where = ShelfJob(job.payload, "delayed", job.number, job.attempts)
        return cls(where, "parked", queue, job.payload, commands)

    @classmethod
    def failed(cls, record: FailedJob, commands: Commands) -> FoundJob:
        return cls(record, "failed", record.queue, record.payload.encode("utf-8", "replace"), commands)

    @classmethod
    def quarantined(cls, entry: Quarantined, commands: Commands) -> FoundJob:
        return cls(entry, "quarantined", entry.queue, entry.payload, commands)

    @classmethod
    def ended(cls, attempt: EndedAttempt, commands: Commands) -> FoundJob:
        return cls(attempt, "done", attempt.queue, attempt.raw, commands)

    @cached_property
    def payload(self) -> Payload | None:
        """``None`` if it cannot be a job."""
        with suppress(BadPayload):
            return decode(self.raw)
        return None

    @cached_property
    def arguments(self) -> Any:
        """The arguments: JSON, or an object's properties; ``None`` if they cannot be read."""
        try:
            return self._commands.data_of(self.payload) if self.payload else None
        except BadArguments:
            self.is_closed = True
            return None

    @property
    def id(self) -> str:
        """Its id; of a payload without one a digest; of a failed job or an entry of the quarantine its record's."""
        if isinstance(self.where, ShelfJob):
            return self.payload.id if self.payload else digest_of(self.raw)
        return self.where.id

    @property
    def name(self) -> str:
        """The name of its handler, empty if it cannot be a job."""
        if isinstance(self.where, EndedAttempt):
            return self.where.name
        return self.payload.name if self.payload else ""

    @property
    def tags(self) -> Sequence[str]:
        """Its tags."""
        return self.payload.tags if self.payload else ()

    @property
    def attempts(self) -> int | None:
        """How many have begun; ``None`` if that is unknown."""
        if isinstance(self.where, ShelfJob) and self.where.attempts is None:
            return self.payload.attempts if self.payload else None
        return None if isinstance(self.where, Quarantined) else self.where.attempts

    @property
    def error(self) -> str:
        """The first line of the error of a failed job or attempt, the reason of one in quarantine; else empty."""
        match self.where:
            case FailedJob():
                return headline(self.where.exception)
            case Quarantined():
                return self.where.reason
            case EndedAttempt():
                return self.where.error
        return ""

    @property
    def pushed(self) -> float | None:
        """When it was pushed, in Unix seconds; ``None`` if its payload does not show it."""
        return self.payload.pushed_at if self.payload else None

    @property
    def since(self) -> float | None:
        """When it failed, ended, or came into quarantine; of any other when it was pushed."""
        match self.where:
            case FailedJob():
                return self.where.failed_at
            case Quarantined():
                return self.where.at
            case EndedAttempt():
                return self.where.ended
        return self.pushed

    def facets(self, by: str) -> Iterator[str]:
        """What the job counts under: its ``name``, ``queue``, ``state``, ``error``, its tags, or an argument.

        Of an attempt also its ``outcome`` and ``host``.
        """
        match by:
            case "outcome" | "host" if isinstance(self.where, EndedAttempt):
                yield getattr(self.where, by) or "-"
            case "name" | "queue" | "state":
                yield getattr(self, by) or "-"
            case "error":
                yield _cut(_VARIES.sub("…", self.error)) or "-"
            case "tag":
                yield from self.tags or ["-"]
            case path:
                texts = {text for value in values_at(self.arguments, path) if (text := text_of(value)) is not None}
                yield from (_cut(text) for text in texts or ["-"])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def plain(value: Any, depth: int = 0) -> Any:
    """Arguments as JSON holds them: objects of PHP as their properties, deeper ones as their kind."""
    if isinstance(value, PhpObject):
        value = value.properties
    if isinstance(value, PhpEnum):
        return value.case
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no form for it
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, (list, tuple, Mapping)) and depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, depth + 1) for one in value]
    return value
