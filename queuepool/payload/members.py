"""Members of flows: what the payload of one says, and what is written when a flow is dispatched and when one ends.

    "qpFlow": "ID:NUMBER" and letters: "f" or "a" for its rule, "r" if another member takes its result
    "qpArgs": {"photos": "[0-9]", "page": "10"}: by argument, the members whose results it takes, as a list or one

A member in PHP has "data": {…, "qpReport": {"flow": the same, "queue": where its end is to be reported}}. The report is
a job named ``REPORT`` with "data": {"flow": the same, "end": "done" or "failed", "result": if another member takes it}.

A member is followed by others. Its rule says after what it starts: ``s``, when all that it follows are done; ``f``,
when all are over and one has failed or was cancelled; ``a``, when all are over.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Literal, NamedTuple
from uuid import UUID

#: the keys of a member's flow, and of the arguments that are results of other members
FLOW, ARGS = "qpFlow", "qpArgs"
#: the class and method that run a member in PHP, the key in its data that says where to report its end, and the report
PHP_MEMBER, REPORT_TO, REPORT = "App\\Queue\\QueuepoolMember@call", "qpReport", "queuepool.flow.report"
#: in place of an argument: the results of all that it follows, whatever has become of them
ALL = ""
#: how a member has ended: done, failed, cancelled, or left out, as its flow was stopped; the last is put back if that
#: has been resumed
How = Literal["d", "f", "c", "o"]
Rule = Literal["s", "f", "a"]
#: most members of a flow, and most whose results one argument takes
MOST_MEMBERS, MOST_TAKEN = 100_000, 10_000
#: most bytes of all results of a flow
MOST_RESULTS = 16 * 1024 * 1024
#: most members that are counted down in one row, and the rows for more
_FEW, STRIPES = 64, 100
#: successive members that count in one row: a worker that ends many at once is to change few rows, and seldom the same
#: as another one
BLOCK = 8
#: most characters of the names of a flow's jobs
_MOST_NAMES = 64 * 1024
#: how deep numbers of members lie within each other
_DEEPEST = 8
#: most arguments of a job that take results
MOST_ARGS = 100
_OF_MEMBER = rf"[0-9]{{1,6}}(?:\.[0-9]{{1,17}}){{0,{_DEEPEST}}}"
_FLOW = re.compile(rf"([A-Za-z0-9_-]{{22}}):({_OF_MEMBER})([far]{{0,2}})")
_NUMBER = re.compile(_OF_MEMBER)
_RANGE = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")


class MemberOf(NamedTuple):
    """Which member of which flow a job is."""

    flow: str
    number: str
    rule: Rule = "s"
    #: whether another member takes its result
    is_taken: bool = False

    @property
    def text(self) -> str:
        """As a payload has it."""
        return f"{self.flow}:{self.number}{'' if self.rule == 's' else self.rule}{'r' if self.is_taken else ''}"

    @property
    def job_id(self) -> str:
        """The id of its job: made of the flow's, so that a member leads to its job though no store keeps that id."""
        digest = hashlib.sha256(f"{self.flow}:{self.number}".encode()).digest()
        return str(UUID(bytes=digest[:16], version=4))


class NewMember(NamedTuple):
    """A member to add, not yet pushed. ``delay`` in seconds, from when it starts."""

    number: str
    rule: Rule
    queue: str
    delay: float
    payload: bytes
    #: how many members it follows; 0 = it starts with the flow
    follows: int = 0
    #: the members that follow it, each its number and rule, as ``10000s``
    edges: tuple[str, ...] = ()
    #: if it follows many: how many of them are in each stripe (``stripes_of``)
    stripes: tuple[int, ...] = ()
    #: of its job, for people, if its flow does not have it among its names: it was added by a running job
    name: str = ""


class NewFlow(NamedTuple):
    """A flow to write. Times in seconds."""

    id: str
    name: str
    total: int
    #: how many of them follow no other: those with the first numbers
    roots: int
    #: whether the first failure keeps the rest from starting
    stops: bool
    #: from its start until members that wait start no more
    deadline: float
    #: how long it is kept after its end, if it has not failed
    keep: float
    #: queue and payload of a job to push if it fails
    on_failure: tuple[str, bytes] | None = None
    #: the names of its members' jobs, for people (``names_as_text``)
    names: str = ""


