"""The journal: who has done what to pools, queues, jobs and schedules, as lines in their store.

It is for people who look for the cause of something. It is not proof: anyone who may write to the store can add a line.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.stores.contract import NO_SECOND
from queuepool.stores.values import Values

#: the book, how many lines it keeps, and for how many seconds
_BOOK, KEPT_LINES, _KEPT = "journal", 5000, 365 * 86400.0
#: most characters of a subject, and of another text
_MOST_OF_SUBJECT, _MOST = 1000, 200


@dataclass(frozen=True, slots=True)
class Action:
    """One line: ``by`` (``user@host``) has done ``verb`` to ``subject``, ``at`` in the store's Unix seconds.

    ``count``: to how many jobs or other things, if they were counted.
    """

    at: float
    by: str
    verb: str
    subject: str
    count: int | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(4))

    @classmethod
    def from_text(cls, text: bytes) -> Action | None:
        """From a line of the journal; ``None`` for anything else."""
        try:
            facts = strict_json.read_object(text)
        except BadPayload:
            return None
        match facts:
            case {
                "at": float() | int() as at, "by": str(by), "verb": str(verb), "subject": str(subject),
                "count": int() | None as count, "id": str(id_),
            } if 0 <= at < NO_SECOND:  # fmt: skip
                return cls(float(at), by, verb, subject, count, id_)
        return None


def cancelled_job(job_id: str, *, requeue: bool) -> str:
    """The subject of a cancellation, here and from another host."""
    return f"job {job_id}{' (put back)' if requeue else ''}"


class Journal:
    """The journal of one store; ``clock`` is the store's, ``note_news`` has the pools look at the journal."""

    def __init__(self, values: Values, clock: Callable[[], float], note_news: Callable[[], None]) -> None:
        self._values = values
        self._clock = clock
        self._note_news = note_news

    def write(self, by: str, verb: str, subject: str, count: int | None = None) -> None:
        """Add a line. Raises ``StoreError``."""
        action = Action(self._clock(), by[:_MOST], verb[:_MOST], subject[:_MOST_OF_SUBJECT], count)
        self._values.note(_BOOK, json.dumps(asdict(action)), KEPT_LINES, _KEPT)
        self._note_news()

    def last(self, count: int) -> list[Action]:
        """The last lines, the latest last; damaged ones are left out."""
        return [action for text in self._values.notes(_BOOK, count) if (action := Action.from_text(text))]
