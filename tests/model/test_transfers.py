"""A job that is brought to another store keeps its promises in every order of events; without one rule it does not."""

from __future__ import annotations

from functools import partial

import pytest

from tests.model import transfers
from tests.model.explore import Explored, explore


def searched(rules: transfers.Rules, until: str = "") -> Explored:
    return explore(transfers.World(), partial(transfers.steps, rules), transfers.LAWS, until)


def test_a_job_is_in_one_place_in_every_order_of_events():
    found = searched(transfers.Rules(losses=1))

    assert {} == found.broken
    assert found.states > 1000


@pytest.mark.thorough("it takes seconds; the test before it has one such call")
def test_also_if_two_calls_are_lost_or_late():
    assert {} == searched(transfers.Rules()).broken


ONCE = "it_can_be_run_in_one_place_at_most"
WITHOUT = {
    "fixes_first": (False, ONCE), "bounds": (False, ONCE), "refuses": (False, ONCE), "forgets_last": (False, ONCE),
    "still_known": (transfers.WITHIN - 1, ONCE), "marks": (False, ONCE),
}  # fmt: skip


@pytest.mark.by_turns("rule")
@pytest.mark.parametrize("rule", WITHOUT)
def test_without_one_of_its_rules_it_is_in_two_places(rule):
    value, law = WITHOUT[rule]

    assert law in searched(transfers.Rules(**{rule: value}), until=law).broken
