"""A notice is a text in a store that others can write to: its numbers and paths may be anything that JSON can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuepool.board.runtime_dir import boards_in
from queuepool.operating.notices import PublishedPool
from tests.support.each import each

pytestmark = pytest.mark.bad_input("B168")


@each("rate", [10**400, -(10**400), "5", None, {}])
def test_a_rate_that_is_no_number_is_not_shown(rate):
    notice = {"host": "a", "pool": "p", "at": 1.0, "done_per_minute": rate, "failed_per_minute": 0.0}

    assert "" == PublishedPool.of(notice, age=0.0).rate_words


@each("place", ["/tmp/a\0b", "a" * 5000, "\ud800"])
def test_a_place_that_no_directory_has_holds_no_board(place):
    with boards_in([Path(place)]) as boards:
        assert [] == boards
