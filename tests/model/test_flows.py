"""Every order of what may happen to a flow: its laws hold, and each planted fault breaks one."""

from __future__ import annotations

from functools import partial

import pytest

from tests.model.explore import explore
from tests.model.flows import LAWS, FlowRules, FlowWorld, steps


@pytest.mark.by_turns("stops")
@pytest.mark.parametrize("stops", [True, False], ids=["stops the rest", "goes on"])
def test_the_laws_of_flows_hold_in_every_order(stops):
    found = explore(FlowWorld(), partial(steps, FlowRules(stops=stops)), LAWS)

    assert {} == found.broken
    assert found.states > 1000


@pytest.mark.thorough("of the model alone; a fault planted into that of limits is found by default")
@pytest.mark.by_turns("fault")
@pytest.mark.parametrize(
    "fault", ["fences", "guards", "holds", "spends", "resumes_at_once", "waits", "adds_at_the_end"]
)
def test_a_planted_fault_breaks_a_law(fault):
    rules = FlowRules(**{fault: False, **({"fences": False} if fault == "guards" else {})})
    found = explore(FlowWorld(), partial(steps, rules), LAWS)

    assert found.broken
