"""``each`` runs every case, and a failure of one is told with its name."""

from __future__ import annotations

import pytest

from tests.support.each import each


def test_every_case_runs_and_all_that_fail_are_named():
    seen = []

    @each(["number", "word"], [(1, "a"), (2, "b"), pytest.param(3, "c", id="third"), (4, "d")])
    def test(number, word):
        seen.append(word)
        if number % 2:
            raise ValueError(word)

    with pytest.raises(AssertionError) as told:
        test()

    assert ["a", "b", "c", "d"] == seen
    assert "2 of the cases failed\nnumber=1, word='a': ValueError: a\nthird: ValueError: c" == str(told.value)


def test_what_should_have_been_raised_and_was_not_is_a_failure():
    @each("text", ["x", "1"])
    def test(text):
        with pytest.raises(ValueError):
            int(text)

    with pytest.raises(AssertionError, match="text='1': Failed: DID NOT RAISE"):
        test()


@each("number", [1, 2])
@each("letter", "ab")
def test_tables_combine_and_share_the_fixtures(tmp_path, letter, number):
    (tmp_path / f"{letter}{number}").touch(exist_ok=False)

    assert f"{letter}{number}" == max(path.name for path in tmp_path.iterdir() if path.name[0] == letter)


def test_a_mark_of_a_case_is_one_of_the_test():
    mark = pytest.mark.bad_input("B001")

    @each("text", [pytest.param("a", marks=mark), "b"])
    def test(text):
        pass

    assert [mark.mark] == test.pytestmark
