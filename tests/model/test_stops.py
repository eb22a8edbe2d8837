"""A stop beside an orphan keeps its promises in every order of events; without one of its rules it breaks one."""

from __future__ import annotations

from functools import partial

import pytest

from tests.model import stops
from tests.model.explore import Explored, explore


def searched(first: stops.World, rules: stops.Rules, until: str = "") -> Explored:
    return explore(first, partial(stops.steps, rules), stops.LAWS, until)


@pytest.mark.parametrize("first", stops.FIRST.values(), ids=stops.FIRST)
def test_a_stop_beside_an_orphan_keeps_every_law(first):
    found = searched(first, stops.Rules())

    assert {} == found.broken
    assert found.states > 100


WITHOUT = {
    "waits": ("an orphan from before", "what_a_pool_leaves_is_settled"),
    "replaces": ("an orphan from before", "what_a_pool_leaves_is_settled"),
    "outlives": ("an orphan from before", "who_runs_is_looked_after"),
    "asks_the_master": ("an orphan from before", "nobody_is_ended_before_the_stop_waits_no_longer"),
    "counts_last": ("an orphan that becomes ours", "what_a_pool_leaves_is_settled"),
    "gives_up": ("an orphan from before", "what_a_pool_leaves_is_settled"),
}


@pytest.mark.by_turns("rule")
@pytest.mark.parametrize("rule", stops.Rules._fields)
def test_without_one_of_its_rules_a_stop_breaks_a_law(rule):
    first, law = WITHOUT[rule]
    changed = stops.Rules(**{rule: not getattr(stops.Rules(), rule)})

    assert law in searched(stops.FIRST[first], changed, until=law).broken
