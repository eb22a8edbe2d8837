"""What payloads say of the results that they take: whoever may push may write anything there."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from queuepool.payload.members import ARGS, MOST_TAKEN, numbers_in, taken_in


def test_repeated_ranges_cost_no_more_than_the_most_that_one_argument_takes():
    text = ",".join(["0-999999"] * 200)
    tracemalloc.start()
    found = numbers_in(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert MOST_TAKEN == len(found)
    assert peak < 10_000_000


@pytest.mark.thorough("5,000 arguments; the test before it bounds what one takes")
def test_no_more_arguments_are_read_than_a_call_may_have():
    fields = json.loads(json.dumps({ARGS: {f"a{number}": "[0-9999]" for number in range(5000)}}))

    assert 100 == len(taken_in(fields))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-2,7", ["0", "1", "2", "7"]), ("", []), ("2-1", []), ("5.12345678901234567", ["5.12345678901234567"])],
)
def test_numbers_are_read(text, numbers):
    assert numbers == numbers_in(text)
