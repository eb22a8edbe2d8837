"""How far each schedule's times are settled; ``Values.fire`` settles one, and any number of stewards may call it.

Times are whole Unix seconds. Each is settled once, also if the request is delayed, comes from several stewards, or a
clock was set back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from queuepool.payload.ending import Lock
from queuepool.stores.contract import NO_SECOND

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
