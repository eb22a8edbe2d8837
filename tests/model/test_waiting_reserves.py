"""A reserve waits at the server for its job: whatever happens, nothing is lost, run twice or left to its lease.

The steps are in ``model/waiting.py``, beside those of ``model/protocol.py``.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.model.explore import Explored, explore
from tests.model.laws import LAWS
from tests.model.protocol import steps
from tests.model.rules import Rules
from tests.model.waiting import what_has_not_begun_waits_for_no_lease

LAWS_OF_WAITS = (*LAWS, what_has_not_begun_waits_for_no_lease)


def searched(**rules: object) -> Explored:
    waits = Rules(waits=True, **rules)  # type: ignore[arg-type]
    return explore(waits.first(), partial(steps, waits), LAWS_OF_WAITS)


#: of one worker, if much may go wrong: of two there are more worlds than can be searched
OURS: dict[str, dict[str, object]] = {
    "it may be given up, and its worker crash": {"losses": 1, "workers": 1, "most_attempts": 1, "delays": ()},
}
MORE: dict[str, dict[str, object]] = {
    "two jobs": {"jobs": 2, "losses": 1, "crashes": 0, "workers": 1, "most_attempts": 1, "delays": ()},
    "its worker may crash": {"delays": ()},
    "it may be given up": {"losses": 1, "crashes": 0},
    "it may be given up, and its worker be stopped": {
        "losses": 1, "crashes": 0, "stops": 1, "delays": (), "most_attempts": 1
    },
    "no lease can be renewed": {"renewed": False, "delays": ()},
}  # fmt: skip
_LARGE = pytest.mark.thorough("each takes seconds")


@pytest.mark.parametrize(
    "rules",
    [
        *(pytest.param(rules, id=name) for name, rules in OURS.items()),
        *(pytest.param(rules, id=name, marks=_LARGE) for name, rules in MORE.items()),
    ],
)
def test_a_reserve_that_waits_at_the_server_keeps_every_law(rules):
    found = searched(**rules)

    assert {} == found.broken
    assert found.states > 300


#: their searches take seconds
LONG = {
    "showing on the board that a reserve waits",
    "another tag and a search after a wait that was given up",
    "refusing the reserve of a wait that was given up",
    "telling the search what is done",
}
WITHOUT: dict[str, tuple[dict[str, object], dict[str, int]]] = {
    "showing on the board that a reserve waits": (
        {"shows_waits": False, "delays": ()},
        {"what_has_not_begun_waits_for_no_lease": 2},
    ),
    "another tag and a search after a wait that was given up": (
        {"reclaims": False, "crashes": 0, "losses": 1},
        {"what_has_not_begun_waits_for_no_lease": 1},
    ),
    "refusing the reserve of a wait that was given up": (
        {"retires": False, "crashes": 0, "losses": 1},
        {"what_has_not_begun_waits_for_no_lease": 4},
    ),
    "counting the lease from before the wait": (
        {"lease_from_hearing": True, "crashes": 0},
        {"attempts_are_starts": 6, "no_two_run_a_job_at_once": 8, "what_finished_never_runs_again": 9},
    ),
    "telling the search what is done": (
        {"reclaims_knowing": False, "crashes": 0, "losses": 1},
        {"what_finished_never_runs_again": 7},
    ),
}


@pytest.mark.thorough("of the model alone; its laws hold in the test above")
@pytest.mark.parametrize("without", [pytest.param(name, marks=[_LARGE] * (name in LONG)) for name in WITHOUT])
@pytest.mark.by_turns("without")
def test_nothing_that_makes_a_wait_safe_can_be_left_out(without):
    rules, broken = WITHOUT[without]

    assert broken == {law: len(trace) for law, trace in searched(**rules).broken.items()}
