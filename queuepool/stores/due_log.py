"""What became of the last due times of each schedule, as recorded by the stewards that settled them.

The marks decide what is pushed; this is for people. A steward that dies between the two leaves no line.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b

from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.stores.contract import NO_SECOND
from queuepool.stores.values import Values

#: lines of each schedule, and seconds for which they are kept
KEPT_LINES, _KEPT = 20, 35 * 86400.0


@dataclass(frozen=True, slots=True)
class DueLine:
    """One due time that got a job, or the missed ones from ``first`` to ``due``; all times are in Unix seconds."""

    due: int
    #: when that was settled, by the store's clock
    at: float
    #: the job's id; empty for what was missed
    id: str = ""
    first: int = 0
    #: why it was missed: ``late``, ``overlap``, ``paused`` or ``maintenance``
    reason: str = ""
    host: str = ""

    @classmethod
    def from_text(cls, text: bytes) -> DueLine | None:
        """From the log; ``None`` for anything else."""
        try:
            facts = strict_json.read_object(text)
        except BadPayload:
            return None
        match facts:
            case {
                "due": int(due), "at": float() | int() as at, "id": str(id_), "first": int(first),
                "reason": str(reason), "host": str(host),
            } if all(0 <= moment < NO_SECOND for moment in (due, at, first)):  # fmt: skip
                return cls(due, float(at), id_, first, reason, host)
        return None


class DueLog:
    """The lines of all schedules in one store."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def write(self, schedule: str, line: DueLine) -> None:
        """Add a line. Raises ``StoreError``."""
        self._values.note(_book(schedule), json.dumps(asdict(line)), KEPT_LINES, _KEPT)

    def last(self, schedule: str) -> list[DueLine]:
        """The last lines, the latest last."""
        return [line for text in self._values.notes(_book(schedule), KEPT_LINES) if (line := DueLine.from_text(text))]


def _book(schedule: str) -> str:
    """Its name is a digest: a schedule's may have any letters and any length."""
    return f"schedule:{blake2b(schedule.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
