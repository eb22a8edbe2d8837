"""Attempts that have ended, as a pool has kept their records; see ``settlement.attempts``."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from queuepool.board.record import DAMAGED
from queuepool.errors import BadPayload
from queuepool.payload.envelope import decode
from queuepool.settlement.attempts import job_fields
from queuepool.stores.attempts import KeptAttempt
from queuepool.stores.factory import Stores

#: seconds by which the clocks of hosts may differ
ASKEW = 60.0
#: attempts that are remembered, so that each is found once
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAttempt:
    """One attempt. ``attempts``: its number; times in Unix seconds; ``None`` or empty: not known."""

    id: str
    queue: str
    name: str = ""
    attempts: int | None = None
    outcome: str = "done"
    #: what became of the job, if not the same
    then: str = ""
    error: str = ""
    began: float | None = None
    ended: float
    #: how long it ran
    seconds: float | None = None
    host: str = ""
    pool: str = ""
    pid: int | None = None
    worker: int | None = None
    generation: int | None = None
    pool_since: float | None = None
    #: whether its lease was lost: nothing came of it, and another worker could have the job
    is_lost: bool = False
    raw: bytes = field(default=b"", repr=False)

    @classmethod
    def parsed(cls, kept: KeptAttempt) -> EndedAttempt | None:
        """``None`` for a damaged record, and for one that says nothing."""
        try:
            facts: dict[str, Any] = {**_job_in(kept.payload), **json.loads(kept.text)}
            number, unsure = facts.pop("attempt", None), facts.pop("unsure", False)
            known = {key: value for key, value in facts.items() if isinstance(value, _KINDS.get(key, ()))}
            if "began" in known:
                known.setdefault("ended", known["began"] + known.get("seconds", 0.0))
            if unsure and kept.is_lost:
                return None  # the worker has said it
            whole = number if isinstance(number, int) else None
            return cls(**known, attempts=whole, queue=kept.queue, is_lost=kept.is_lost, raw=kept.payload or kept.text)
        except DAMAGED:
            return None

    @property
    def place(self) -> tuple[object, ...]:
        """What hardly any two attempts at one job have in common."""
        return self.id, self.attempts, self.host, self.pid

    def is_of(self, other: EndedAttempt) -> bool:
        """Whether both records, with one place, may be of one attempt: a job that was given back has its number again.

        A notice tells the second in which an attempt began.
        """
        return self.began is None or other.began is None or abs(self.began - other.began) <= 1.0


def _job_in(raw: bytes) -> dict[str, Any]:
    """What a record need not say again."""
    with suppress(BadPayload):
        return job_fields(decode(raw))
    return {}


_NUMBER = (int, float)
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("id", "name", "outcome", "then", "error", "host", "pool"), str),
    **dict.fromkeys(("began", "ended", "seconds", "pool_since"), _NUMBER),
    **dict.fromkeys(("pid", "worker", "generation"), int),
}


def attempts_of(stores: Stores, queues: Iterable[str], job_id: str, until: float = math.inf) -> list[EndedAttempt]:
    """The kept attempts at this job, the first one first. Raises ``StoreError``.

    All records of the queues are read, the latest ones first, as they have no index; but no more when it is ``until``,
    by the monotonic clock.
    """
    kept = list[KeptAttempt]()
    for page in chain.from_iterable(stores.attempts.of_job(queue, job_id) for queue in queues):
        kept += page
        if time.monotonic() >= until:
            break
    return [one for one in read(kept) if one.id == job_id]


def read(page: Iterable[KeptAttempt]) -> list[EndedAttempt]:
    """Those that are not damaged, each once, the first one first."""
    return once(filter(None, map(EndedAttempt.parsed, page)))


class EachOnce:
    """The attempts of one page after another, the latest ones first, each once.

    What says that its lease was lost waits for all that was written since that attempt ended: see ``once``.
    """

    def __init__(self) -> None:
        self._lost: list[EndedAttempt] = []
        #: those that were read, and the places of those that were settled
        self._known: dict[tuple[object, ...], None] = {}

    def page(self, page: Iterable[KeptAttempt]) -> list[EndedAttempt]:
        """Those of this page, and the lost ones that have waited for it; the first one first."""
        fresh = [one for one in read(page) if not self._is_known(one)]
        found = once([*self._lost, *fresh])
        all_before = max((one.ended for one in fresh), default=math.inf) + ASKEW
        self._lost = [one for one in found if one.is_lost and one.ended <= all_before]
        self._know(fresh)
        return [one for one in found if not one.is_lost or one.ended > all_before]

    def rest(self) -> list[EndedAttempt]:
        """Those that still wait, after the last page."""
        return self._lost

    def _is_known(self, one: EndedAttempt) -> bool:
        return _mark_of(one) in self._known or (one.is_lost and one.place in self._known)

    def _know(self, fresh: Sequence[EndedAttempt]) -> None:
        self._known |= dict.fromkeys(map(_mark_of, fresh))
        self._known |= dict.fromkeys(one.place for one in fresh if not one.is_lost)
        if len(self._known) > 2 * _REMEMBERED:
            self._known = dict(islice(self._known.items(), _REMEMBERED, None))


def _mark_of(one: EndedAttempt) -> tuple[object, ...]:
    return *one.place, one.ended, one.is_lost


def once(attempts: Iterable[EndedAttempt]) -> list[EndedAttempt]:
    """Each once, the first one first.

    A process that settles an attempt a second time is refused, and so leaves a record of a lost lease: a worker that
    repeats a call which was not answered, or deletes a job that the steward has deleted in its place; the steward, if
    the worker died right after its settlement. Only the worker knows when a job that it has done had run.
    """
    found = dict[tuple[object, ...], list[EndedAttempt]]()
    for one in sorted(dict.fromkeys(attempts), key=lambda one: (one.is_lost, one.ended)):
        same = found.setdefault(one.place, [])
        at = next((at for at, other in enumerate(same) if one.is_lost and one.is_of(other)), None)
        if at is None:
            same.append(one)
        elif same[at].began is None:
            same[at] = replace(same[at], began=one.began, seconds=one.seconds, ended=one.ended)
    return sorted(chain.from_iterable(found.values()), key=lambda one: one.ended)
