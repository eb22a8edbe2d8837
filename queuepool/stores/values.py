"""The contract of values: named texts that end, beside the jobs or in a cache of Laravel's.

What the values say is written and read elsewhere: ``control`` (control keys and notices), ``locks``, ``schedules``. All
verbs but ``stamp`` may be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any, NamedTuple, Protocol

from queuepool.payload.ending import Lock
from queuepool.stores.contract import NO_SECOND
from queuepool.stores.locks import Locks

#: most bytes, or characters, that are read of a value: no more is needed to know whether it is set, or another one
MAX_VALUE = 4096
#: most bytes of a notice that is read: a pool of a thousand workers has half of that; and of all notices
MAX_NOTICE, MAX_OF_NOTICES = 1024 * 1024, 16 * 1024 * 1024
#: most bytes of a text of the history, and most texts of one of its buckets, that are read
MAX_KEPT, MOST_KEPT = 65536, 1000
#: most bytes that are read of a state: the largest of ours, its result as text in JSON, has a third of that
MAX_STATE = 1024 * 1024


class AlertClaim(Enum):
    """Whose an alert's key is after an attempt to take it."""

    #: ours since now
    TAKEN = "taken"
    #: ours since before
    OURS = "ours"
    OTHERS = "others"


class Kept(NamedTuple):
    """One text of the history; ``bucket`` is the Unix second at which its time begins."""

    bucket: int
    writer: str
    text: bytes


class History(NamedTuple):
    """What was read of the history, and how much was left out as it was too large or too many."""

    texts: list[Kept]
    ignored: int


class Values(Locks, Protocol):
    """The values in one store, Laravel's unique locks among them. Raises ``StoreDown`` and ``StoreError``."""

    # Laravel's cache, and our control keys in it

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        """The values in PHP's serialization (in Redis, numbers are plain), cut at ``MAX_VALUE``; ``None``: missing."""

    def put(self, name: str, value: bytes) -> None:
        """Store a value until it is removed."""

    def remove(self, name: str) -> bool:
        """Remove a value; ``False`` when there was none."""

    def stamp(self, name: str) -> int:
        """Set the value to the store's Unix second, or to one more than before if that is later; returns it."""

    # Notices, by which pools know of one another

    def publish(self, pool: str, notice: Mapping[str, Any]) -> None:
        """Keep a pool's notice for ``NOTICE_KEPT`` seconds, with the store's current Unix second as ``at``."""

    def withdraw(self, pool: str) -> None:
        """Remove a pool's notice."""

    def notices(self, within: float) -> list[dict[str, Any]]:
        """The notices of the last seconds; those that are no longer kept, or cannot be read, are removed."""

    # Which of several pools sends the notice of an alert: the one that has its key

    def claim_alert(self, alert: str, owner: str, seconds: float) -> AlertClaim:
        """Take the key for ``seconds``, unless somebody has it."""

    def release_alert(self, alert: str, owner: str) -> bool:
        """Remove the key if this owner has it; ``False`` if it has not, or its time is over."""

    # What pools keep of their past: texts in buckets of time, one writer a text

    def keep_history(self, grain: str, bucket: int, writer: str, text: str, lifetime: float) -> None:
        """Keep this writer's text of a bucket, in place of its earlier one, for about ``lifetime`` seconds from now.

        ``grain`` names a length of buckets.
        """

    def sweep_history(self) -> None:
        """Remove what has expired, where the store does not do so itself."""

    def history(self, grain: str, buckets: range) -> History:
        """The texts of these buckets, as far as they have not expired."""

    # Schedules' marks; any number of stewards may settle one

    def begin(self, rules: Mapping[str, str], now: int) -> dict[str, Mark]:
        """The marks of these schedules, by name with their rules; of a new schedule, or a new rule, it is ``now``."""

    def fire(self, due: Due) -> Fired | None:
        """Settle this due time and push its job, both or neither; ``None`` if the schedule has no mark.

        Takes the lock if there is one; a time for which it is held is settled, too.
        """

    def marks(self) -> dict[str, Mark]:
        """All marks, also of schedules that are gone."""

    def forget(self, name: str) -> bool:
        """Drop the mark: the schedule begins anew where it is seen next; ``False`` when there was none."""

    # The states of tracked jobs, which are written with what is done to the jobs; see ``settlement.states``

    def state(self, job_id: str) -> bytes | None:
        """The last state that was written for this job, cut at ``MAX_STATE``; ``None`` if none is kept."""

    def prune_states(self) -> int:
        """Remove states whose time is over, where the store does not do so by itself; returns how many."""


# How far each schedule's times are settled; ``Values.fire`` settles one, and any number of stewards may call it.
#
# Times are whole Unix seconds. Each is settled once, also if the request is delayed, comes from several stewards, or a
# clock was set back.

#: most bytes of a mark, which has below 255; and of all marks with their names
MAX_MARK, MAX_OF_ALL = 1024, 16 * 1024 * 1024


class Mark(NamedTuple):
    """What the store knows of one schedule: all due times up to ``settled`` are."""

    settled: int
    #: a digest of the rule by which it was last seen
    rule: str
    #: the last time that a job was pushed for
    pushed: int | None = None

    @classmethod
    def from_text(cls, text: str | bytes) -> Mark | None:
        """From the JSON that the store holds; ``None`` for a damaged text, which counts as no mark (``mark.lua``)."""
        if len(text) > MAX_MARK:
            return None
        try:
            found = json.loads(text)
            settled, rule, pushed = found["settled"], found["rule"], found.get("pushed")
        except (ValueError, RecursionError, TypeError, LookupError, AttributeError):
            return None
        if not (_is_second(settled) and isinstance(rule, str)):
            return None
        return cls(int(settled), rule, int(pushed) if _is_second(pushed) else None)

    def to_text(self) -> str:
        """As JSON, below 255 characters."""
        return json.dumps({name: value for name, value in self._asdict().items() if value is not None})

    def seen(self, rule: str, now: int) -> Mark:
        """The mark once the schedule is seen with this rule: a new one counts from now on."""
        return self if rule == self.rule else self._replace(settled=max(self.settled, now), rule=rule)


def _is_second(value: object) -> bool:
    """Whether it is a whole Unix second."""
    return isinstance(value, int | float) and 0 <= value < NO_SECOND and value == int(value)


def sound_marks(texts: Iterable[tuple[str, bytes]]) -> dict[str, Mark]:
    """The marks by name, without those that are damaged."""
    marks = ((name, Mark.from_text(text)) for name, text in texts)
    return {name: mark for name, mark in marks if mark}


class Due(NamedTuple):
    """One due time of a schedule, and the job to push for it; an empty payload only settles the time."""

    name: str
    at: int
    queue: str = ""
    payload: bytes = b""
    #: to be taken with the push: while another job holds it, none is pushed
    lock: Lock | None = None


class Result(StrEnum):
    """What ``fire`` has done."""

    PUSHED = "pushed"
    #: the lock is held
    HELD = "held"
    #: settled without a push, as asked
    PASSED = "passed"
    #: nothing: it was settled before
    SETTLED = "settled"
    #: nothing: the store has no room for the job
    FULL = "full"


class Fired(NamedTuple):
    """The result, and the mark as it was before."""

    result: Result
    before: Mark
