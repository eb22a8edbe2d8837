"""The contract of values: named texts that expire, beside the jobs or in Laravel's cache, and schedules' marks.

``control`` interprets the control keys and notices. All verbs but ``stamp`` and ``note`` may be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any, NamedTuple, Protocol

from queuepool.payload.lease import Lock
from queuepool.stores.contract import NO_SECOND
from queuepool.stores.locks import Locks

#: most bytes, or characters, read of a value: enough to know whether it is set, or has changed
MAX_VALUE = 4096
#: most bytes read of a notice (a pool of a thousand workers has half of that), and of all notices
MAX_NOTICE, MAX_OF_NOTICES = 1024 * 1024, 16 * 1024 * 1024
#: most bytes read of a text of the history, and most texts of one bucket
MAX_KEPT, MOST_KEPT = 65536, 1000
#: most bytes read of a state: the largest of ours, with its result as text in JSON, has a third of that
MAX_STATE = 1024 * 1024
#: most bytes read of a text in a book
MAX_NOTE = 64 * 1024
#: most bytes of the texts that are taken out of a book at once; the earlier ones are lost
MAX_TAKEN = 1024 * 1024


class AlertClaim(Enum):
    """Who holds an alert's key after an attempt to take it."""

    #: we do, from now on
    TAKEN = "taken"
    #: we did before, and still do
    OURS = "ours"
    OTHERS = "others"


class Kept(NamedTuple):
    """One text of the history; ``bucket`` is the Unix second at which its bucket begins."""

    bucket: int
    writer: str
    text: bytes


class History(NamedTuple):
    """The texts read of the history, and how many were ignored, being too large or too many."""

    texts: list[Kept]
    ignored: int


class Values(Locks, Protocol):
    """The values in one store, Laravel's unique locks among them. Raises ``StoreDown`` and ``StoreError``."""

    # Laravel's cache, and our control keys in it

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        """The values in PHP's serialization (plain numbers in Redis), cut at ``MAX_VALUE``; ``None`` if missing."""

    def put(self, name: str, value: bytes) -> None:
        """Store a value until it is removed."""

    def remove(self, name: str) -> bool:
        """Remove a value; ``False`` when there was none."""

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        """Count a use in the current window of ``seconds``, in one step with Laravel's rate limiters.

        Seconds until the window ends if it has ``most`` uses; then nothing is counted. ``seconds`` 0 counts nothing.
        """

    def stamp(self, name: str) -> int:
        """Set the value to the store's Unix second, or one more than its old value if that is later; returns it."""

    def wake_stewards(self) -> None:
        """Have stewards look at the control keys now, where the store can tell them: a hint, of which none may come."""

    # Notices, by which pools know of one another

    def publish(self, pool: str, notice: Mapping[str, Any]) -> None:
        """Keep a pool's notice for ``NOTICE_KEPT`` seconds, with the store's current Unix second as ``at``."""

    def withdraw(self, pool: str) -> None:
        """Remove a pool's notice."""

    def notices(self, within: float) -> list[dict[str, Any]]:
        """The notices published ``within`` these seconds, as of now at the latest, by the store's clock.

        Expired and unreadable ones are removed.
        """

    # Alerts: of several pools, the one that holds an alert's key sends its notices

    def claim_alert(self, alert: str, owner: str, seconds: float) -> AlertClaim:
        """Take the key for ``seconds``, unless another owner holds it."""

    def release_alert(self, alert: str, owner: str) -> bool:
        """Remove the key if this owner holds it; ``False`` if not, or if it has expired."""

    # The history of pools: texts in buckets of time, one for each writer

    def keep_history(self, grain: str, bucket: int, writer: str, text: str, lifetime: float) -> None:
        """Keep this writer's text of a bucket, replacing its earlier one, for about ``lifetime`` seconds from now.

        ``grain`` names a length of buckets.
        """

    def sweep_history(self) -> None:
        """Remove what has expired, where the store does not do so by itself."""

    def history(self, grain: str, buckets: range) -> History:
        """The texts of these buckets, as far as they have not expired."""

    # Books: texts in the order in which they came, from operators to pools and back

    def note(self, book: str, text: str, most: int, lifetime: float) -> None:
        """Add a text to this book, which keeps its last ``most``, each for ``lifetime`` seconds at least.

        If this is repeated, the text is there twice. A book's name has only lower-case letters, digits and colons.
        """

    def notes(self, book: str, count: int) -> list[bytes]:
        """The last ``count`` texts, the latest last, without those of more than ``MAX_NOTE`` bytes."""

    def take_notes(self, book: str, count: int) -> list[bytes]:
        """Remove all texts, and return them as ``notes``, no more than ``MAX_TAKEN`` bytes; of several callers, one
        gets each."""

    def drop_note(self, book: str, text: str) -> bool:
        """Remove this text; ``False`` when it is not there."""

    # Schedules' marks; any number of stewards may settle one

    def begin(self, rules: Mapping[str, str], now: int) -> dict[str, Mark]:
        """The marks of these schedules (rules by name); a new schedule, or a new rule, gets ``now``."""

    def fire(self, due: Due) -> Fired | None:
        """Settle this due time and push its job, both or neither; ``None`` if the schedule has no mark.

        Takes the lock if there is one; if it is held, the time is settled too, without a push.
        """

    def marks(self) -> dict[str, Mark]:
        """All marks, including those of former schedules."""

    def forget(self, name: str) -> bool:
        """Drop the mark: the schedule starts afresh when seen again; ``False`` when there was none."""

    # The states of tracked jobs; jobs' verbs write them (see ``settlement.states``)

    def state(self, job_id: str) -> bytes | None:
        """The last state written for this job, cut at ``MAX_STATE``; ``None`` if none is kept."""

    def tracked(self, job_ids: Sequence[str]) -> set[str]:
        """Which of these jobs have a state that is kept."""

    def prune_states(self) -> int:
        """Remove expired states and texts of books, where the store does not do so by itself; returns how many."""


# How far each schedule's times are settled; ``Values.fire`` settles one, and any number of stewards may call it.
#
# Times are whole Unix seconds. Each is settled once, even if the request is delayed, comes from several stewards, or a
# clock is set back.

#: most bytes read of a mark (ours have fewer than 255), and of all marks with their names
MAX_MARK, MAX_OF_ALL = 1024, 16 * 1024 * 1024


class Mark(NamedTuple):
    """What the store knows of one schedule: its due times up to ``settled`` are settled."""

    settled: int
    #: a digest of its rule when it was last seen
    rule: str
    #: the last due time for which a job was pushed
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
        """As JSON, in fewer than 255 characters."""
        return json.dumps({name: value for name, value in self._asdict().items() if value is not None})

    def seen(self, rule: str, now: int) -> Mark:
        """The mark after the schedule was seen with this rule: a new rule counts from now on."""
        return self if rule == self.rule else self._replace(settled=max(self.settled, now), rule=rule)


def _is_second(value: object) -> bool:
    """Whether it is a whole Unix second."""
    return isinstance(value, int | float) and 0 <= value < NO_SECOND and value == int(value)


def sound_marks(texts: Iterable[tuple[str, bytes]]) -> dict[str, Mark]:
    """The marks by name, without damaged ones."""
    marks = ((name, Mark.from_text(text)) for name, text in texts)
    return {name: mark for name, mark in marks if mark}


class Due(NamedTuple):
    """One due time of a schedule, and the job to push for it; an empty payload only settles the time."""

    name: str
    at: int
    queue: str = ""
    payload: bytes = b""
    #: taken with the push: while another job holds it, nothing is pushed
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
