"""The contract of values: named texts that end, beside the jobs or in a cache of Laravel's.

What the values say is written and read elsewhere: ``control`` (control keys and notices), ``locks``, ``schedules``. All
verbs but ``stamp`` may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from queuepool.stores.locks import Locks
from queuepool.stores.schedules import Due, Fired, Mark

#: most bytes, or characters, that are read of a value: no more is needed to know whether it is set, or another one
MAX_VALUE = 4096
#: most bytes of a notice that is read: a pool of a thousand workers has half of that; and of all notices
MAX_NOTICE, MAX_OF_NOTICES = 1024 * 1024, 16 * 1024 * 1024
#: most bytes of a text of the history, and most texts of one of its buckets, that are read
MAX_KEPT, MOST_KEPT = 65536, 1000
#: most bytes that are read of a state: the largest of ours, its result as text in JSON, has a third of that
MAX_STATE = 1024 * 1024


class Claim(Enum):
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

    def claim_alert(self, alert: str, owner: str, seconds: float) -> Claim:
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
