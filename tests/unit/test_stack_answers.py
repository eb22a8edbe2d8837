"""What a pool on another host answers of its jobs' stacks has a bounded size, and says what is missing."""

from __future__ import annotations

import json

from queuepool.steward.stacks import few_lines
from queuepool.stores.commands import MAX_WORDS
from tests.support.each import each

LINE = '  File "/srv/app/jobs.py", line 12, in charge'


@each(("line", "count"), [(LINE, 5000), ("\u2713" * 50, 5000), ("x" * 100_000, 3)])
def test_what_does_not_fit_is_cut_and_counted(line, count):
    text = few_lines([line] * count, MAX_WORDS)
    *kept, last = text.split("\n")

    assert len(json.dumps(text)) <= MAX_WORDS
    assert kept == [line] * len(kept)
    assert f"{count - len(kept)} lines cut: ask for one job by its id, or on that host" == last
    assert len(json.dumps(text)) > 0.9 * MAX_WORDS or len(line) > MAX_WORDS


def test_what_fits_is_whole():
    assert f"{LINE}\n{LINE}" == few_lines([LINE, LINE], MAX_WORDS)


@each("room", [0, -5, 50])
def test_without_room_only_that_is_said(room):
    assert few_lines([LINE], room).startswith("1 line cut: ")
