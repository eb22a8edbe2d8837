"""The contract of flows: jobs that start when others have ended. What ends a member is in ``stores.contract``.

A member is pushed in the step that ends the last of those that it follows, so by one worker and once, whatever dies. No
process watches a flow: it ends in the step that ends its last running member. Only what ends by time, and what was left
over when its process died, is done by ``look``, which stewards call.

Letters of members: ``w`` waits, ``r`` is in a queue or runs, ``d`` done, ``f`` failed, ``c`` cancelled, ``k`` skipped,
as its rule did not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from queuepool.payload.members import NewFlow, NewMember

#: seconds for which a flow is kept that was never started, and one that has failed
UNSTARTED_LASTS, FAILED_LASTS = 3600.0, 30 * 86400.0
#: seconds after its deadline at which a flow ends even if members of it seem to run: their queues were cleared
LOST_AFTER = 86400.0
#: states of flows that are over
ENDED = frozenset(("done", "failed", "cancelled", "expired"))
#: all states, as they come after each other
STATES = ("building", "running", "failing", "done", "failed", "cancelled", "expired")


class FlowEnd(NamedTuple):
    """A flow that has just ended, and as what: ``done``, ``failed``, ``cancelled`` or ``expired``."""

    id: str
    name: str
    state: str


class FlowCounts(NamedTuple):
    """How many members there are by letter."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0

    @classmethod
    def of(cls, letters: Sequence[tuple[str, int]]) -> FlowCounts:
        """From the number for each letter."""
        found = dict(letters)
        return cls(*(found.get(letter, 0) for letter in "wrdfck"))


class FlowPlace(NamedTuple):
    """Where a flow is in the list of all, which has the latest first."""

    created: float
    id: str


class FlowFilter(NamedTuple):
    """The flows that are meant; what is empty is true of all. A name that ends in ``*`` may go on."""

    state: str = ""
    name: str = ""

    def fits(self, state: str, name: str) -> bool:
        """Whether a flow of this state and name is meant."""
        is_named = name.startswith(self.name[:-1]) if self.name.endswith("*") else self.name in ("", name)
        return is_named and self.state in ("", state)


ANY_FLOW = FlowFilter()


class FlowRecord(NamedTuple):
    """A flow as it was when read; times in Unix seconds by the store's clock.

    ``state``: ``building`` (not yet started), ``running``, ``failing`` (a member has failed, so the rest does not
    start), ``cancelled``, ``expired``, ``done`` or ``failed``; it is over once it has ``ended``.
    """

    id: str
    name: str
    state: str
    counts: FlowCounts
    created: float
    deadline: float
    ended: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether none of its members runs, or will without a retry."""
        return self.ended is not None

    @property
    def place(self) -> FlowPlace:
        """Where it is in the list of all flows."""
        return FlowPlace(self.created, self.id)


class FlowPace(NamedTuple):
    """How far a flow is that has begun and not ended, as far as a store knows it without reading its members."""

    id: str
    name: str
    created: float
    #: members that have not begun, those that are in queues or run, and all
    waiting: int
    running: int
    total: int

    @property
    def progress(self) -> tuple[int, int, int]:
        """What changes with each member that begins or ends."""
        return self.waiting, self.running, self.total


class FlowStanding(NamedTuple):
    """How a flow stands: its ``state`` as in ``FlowRecord``, and whether it has ended."""

    state: str
    is_over: bool


class MemberRecord(NamedTuple):
    """A member as it was when read. ``edges`` as in ``NewMember``; ``name`` of its job, empty if it is not known."""

    number: str
    letter: str
    edges: tuple[str, ...]
    name: str


class Flows(Protocol):
    """The flows in one store of jobs."""

    #: the flow that the last call of ``finish``, ``fail`` or ``cancel`` of the queue, or of ``cancel`` here, has ended
    last_end: FlowEnd | None
    #: why the server has refused to start what follows, in the same calls and in ``after``; a steward tries again
    refused: str

    def write(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """Write the flow in pieces, and start it. It never begins unless all of it is there.

        Raises ``StoreError``; after ``StoreDown`` it may have begun.
        """

    def find(self, flow_id: str) -> FlowRecord | None:
        """The flow; ``None`` if there is none, or no longer."""

    def standing(self, flow_id: str) -> FlowStanding | None:
        """How it stands, which costs the same however many members it has; ``None`` as for ``find``."""

    def page(
        self, after: FlowPlace | None = None, count: int = 100, wanted: FlowFilter = ANY_FLOW
    ) -> Iterator[FlowRecord]:
        """At most ``count`` of those that are ``wanted``, the latest first, behind this place.

        The members of each are counted when it is asked for: there may be many.
        """

    def under_way(self, count: int = 10_000) -> list[FlowPace]:
        """Those that have begun and not ended, at most so many. For stewards, which ask again and again."""

    def members(self, flow_id: str) -> list[MemberRecord]:
        """Its members, in the order of their numbers."""

    def results(self, flow_id: str, numbers: Sequence[str]) -> list[bytes | None]:
        """The results of these members as JSON; ``None`` for each that has none."""

    def stopped(self) -> frozenset[str]:
        """The ids of flows of which nothing more of the rule ``s`` is to begin: failing, cancelled, expired."""

    def cancel(self, flow_id: str) -> bool:
        """Start no more of it but what follows failures or ends; ``False`` if it is over. Raises ``NoSuchFlow``."""

    def resume(self, flow_id: str, number: str) -> None:
        """Let the flow go on, as this member has failed and runs again; not if it was cancelled or has expired."""

    def after(self, found: Sequence[FlowEnd]) -> list[FlowEnd]:
        """Go on with flows as a reserve has left them (``Reservation.flows``); returns those that have ended."""

    def look(self) -> list[FlowEnd]:
        """Do what is due by time, and go on with what was left over; returns the flows that this has ended.

        Raises ``StoreError`` for a flow that is refused, behind all others, and not if any has ended.
        """


def in_order(numbers: Sequence[str]) -> list[str]:
    """Members' numbers as people count, children behind their parent."""
    return sorted(numbers, key=numbered)


def numbered(number: str) -> tuple[int, ...]:
    """By what they are in this order."""
    return tuple(map(int, number.split(".")))
