"""Breadth-first search through a protocol's states: the first trace that breaks a law is a shortest one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

S = TypeVar("S", bound=Hashable)
Trace = tuple[str, ...]
#: every state that may follow, each with what led to it
Steps = Callable[[S], Iterable[tuple[str, S]]]
#: whether the state is as promised
Law = Callable[[S], bool]

_MOST_STATES = 200_000


@dataclass(frozen=True, slots=True)
class Explored:
    """How many states there are, and for each law that was broken a shortest trace to it."""

    states: int
    broken: Mapping[str, Trace]


def explore(initial: S, steps: Steps[S], laws: Sequence[Law[S]], until: str = "") -> Explored:
    """Visit every state that can be reached lawfully, or until this law is broken.

    A space without end is a mistake of the model.
    """
    came: dict[S, tuple[S, str] | None] = {initial: None}
    waiting, broken = deque([initial]), dict[str, Trace]()
    while waiting and until not in broken:
        state = waiting.popleft()
        wrong = [law.__name__ for law in laws if not law(state)]
        for name in set(wrong) - set(broken):
            broken[name] = _trace(came, state)
        for label, following in steps(state) if not wrong else ():
            if following not in came:
                came[following] = (state, label)
                waiting.append(following)
        assert len(came) < _MOST_STATES, "the model has no end"
    return Explored(len(came), broken)


def _trace(came: Mapping[S, tuple[S, str] | None], state: S) -> Trace:
    labels = []
    while step := came[state]:
        state, label = step
        labels.append(label)
    return tuple(reversed(labels))
