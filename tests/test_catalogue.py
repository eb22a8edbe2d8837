"""Every entry of the catalogue of bad inputs is some test's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ALL = {f"B{number:03}" for number in range(1, 105)}
#: entries that nothing can be shown of yet, and why
EXCLUDED = {"B064": "there is no SQL store yet"}


def test_every_entry_has_a_test_with_its_number_in_its_name(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    if {item.path for item in items} < set(TESTS.glob("test_*.py")):
        pytest.skip("only the whole suite has them all")
    names = "\n".join(item.name for item in items)
    claimed = {f"B{number}" for number in re.findall(r"(?:\[|_)[bB](\d{3})(?!\d)", names)}

    assert sorted(ALL - set(EXCLUDED)) == sorted(claimed)
