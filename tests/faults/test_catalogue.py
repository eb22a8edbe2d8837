"""Every entry of CATALOGUE.md has a test or a reason for having none, and every mark names an entry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.entries import entries_of
from tests.support.selection import FOUND, left_to_all

TESTS = Path(__file__).parents[1]
CATALOGUE, _, UNTESTED = (TESTS / "faults/CATALOGUE.md").read_text().partition("## Without a test")


def ids(text: str) -> list[str]:
    """What begins the rows of the tables, in their order."""
    return re.findall(r"(?m)^\| ([FB]\d+) \|(?= *\S.*\|$)", text)


def test_entries_are_numbered_without_a_gap():
    faults, inputs = ([entry for entry in ids(CATALOGUE) if entry[0] == kind] for kind in "FB")

    assert [f"F{number:02}" for number in range(1, len(faults) + 1)] == faults
    assert [f"B{number:03}" for number in range(1, len(inputs) + 1)] == inputs
    assert 1 < min(len(faults), len(inputs))


def test_a_mark_of_a_test_names_an_entry(request: pytest.FixtureRequest) -> None:
    found, known = request.config.stash[FOUND], set(ids(CATALOGUE))
    unknown = {(item.nodeid, entry) for item in found for entry in entries_of(item) - known}

    assert set() == unknown


def test_every_entry_has_a_test_without_all_or_a_reason_for_having_none(request: pytest.FixtureRequest) -> None:
    found = request.config.stash[FOUND]
    if {item.path for item in found} < set(TESTS.rglob("test_*.py")):
        pytest.skip("only the whole suite has them all")
    tested = {entry for item in set(found) - left_to_all(found) for entry in entries_of(item)}

    assert sorted(ids(CATALOGUE)) == sorted([*tested, *ids(UNTESTED)])