class MemberEnd(NamedTuple):
    """How a member has ended; ``result`` is JSON, empty if none is kept."""

    flow: str
    number: str
    how: How
    result: str = ""
    #: what it has added, which all that follow it wait for too
    children: tuple[NewMember, ...] = ()


def member_in(fields: Mapping[str, Any]) -> MemberOf | None:
    """The member that a payload with these fields is; ``None`` if it is none, or damaged."""
    return member_of(fields.get(FLOW))


def member_of(text: object) -> MemberOf | None:
    """The member of ``MemberOf.text``; ``None`` for anything else."""
    found = _FLOW.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    rule: Rule = "f" if "f" in found[3] else "a" if "a" in found[3] else "s"
    return MemberOf(found[1], found[2], rule, "r" in found[3])


def member_in_text(payload: str) -> MemberOf | None:
    """``member_in`` for a payload as a failed job has it."""
    if FLOW not in payload:
        return None
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return member_in(fields) if isinstance(fields, dict) else None


class TakenBy(NamedTuple):
    """The members whose results an argument takes, as a list or one."""

    argument: str
    numbers: list[str]
    is_list: bool


def taken_in(fields: Mapping[str, Any]) -> list[TakenBy]:
    """What the arguments of a payload with these fields take."""
    found = fields.get(ARGS)
    texts = islice(found.items(), MOST_ARGS) if isinstance(found, dict) else ()
    return [
        TakenBy(key, numbers_in(text.strip("[]")), text.startswith("[")) for key, text in texts if isinstance(text, str)
    ]


def numbers_as_text(numbers: list[str]) -> str:
    """These numbers with ranges for successive ones: ``0-9,12``; empty for none."""
    return ",".join(first if first == last else f"{first}-{last}" for first, last in _runs(numbers))


def stripes_of(numbers: list[str]) -> tuple[int, ...]:
    """How many of these members are in each stripe, by which a database counts down in many rows instead of one.

    Empty if there are few.
    """
    if len(numbers) <= _FEW:
        return ()
    counts = Counter(map(stripe_of, numbers))
    return tuple(counts[stripe] for stripe in range(STRIPES))


def stripe_of(number: str, block: int = BLOCK) -> int:
    """The stripe of a member, and of what it adds; ``block`` as of the flow when it was written."""
    return first_of(number) // block % STRIPES


def first_of(number: str) -> int:
    """The number of a member, or of the one that has added it."""
    return int(number.partition(".")[0])


def child_of(number: str, index: int) -> str:
    """The number of what a member adds, at this index: within its own, or, if that is deep, beside it by a digest."""
    within = f"{number}.{index}"
    if within.count(".") <= _DEEPEST:
        return within
    # A job may add itself, page after page: its numbers must not get longer each time.
    digest = hashlib.sha256(within.encode()).digest()
    return f"{number.partition('.')[0]}.{int.from_bytes(digest[:7])}"


def names_as_text(names: Mapping[str, list[str]]) -> str:
    """For each name of a job the numbers of its members, as JSON; empty if that is long."""
    text = json.dumps({name: numbers_as_text(numbers) for name, numbers in names.items()}, separators=(",", ":"))
    return text if len(text) <= _MOST_NAMES else ""


def names_in(text: str) -> dict[str, str]:
    """The name for each number, as far as ``names_as_text`` has kept it."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {number: name for name, numbers in pairs for number in numbers_in(str(numbers), MOST_MEMBERS)}


def _runs(numbers: list[str]) -> Iterator[tuple[str, str]]:
    first = last = ""
    for number in numbers:
        if last and number.isdigit() and last.isdigit() and int(number) == int(last) + 1:
            last = number
            continue
        if last:
            yield first, last
        first = last = number
    if last:
        yield first, last


def numbers_in(text: str, most: int = MOST_TAKEN) -> list[str]:
    """The numbers of ``numbers_as_text``, at most ``most``; what is damaged names none."""
    found: list[str] = []
    for part in text.split(","):
        if len(found) >= most:
            break
        if of_range := _RANGE.fullmatch(part):
            first, last = int(of_range[1]), int(of_range[2])
            found += map(str, range(first, min(last, first + most - len(found) - 1) + 1))
        elif _NUMBER.fullmatch(part):
            found.append(part)
    return found
