"""A flow as a graph of few boxes: each is one member, or many that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from queuepool.stores.flows import MemberRecord

#: most boxes: what a person can take in
MOST_BOXES = 60
#: the letters of members, that which a box of several shows first
_FIRST = "frwckd"
#: the rule of a line from a member to what it has added
ADDED = "added"
_Members = Sequence[MemberRecord]


class FlowBox(NamedTuple):
    """Members that are drawn as one."""

    #: how many steps it is from the beginning of the flow
    layer: int
    #: of their jobs; empty if they have several, or if it is not known
    name: str
    #: of the first of them
    number: str
    #: how many have each letter
    letters: Counter[str]

    @property
    def letter(self) -> str:
        """The one that it shows."""
        return min(self.letters, key=lambda letter: (_FIRST + letter).index(letter))


class FlowGraph(NamedTuple):
    """Boxes, and lines between them by their indexes: from, to, and the rule ``s``, ``f``, ``a`` or ``ADDED``."""

    boxes: list[FlowBox]
    lines: list[tuple[int, int, str]]
    #: how many members are in none of the boxes
    left_out: int


def graph_of(members: _Members) -> FlowGraph:
    """The graph of members that come in the order of their numbers.

    Each is a box, if these are not too many; else those of one job in the same place are one, else those of one job
    that are as far from the beginning, else all that are.
    """
    layers, before = _places(members)
    keys: list[Callable[[MemberRecord], Hashable]] = [
        lambda one: one.number,
        lambda one: (layers[one.number], one.name, before[one.number], one.edges),
        lambda one: (layers[one.number], one.name),
        lambda one: layers[one.number],
    ]
    groups: Mapping[Hashable, _Members] = {}
    for key in keys:
        groups = _grouped(members, key)
        if len(groups) <= MOST_BOXES:
            break
    drawn = list(islice(groups.values(), MOST_BOXES))
    box_of = {one.number: box for box, some in enumerate(drawn) for one in some}
    boxes = [FlowBox(layers[some[0].number], _name_of(some), some[0].number, _letters(some)) for some in drawn]
    lines = dict.fromkeys(_lines(members, box_of))
    return FlowGraph(boxes, list(lines), len(members) - len(box_of))


def adder_of(number: str) -> str:
    """The number of the member that has added this one; empty if it was there from the beginning."""
    return number.rpartition(".")[0]


def _places(members: _Members) -> tuple[dict[str, int], dict[str, int]]:
    """How far each is from the beginning, in steps, and a digest of what it follows, and by which rule.

    One pass: members have higher numbers than those that they follow, and what was added than who has added it.
    """
    layers, before = {one.number: 0 for one in members}, {one.number: 0 for one in members}
    for one in members:
        if (adder := adder_of(one.number)) in layers:
            layers[one.number] = max(layers[one.number], layers[adder] + 1)
        for follower, rule in ((edge[:-1], edge[-1]) for edge in one.edges if edge[:-1] in layers):
            layers[follower] = max(layers[follower], layers[one.number] + 1)
            before[follower] = hash((before[follower], one.number, rule))
    return layers, before


def _grouped(members: _Members, key: Callable[[MemberRecord], Hashable]) -> Mapping[Hashable, _Members]:
    groups: dict[Hashable, list[MemberRecord]] = {}
    for one in members:
        groups.setdefault(key(one), []).append(one)
    return groups


def _name_of(some: _Members) -> str:
    return some[0].name if all(one.name == some[0].name for one in some) else ""


def _letters(some: _Members) -> Counter[str]:
    return Counter(one.letter for one in some)


def _lines(members: _Members, box_of: Mapping[str, int]) -> Iterator[tuple[int, int, str]]:
    for one in members:
        here = box_of.get(one.number)
        if here is None:
            continue
        if (adder := box_of.get(adder_of(one.number), here)) != here:
            yield adder, here, ADDED
        for edge in one.edges:
            if (there := box_of.get(edge[:-1], here)) != here:
                yield here, there, edge[-1]
