"""``chain`` and ``group``: flows in one expression; and how they become parts of another flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from queuepool.jobs.calls import Call, Member, result, results
from queuepool.jobs.flows import Flow
from queuepool.jobs.job_class import Job

if TYPE_CHECKING:
    from queuepool.jobs.following_flows import FlowId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Chain:
    """Calls, each of which starts when the one before it is done. Made by ``chain``."""

    parts: Sequence[Any]

    def dispatch(self, *, within: Any = None, after_commit: Any = None) -> FlowId:
        """Write it as a flow, and start it. Raises as ``Flow.dispatch`` does."""
        return flow_of(self).dispatch(within=within, after_commit=after_commit)

    async def adispatch(self, *, within: Any = None, after_commit: Any = None) -> FlowId:
        """``dispatch``, awaited."""
        return await flow_of(self).adispatch(within=within, after_commit=after_commit)


@dataclass(frozen=True, slots=True)
class Group(Generic[T]):
    """Calls side by side, and one that starts when all are done. Made by ``group``."""

    calls: Sequence[Any]
    then: Any = None

    def dispatch(self, *, within: Any = None, after_commit: Any = None) -> FlowId:
        """Write it as a flow, and start it. Raises as ``Flow.dispatch`` does."""
        return flow_of(self).dispatch(within=within, after_commit=after_commit)

    async def adispatch(self, *, within: Any = None, after_commit: Any = None) -> FlowId:
        """``dispatch``, awaited."""
        return await flow_of(self).adispatch(within=within, after_commit=after_commit)


def chain(*parts: Call[Any] | Job | Chain | Group[Any] | Callable[[Any], Call[Any]]) -> Chain:
    """Calls one after the other. A part may be a chain or a group itself, and a function of what the one before it
    returns, such as ``parse.call``. Raises ``ValueError`` without any, and if a function comes first.
    """
    if not parts:
        raise ValueError("a chain needs at least one call")
    if _is_function(parts[0]):
        raise ValueError("the first part of a chain takes no result: write the_job.call(...)")
    return Chain(parts)


def group(
    calls: Iterable[Call[T] | Job | Chain | Group[T]],
    then: Call[Any] | Job | Chain | Callable[[list[T]], Call[Any]] | None = None,
) -> Group[T]:
    """Calls side by side, and ``then`` the one that starts when all are done: a call, or a function of the list of what
    they return. Without any, ``then`` starts at once.
    """
    return Group(list(calls), then)


def flow_of(part: Chain | Group[Any], **about: Any) -> Flow:
    """The part as a flow, made with these arguments of ``Flow``. Raises ``ValueError`` if it is empty."""
    flow = Flow(**about)
    extend(flow, part)
    return flow


def extend(flow: Flow, part: Any, after: Sequence[Member[Any]] = ()) -> list[Member[Any]]:
    """Add the part to the flow; returns the members with which it ends."""
    if isinstance(part, Chain):
        for one in part.parts:
            after = extend(flow, _called(one, after), after)
        return list(after)
    if isinstance(part, Group):
        ends = [end for one in part.calls for end in extend(flow, one, after)]
        if part.then is None:
            return ends or list(after)
        then = part.then(results(ends)) if _is_function(part.then) else part.then
        return extend(flow, then, ends or after)
    return [flow.add(part, after=after)]


def _called(part: Any, before: Sequence[Member[Any]]) -> Any:
    if not _is_function(part):
        return part
    return part(result(before[0]) if len(before) == 1 else results(before))


def _is_function(part: object) -> bool:
    return callable(part) and not isinstance(part, (Call, Job, Chain, Group))
