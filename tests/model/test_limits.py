"""Every interleaving of a small world with a limit: never one too many, no place at rest, and nothing is ever stuck."""

from __future__ import annotations

from collections import deque

import pytest

from tests.model.limits import Rules, State, broken_law, is_over

FAULTS = {
    "a look at the places": "one too many",
    "the number for those that were handed a place": "one too many",
    "handing on": "at rest",
    "the end of a place": "at rest",
    "the ends of places": "at rest",
}


def searched(rules: Rules) -> tuple[dict[State, State | None], str]:
    """All states that can be reached, each with one from which it is; and the law that breaks first."""
    known: dict[State, State | None] = {State(): None}
    waiting = deque(known)
    while waiting:
        state = waiting.popleft()
        if law := broken_law(state):
            return known, law
        for _, after in rules.steps(state):
            if after not in known:
                known[after] = state
                waiting.append(after)
    return known, ""


def stuck(rules: Rules, known: dict[State, State | None]) -> list[State]:
    """The states from which the jobs can no longer all be done, with a number above 0 and no further death."""
    before: dict[State, list[State]] = {}
    for state in known:
        for _, after in rules.steps(state):
            before.setdefault(after, []).append(state)
    good = {state for state in known if is_over(state)}
    waiting = deque(good)
    while waiting:
        for state in before.get(waiting.popleft(), ()):
            if state not in good:
                good.add(state)
                waiting.append(state)
    return [state for state in known if state not in good and state.number > 0]


def test_the_laws_hold_in_every_interleaving():
    known, law = searched(Rules())

    assert "" == law
    assert len(known) > 1000
    assert [] == stuck(Rules(), known)


@pytest.mark.by_turns("fault")
@pytest.mark.parametrize("fault", FAULTS)
def test_each_rule_is_needed(fault):
    rules = Rules(without=fault)
    known, law = searched(rules)
    found = law or ("stuck" if stuck(rules, known) else "")

    assert FAULTS[fault] in found
