"""Following flows by their ids, as a dispatch returns them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from queuepool.errors import NoSuchFlow
from queuepool.jobs.following import Wait
from queuepool.stores.flows import FlowCounts, FlowRecord, FlowStanding

if TYPE_CHECKING:
    from queuepool.stores.factory import Stores


class FollowsFlows(Protocol):
    """The part of a ``Queue`` that follows flows."""

    def flow(self, flow_id: str) -> FlowState | None: ...

    def wait_flow(self, flow_id: str, timeout: float | None = None) -> FlowState: ...

    async def await_flow(self, flow_id: str, timeout: float | None = None) -> FlowState: ...


class FlowId(str):
    """A flow's id, which also knows its queue, so that the flow can be followed."""

    __slots__ = ("_queue",)
    _queue: FollowsFlows

    def __new__(cls, text: str, queue: FollowsFlows) -> FlowId:
        made = super().__new__(cls, text)
        made._queue = queue
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """A copy, or a pickle for another process, is a plain string."""
        return str, (str(self),)

    def flow(self) -> FlowState | None:
        """As ``Queue.flow``."""
        return self._queue.flow(self)

    def wait(self, timeout: float | None = None) -> FlowState:
        """As ``Queue.wait_flow``."""
        return self._queue.wait_flow(self, timeout)

    async def await_flow(self, timeout: float | None = None) -> FlowState:
        """As ``Queue.await_flow``."""
        return await self._queue.await_flow(self, timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowState:
    """What was known of a flow when it was asked for.

    ``state`` is ``running``, ``failing`` (a member has failed, so the rest does not start, but others still run),
    ``done``, ``failed``, ``cancelled`` or ``expired``; the last two also while members of it still run. ``building``:
    it was not written to its end.
    """

    id: str
    name: str
    state: str
    #: how many members are in each state
    counts: FlowCounts
    created: datetime
    #: when its last member ended; ``None`` = some run, or will
    ended: datetime | None

    @property
    def is_over(self) -> bool:
        """Whether none of its members runs, or will unless it is resumed."""
        return self.ended is not None

    @property
    def total(self) -> int:
        """How many members it has."""
        return sum(self.counts)

    @property
    def progress(self) -> str:
        """In words, like ``37 of 40 done, 1 failed``."""
        counts = self.counts
        more = [(counts.failed, "failed"), (counts.cancelled, "cancelled"), (counts.skipped, "skipped")]
        return ", ".join([f"{counts.done} of {self.total} done", *(f"{count} {word}" for count, word in more if count)])


#: what a look of who waits has found
Seen = FlowState | FlowStanding


def found_flow(stores: Stores, flow_id: str) -> FlowState | None:
    """What is known of the flow; ``None`` if it is not kept."""
    record = stores.flows.find(flow_id) if flow_id else None
    return record and state_of(record)


def state_of(record: FlowRecord) -> FlowState:
    """The record as its users see it."""
    created, ended = (None if at is None else datetime.fromtimestamp(at, UTC) for at in (record.created, record.ended))
    assert created
    return FlowState(
        id=record.id, name=record.name, state=record.state, counts=record.counts, created=created, ended=ended
    )  # fmt: skip


def seen_flow(stores: Stores, flow_id: str) -> Seen | None:
    """A look of who waits for its end: only a flow that is over is read with its members."""
    standing = stores.flows.standing(flow_id) if flow_id else None
    return found_flow(stores, flow_id) if standing and standing.is_over else standing


def ended_flow(look: Callable[[], Seen | None], flow_id: str, timeout: float | None) -> FlowState:
    """What is known of the flow once it is over. Raises as ``Queue.wait_flow`` does."""
    return _whole(_wait(flow_id, timeout).until_over(look))


async def aended_flow(look: Callable[[], Awaitable[Seen | None]], flow_id: str, timeout: float | None) -> FlowState:
    """``ended_flow``, awaited."""
    return _whole(await _wait(flow_id, timeout).auntil_over(look))


def _wait(flow_id: str, timeout: float | None) -> Wait[Seen]:
    return Wait(f"flow {flow_id}", NoSuchFlow(flow_id), timeout)


def _whole(seen: Seen) -> FlowState:
    assert isinstance(seen, FlowState)
    return seen
