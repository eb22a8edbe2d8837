"""The flow of the running job: what it takes from others, and what it adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from queuepool.errors import BadArguments
from queuepool.payload.members import MemberOf, NewMember, child_of

if TYPE_CHECKING:
    from queuepool.jobs.calls import Call

#: most members that one job adds
MOST_CHILDREN = 1000
#: most bytes of their payloads, which go to the store in one step with the job's end
_MOST_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class CurrentFlow:
    """The running job as a member of its flow."""

    member: MemberOf
    #: makes a member of a call
    encode: Callable[[Call[Any], MemberOf], NewMember]
    #: the results that it takes, by argument, as JSON holds them
    taken: Mapping[str, Any] = field(default_factory=dict)
    #: what those that it follows have returned, in the order in which they were added, as JSON holds it; ``None`` for
    #: one that has returned nothing. Empty unless the flow was made with ``keep_results``
    results: Sequence[Any] = ()
    #: why it is not to begin; empty if it is
    left_out: str = ""
    #: what it cannot begin without
    lacks: str = ""
    #: what it has added, written with its end
    children: list[NewMember] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The id of the flow."""
        return self.member.flow

    def add(self, call: Call[Any]) -> None:
        """Add a call to the flow, written when this job is done, so that a retry adds nothing twice.

        What follows this job waits for it as well. Raises ``ValueError`` for a call that takes results, and above 1,000
        calls or 8 MiB of payloads, ``NotSendable`` for an argument that JSON cannot hold, and ``StoreError``.
        """
        if len(self.children) >= MOST_CHILDREN:
            raise ValueError(f"a job adds at most {MOST_CHILDREN} calls to its flow")
        number = child_of(self.member.number, len(self.children))
        child = self.encode(call, self.member._replace(number=number, rule="s", is_taken=False))
        if sum(len(one.payload) for one in (*self.children, child)) > _MOST_BYTES:
            raise ValueError(f"a job adds calls of at most {_MOST_BYTES >> 20} MiB to its flow")
        self.children.append(child)

    @property
    def is_plain(self) -> bool:
        """Whether its end says all: it returns nothing that is taken, adds nothing, and was not left out."""
        return not (self.member.is_taken or self.children or self.left_out)

    def check(self, name: str) -> None:
        """Raise ``BadArguments`` if it cannot begin."""
        if self.lacks:
            raise BadArguments(name, self.lacks)
