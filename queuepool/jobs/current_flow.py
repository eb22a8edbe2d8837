"""The flow of the running job: what it takes from others, and what it adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from queuepool.errors import BadArguments
from queuepool.payload.members import FLOW, MemberOf, NewMember

if TYPE_CHECKING:
    from queuepool.jobs.calls import Call

#: most members that one job adds
MOST_CHILDREN = 1000


@dataclass(slots=True)
class CurrentFlow:
    """The running job as a member of its flow."""

    member: MemberOf
    #: the results that it takes, by argument, as JSON holds them
    taken: Mapping[str, Any] = field(default_factory=dict)
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
        calls, ``NotSendable`` for an argument that JSON cannot hold, and ``StoreError``.
        """
        from queuepool.jobs.connecting import default_queue  # imported here: slow, and few jobs push
        from queuepool.jobs.flows import as_call

        known = as_call(call)
        if known.takes:
            raise ValueError(f"{known.name}: a call that is added by a running job takes no results of others")
        if len(self.children) >= MOST_CHILDREN:
            raise ValueError(f"{known.name}: a job adds at most {MOST_CHILDREN} calls to its flow")
        number = f"{self.member.number}.{len(self.children)}"
        extra = {FLOW: self.member._replace(number=number, rule="s", is_taken=False).text}
        terms, payload = default_queue().pusher.encoded(known, extra)
        self.children.append(NewMember(number, "s", terms.queue, terms.delay, payload))

    def check(self, name: str) -> None:
        """Raise ``BadArguments`` if it cannot begin."""
        if self.lacks:
            raise BadArguments(name, self.lacks)
