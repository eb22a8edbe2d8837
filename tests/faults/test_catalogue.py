"""Every entry of the catalogues of bad inputs (B) and of faults (F) is some test's, or it is said why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
INPUTS = {f"B{number:03}" for number in range(1, 105)}
FAULTS = {f"F{number:02}" for number in range(1, 75)}
#: entries that nothing can be shown of yet, and why
NO_INPUTS: dict[str, str] = {}
NO_FAULTS = {
    "F08": "a cgroup's memory.max takes a cgroup of one's own, which neither containers nor users have by default",
    "F14": "a process in state D takes fsfreeze, which takes a file system of one's own",
    "F38": "nothing is loaded before the fork: the modules of the jobs are imported in each worker",
    "F43": "suspending takes the whole machine; what is late after it is what F25 shows",
    "F57": "there is no client for clusters; a URL of one of its servers gets MOVED, an error that is told",
}
CLAIM = re.compile(r"(?:\[|_)(?:[bB](\d{3})(?!\d)|F(\d\d)(?=_))")


def _claimed(items: list[pytest.Item]) -> set[str]:
    found = CLAIM.findall("\n".join(item.name for item in items))
    return {f"B{number}" if number else f"F{fault}" for number, fault in found}


@pytest.mark.parametrize(
    ("catalogue", "excluded"), [(INPUTS, NO_INPUTS), (FAULTS, NO_FAULTS)], ids=["inputs", "faults"]
)
def test_every_entry_has_a_test_with_its_number_in_its_name(
    request: pytest.FixtureRequest, catalogue: set[str], excluded: Mapping[str, str]
) -> None:
    items = request.session.items
    if {item.path for item in items} < set(TESTS.rglob("test_*.py")):
        pytest.skip("only the whole suite has them all")
    claimed = {entry for entry in _claimed(items) if entry[0] == min(catalogue)[0]}

    assert sorted(catalogue - set(excluded)) == sorted(claimed)
