"""``Flow``: jobs that start when others have ended, written to the store as a whole."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from queuepool.jobs.calls import Call, Member, On, Taken, several
from queuepool.jobs.dispatch import bound
from queuepool.jobs.door import Terms, terms_of
from queuepool.jobs.job_class import Job
from queuepool.jobs.job_options import Delay, seconds_until
from queuepool.jobs.php import command_of
from queuepool.jobs.sending import Sending
from queuepool.payload.envelope import PUSHED_AT
from queuepool.payload.members import (
    ALL,
    ARGS,
    FLOW,
    MOST_MEMBERS,
    MemberOf,
    NewFlow,
    NewMember,
    Rule,
    names_as_text,
    numbers_as_text,
    stripes_of,
)

if TYPE_CHECKING:
    from queuepool.jobs.client import Queue
    from queuepool.jobs.following_flows import FlowId

T = TypeVar("T")
_RULES: dict[str, Rule] = {"success": "s", "failure": "f", "any": "a"}
_MONTH, _DAY = 30 * 86400.0, 86400.0
#: most characters of a name
_MOST_NAME = 100
#: most times that a member follows another
_MOST_EDGES = 1_000_000
_DISPATCHED = "this flow is dispatched already: a running job adds to its flow by current().flow.add(...)"
#: when a job that follows others is pushed is not known: its wait must not be counted from the dispatch of its flow
_NO_TIMES: dict[str, object] = {"createdAt": None, PUSHED_AT: None}
_Several = Iterable[Member[Any]]


class Flow:
    """Jobs that start when others have ended. Nothing is written before ``dispatch``; threads do not share one.

    As a context manager it is dispatched at the end of the block, unless that raises.
    """

    def __init__(
        self,
        name: str = "",
        *,
        stop: Literal["rest", "nothing"] = "rest",
        on_failure: Call[Any] | Job | None = None,
        deadline: Delay = _MONTH,
        keep: Delay = _DAY,
        keep_results: bool = False,
    ) -> None:
        """``name``: for people. ``stop``: what a failed member keeps from starting: all the rest, or nothing but what
        follows it. ``on_failure``: pushed if the flow fails. ``deadline``: from its start until it starts no more.
        ``keep``: how long it is known after it is done; one that has failed is for at least 30 days, so that it can be
        resumed. ``keep_results``: also those that no member takes, for ``current().flow.results``. Raises
        ``ValueError``.
        """
        if stop not in ("rest", "nothing"):
            raise ValueError(f"stop cannot be {stop!r}: it is 'rest' or 'nothing'")
        if not isinstance(name, str) or len(name) > _MOST_NAME or not (name.isprintable() or not name):
            raise ValueError(f"{name!r} is not the name of a flow: give at most {_MOST_NAME} printable characters")
        self.name = name
        #: set by ``dispatch``
        self.id: FlowId | None = None
        self._stops = stop == "rest"
        self._on_failure = None if on_failure is None else as_call(on_failure)
        self._deadline, self._keep = seconds_until(deadline), seconds_until(keep)
        self._keeps_results = keep_results
        self._members: list[Member[Any]] = []
        self._edges = 0
        if self._on_failure and self._on_failure.takes:
            raise ValueError("on_failure takes no results: it is not a member of the flow")

    def add(self, call: Call[T], *, after: Member[Any] | _Several | None = None, on: On = "success") -> Member[T]:
        """Add a call, which starts when all members ``after`` which it comes, and all whose results it takes, are done.

        ``on="failure"``: when they have all ended and one of them has failed or was cancelled; ``"any"``: when they
        have all ended. Raises ``ValueError`` for members of another flow, and for a rule without ``after``.
        """
        known = as_call(call)
        if self.id is not None:
            raise ValueError(_DISPATCHED)
        if not isinstance(on, str) or on not in _RULES:
            raise ValueError(f"on cannot be {on!r}: it is 'success', 'failure' or 'any'")
        taken = [one for taken in known.takes.values() for one in taken.members]
        follows = tuple(dict.fromkeys([*_members_in(after), *taken]))
        self._check(known, follows, on)
        member: Member[T] = Member(self, known, follows, on)
        self._members.append(member)
        self._edges += len(follows)
        return member

    def _check(self, call: Call[Any], follows: tuple[Member[Any], ...], on: On) -> None:
        if len(self._members) >= MOST_MEMBERS:
            raise ValueError(f"{call.name}: a flow has at most {MOST_MEMBERS} members")
        if self._edges + len(follows) > _MOST_EDGES:
            few = "let one job come between many that are followed by many"
            raise ValueError(f"{call.name}: members of a flow follow others at most {_MOST_EDGES} times in all: {few}")
        if any(one.flow is not self for one in follows):
            raise ValueError(f"{call.name} is to follow a member of another flow: add that member to this one")
        if on != "success" and not follows:
            raise ValueError(f"{call.name}: on={on!r} needs after=...")
        if on != "success" and call.takes:
            raise ValueError(f"{call.name} takes results, which may be missing unless on='success'")
        if follows and (call.options.expires or isinstance(call.sending.delay, datetime)):
            what = "expires" if call.options.expires else f"delay={call.sending.delay}"
            raise ValueError(
                f"{call.name}: {what} counts from the dispatch, and a member begins after others: leave it out"
            )
        for one in (one for taken in call.takes.values() for one in taken.members):
            if one.call.options.encrypted:
                raise ValueError(f"{call.name}: the result of {one.call.name} cannot be taken: that job is encrypted")

    def dispatch(self, *, within: Any = None, after_commit: Any = None) -> FlowId:
        """Write the flow, and start it; returns its id. ``within`` and ``after_commit`` as for ``using``.

        Raises ``ValueError`` for an empty flow and for one that is dispatched already, ``NotSendable`` for an argument
        that JSON cannot hold, before anything is written, and ``StoreError``. If this process dies meanwhile, the flow
        either starts as a whole or not at all.
        """
        from queuepool.jobs.connecting import default_queue  # imported here: slow, and a worker may never push

        return self._write(bound(default_queue(), _sending(within, after_commit)))

    async def adispatch(self, *, within: Any = None, after_commit: Any = None) -> FlowId:
        """``dispatch``, awaited: the event loop goes on while the flow is stored. See ``Queue.apush``."""
        from queuepool.jobs.dispatch import default_queue_aside

        queue = bound(await default_queue_aside(), _sending(within, after_commit))
        found: FlowId = await queue.aside(lambda: self._write(queue))
        return found

    def push_to(self, queue: Queue) -> FlowId:
        """As ``dispatch``, to this queue."""
        return self._write(queue)

    def _write(self, queue: Queue) -> FlowId:
        from queuepool.jobs.following_flows import FlowId

        if self.id is not None:
            raise ValueError(_DISPATCHED)
        if not self._members:
            raise ValueError(f"the flow {self.name!r} is empty: add a call before you dispatch it")
        flow_id = _new_id()
        members = _Numbered(flow_id, self._members, self._keeps_results)
        calls, alarm = [*members.calls(queue)], self._alarm(queue)
        flow = NewFlow(
            flow_id, self.name, len(calls), members.roots, self._stops, self._deadline, self._keep, alarm,
            members.names,
        )  # fmt: skip
        queue.pusher.write_flow(flow, calls, [(one.call.name, one.call.data) for one in members.ordered])
        self.id = FlowId(flow_id, queue)
        return self.id

    def _alarm(self, queue: Queue) -> tuple[str, bytes] | None:
        call = self._on_failure
        return None if call is None else (call.sending.queue, encoded(queue, call, {})[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.dispatch()


class _Numbered:
    """The members of a flow by number: those that follow no other come first."""

    def __init__(self, flow_id: str, members: list[Member[Any]], keeps_results: bool) -> None:
        self._flow_id = flow_id
        roots = [one for one in members if not one.after]
        #: how many of them follow no other
        self.roots = len(roots)
        self.ordered = [*roots, *(one for one in members if one.after)]
        self._numbers = {one: str(number) for number, one in enumerate(self.ordered)}
        self._taken = {one for member in members for taken in member.call.takes.values() for one in taken.members}
        self._keeps_results = keeps_results
        self._edges: dict[Member[Any], list[str]] = {one: [] for one in members}
        for one in self.ordered:
            for before in one.after:
                self._edges[before].append(f"{self._numbers[one]}{_RULES[one.on]}")

    @property
    def names(self) -> str:
        """The names of their jobs, for people."""
        found: dict[str, list[str]] = {}
        for one in self.ordered:
            found.setdefault(one.call.name, []).append(self._numbers[one])
        return names_as_text(found)

    def calls(self, queue: Queue) -> Iterator[NewMember]:
        """What is written for each. Raises ``NotSendable``."""
        for one in self.ordered:
            number, call, rule = self._numbers[one], one.call, _RULES[one.on]
            is_taken = self._keeps_results or one in self._taken
            member = MemberOf(self._flow_id, number, rule, is_taken)
            extra: dict[str, object] = {FLOW: member.text}
            takes = {key: self._numbers_of(taken) for key, taken in call.takes.items()}
            if self._keeps_results and one.after:
                takes[ALL] = self._numbers_of(Taken(one.after, is_list=True))
            if takes:
                extra[ARGS] = takes
            if one.after:
                extra |= _NO_TIMES
            terms, payload = encoded(queue, call, extra, member.job_id)
            before = [self._numbers[other] for other in one.after]
            yield NewMember(
                number, rule, terms.queue, terms.delay, payload, len(before), tuple(self._edges[one]),
                stripes_of(before),
            )  # fmt: skip

    def _numbers_of(self, taken: Taken) -> str:
        numbers = [self._numbers[one] for one in taken.members]
        return f"[{numbers_as_text(numbers)}]" if taken.is_list else numbers[0]


def _new_id() -> str:
    # Commands take what begins with a hyphen for a flag.
    while (made := secrets.token_urlsafe(16)).startswith("-"):
        pass
    return made


def encoded(queue: Queue, call: Call[Any], extra: dict[str, object], job_id: str = "") -> tuple[Terms, bytes]:
    """The terms of a call, and its payload with these further fields and this id, or a random one.

    Raises as ``Queue.push`` does.
    """
    options, sending, job = call.options, call.sending, call.php
    fields = job.options if job else options
    terms = terms_of(call.name, sending.queue, sending.delay, options.track, fields, options.encrypted)
    if job:
        terms = terms._replace(command=command_of(queue, call, job, extra))
    return terms, queue.pusher.encoded(call.name, call.data, terms, extra, job_id)


def as_call(given: object) -> Call[Any]:
    """The call: one, or a ``Job`` object. Raises ``TypeError`` for anything else."""
    if isinstance(given, Call):
        return given
    if isinstance(given, Job):
        return given.using().call()
    if isinstance(given, Member):
        raise TypeError(f"{given.call.name}: this call is a member of a flow already: others follow it by after=...")
    raise TypeError(f"a flow takes calls, not {given!r}: write the_job.call(...)")


def _members_in(after: Member[Any] | _Several | None) -> Iterator[Member[Any]]:
    for one in () if after is None else (after,) if isinstance(after, Member) else several(after):
        if not isinstance(one, Member):
            raise TypeError(f"{one!r} is not a member of a flow: after= takes what flow.add(...) has returned")
        yield one


def _sending(within: Any, after_commit: Any) -> Sending:
    return Sending(queue="", within=within, after_commit=after_commit)
