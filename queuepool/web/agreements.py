"""What pages have counted for somebody who may say yes to it, once: then it is done to these jobs and no others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from queuepool.operating.meant import Agreed
from queuepool.search.filters import Filter
from queuepool.stores.records import RecordKey
from queuepool.web.asked import Asked, number
from queuepool.web.guard import Refusal, WrongEntry
from queuepool.web.remembered import Remembered

#: above so many jobs, their number must be typed
TYPED_ABOVE = 100
#: those that are remembered, and their bytes: how far a count came may hold a payload
_MOST, _MOST_BYTES = 500, 32 * 1024 * 1024
_OWN_BYTES = 1000


@dataclass
class Agreement:
    """One of them. ``act``: of the route; ``of``: the connection, and the queue and the shelf of waiting jobs."""

    act: str
    of: tuple[str, ...]
    wanted: Filter
    agreed: Agreed[Any]
    #: the path to go back to, with its query
    back: str
    by: str = ""
    #: of chosen failed jobs: their ids, and the failures that were seen
    ids: tuple[str, ...] = ()
    keys: frozenset[RecordKey] | None = None
    #: of failed jobs: only those of this queue
    queue: str = ""
    #: whether all jobs are meant
    is_all: bool = False
    #: whether it was begun: only ``Submissions`` knows what came of it
    is_used: bool = False

    @property
    def must_type(self) -> bool:
        """Whether to say yes is to type their number: there are many of them, or they are all."""
        return self.agreed.count > TYPED_ABOVE or self.is_all

    def check_typed(self, asked: Asked) -> None:
        """Raise ``WrongEntry`` unless the number was typed where that is asked for."""
        if self.must_type and asked.one("typed", number, -1) != self.agreed.count:
            what = "all of them" if self.is_all else f"more than {TYPED_ABOVE} jobs"
            raise WrongEntry("typed", f"to do this to {what}, type their number: {self.agreed.count}", 409)


class Agreements:
    """Those of one dashboard. Safe for threads."""

    def __init__(self) -> None:
        self._kept = Remembered[Agreement](_MOST, _MOST_BYTES)

    def offer(self, agreement: Agreement, asked: Asked) -> str:
        """Remember what this visitor is asked; returns its key."""
        agreement.by = asked.visitor.name
        end, ids = agreement.agreed.end, agreement.ids
        size = _OWN_BYTES + (len(end) if isinstance(end, str) else 0) + 4 * sum(map(len, ids))
        return self._kept.keep(agreement, size)

    def accepted(self, asked: Asked, act: str, *of: str) -> Agreement:
        """What this visitor says yes to. Raises ``Refusal`` for what was asked of another one, or of other jobs."""
        key = asked.text("agreed")
        if not key:
            raise Refusal(400, "agreed: give what the page before this has said, which has counted the jobs")
        found = self._kept.found(key)
        if found is None or found.is_used or (found.by, found.act, found.of) != (asked.visitor.name, act, of):
            raise Refusal(409, "this was asked too long ago, of somebody else or of other jobs: count them again")
        found.check_typed(asked)
        return found


def query_of(fields: Iterable[tuple[str, str]], kept: Sequence[str]) -> str:
    """The query of the page to go back to, from the fields of a request: nothing else of them is used."""
    pairs = [(name, value) for name, value in fields if name in kept and value]
    return f"?{urlencode(pairs)}" if pairs else ""
