"""Calls of jobs that are not dispatched yet, and the members of flows that they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from queuepool.jobs.arguments import check_values
from queuepool.jobs.job_options import Options
from queuepool.jobs.sending import Sending
from queuepool.payload.members import MOST_ARGS, MOST_TAKEN

T = TypeVar("T")
#: after what a member starts: when all that it follows are done, have ended with a failure among them, or have ended
On = Literal["success", "failure", "any"]
_APART = "{}: give results(...) to an argument by its name: positional-only ones and *args cannot take results"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Generic[T]):
    """A call of a job, for a flow. ``T`` is what the job returns."""

    name: str
    data: object
    options: Options
    sending: Sending
    #: by argument, the results of other members that it takes
    takes: Mapping[str, Taken]
    #: if Laravel's workers run it
    php: PhpJob | None = None

    def __repr__(self) -> str:
        return f"<call of {self.name}>"


class PhpJob(NamedTuple):
    """A job in PHP: its data as Laravel writes it, and the options of its payload."""

    command: Mapping[str, object]
    options: Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Member(Generic[T]):
    """A call that was added to a flow; ``result`` and ``results`` hand on what its job returns."""

    #: a ``Flow``
    flow: object
    call: Call[T]
    after: tuple[Member[Any], ...]
    on: On


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Stands for results where a call is written: of one member, or of several as a list."""

    members: tuple[Member[Any], ...]
    is_list: bool


def result(member: Member[T]) -> T:
    """What the member's job returns, as an argument of a call that follows it. Raises ``TypeError`` for anything else.

    It is read as any argument: through JSON, by the annotation of the parameter.
    """
    return cast(T, Taken((_member(member),), is_list=False))


def results(members: Iterable[Member[T]]) -> list[T]:
    """What the jobs of these members return, in their order, as one argument of a call that follows them all.

    Raises ``TypeError`` for anything else, and ``ValueError`` for more than 10,000.
    """
    taken = tuple(_member(one) for one in several(members))
    if len(taken) > MOST_TAKEN:
        raise ValueError(
            f"results takes at most {MOST_TAKEN} members, not {len(taken)}: let jobs in between merge them"
        )
    return cast(list[T], Taken(taken, is_list=True))


def several(members: Iterable[Member[T]]) -> Iterable[Member[T]]:
    """These members; raises ``TypeError`` for what cannot be several."""
    if not isinstance(members, Iterable):
        raise TypeError(f"{members!r} is not a list of members: give what flow.add(...) has returned")
    return members


def _member(one: Member[T]) -> Member[T]:
    if not isinstance(one, Member):
        raise TypeError(f"{one!r} is not a member of a flow: give what flow.add(...) has returned")
    return one


def has_taken(value: object, depth: int = 5) -> bool:
    """Whether results are taken anywhere in this value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return isinstance(value, Taken) or (depth > 0 and any(has_taken(one, depth - 1) for one in inner))


def call_of(name: str, data: object, options: Options, sending: Sending) -> Call[Any]:
    """The call with this data of a payload, from which the results that it takes are removed.

    Raises ``TypeError`` for arguments that a worker could not read, ``ValueError`` for a job that cannot be in a flow.
    """
    if options.unique is not None:
        raise ValueError(f"{name} is unique: a flow would wait for a member that was not pushed; dispatch it by itself")
    if sending.within is not None or sending.after_commit is not None:
        raise ValueError(
            f"{name}: give within and after_commit to the dispatch of the flow, which is written as a whole"
        )
    takes: dict[str, Taken] = {}
    if isinstance(data, Mapping):
        takes = {key: value for key, value in data.items() if isinstance(value, Taken)}
        data = {key: value for key, value in data.items() if key not in takes}
    elif isinstance(data, Sequence) and any(isinstance(value, Taken) for value in data):
        raise TypeError(_APART.format(name))
    if len(takes) > MOST_ARGS:
        raise ValueError(f"{name}: at most {MOST_ARGS} arguments take results, not {len(takes)}")
    if has_taken(data):
        raise TypeError(
            f"{name}: give result(...) and results(...) as arguments of their own, not within another value"
        )
    check_values(name, data)
    return Call(name, data, options, sending, takes)
