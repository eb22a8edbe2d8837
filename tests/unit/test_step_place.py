"""A cursor's place on the board: whole at each moment, and never what no worker has written."""

from __future__ import annotations

import pytest

from queuepool.board.step_place import StepPlace
from queuepool.payload.kept_step import CURSOR, MOST_NAME, MOST_PLACE, StepsEnd


@pytest.fixture
def place() -> StepPlace:
    return StepPlace(bytearray(StepPlace.size), 0)


def test_the_last_place_that_was_shown_counts(place):
    assert place.end_of("a") is None
    place.show("a", "", b"")
    assert StepsEnd("a") == place.end_of("a")
    for number in range(5):
        place.show("a", "~rows", b"%d" % number)
        assert StepsEnd("a", places=(("~rows", b"%d" % number),)) == place.end_of("a")
    place.show("a", "~others", b'["x",null]')
    assert StepsEnd("a", places=(("~others", b'["x",null]'),)) == place.end_of("a")
    place.forget()
    assert place.end_of("a") is None


def test_a_job_without_a_cursor_does_not_show_the_place_of_the_one_before(place):
    place.show("a", "", b"")
    place.show("a", "~rows", b"7")
    place.forget()
    place.show("b", "", b"")

    assert StepsEnd("b") == place.end_of("b")


def test_the_place_of_another_job_does_not_count(place):
    """A thread that it left behind may show it while this one runs."""
    place.show("b", "", b"")
    place.show("a", "~rows", b"7")

    assert StepsEnd("b") == place.end_of("b")
    assert StepsEnd("a", places=(("~rows", b"7"),)) == place.end_of("a")


def test_there_is_room_for_the_longest_place(place):
    name, key = CURSOR + "ä" * (MOST_NAME // 2), b'"%s"' % (b"x" * (MOST_PLACE - 2))
    place.show("a", name, key)

    assert StepsEnd("a", places=((name, key),)) == place.end_of("a")


def test_a_name_may_have_newlines(place):
    place.show("a", "~a\nb\n", b"1")

    assert StepsEnd("a", places=(("~a\nb\n", b"1"),)) == place.end_of("a")


def test_a_writer_that_is_killed_leaves_the_place_before(place):
    place.show("a", "", b"")
    for number in range(4):
        place.show("a", "~rows", b"%d" % number)
        # All but the turn, which is written last.
        setattr(place, "even" if place.turn % 2 else "odd", "~rows\n99")
        assert StepsEnd("a", places=(("~rows", b"%d" % number),)) == place.end_of("a")


@pytest.mark.parametrize("text", ["", "~rows", "rows\n1", "~\n1", "~rows\n{", '~rows\n"ä"', "~rows\n" + "[" * 200])
@pytest.mark.parametrize("turn", [2, 3, 2**62])
def test_what_no_worker_has_written_is_no_place(place, text, turn):
    place.even = place.odd = text
    place.turn = turn

    assert StepsEnd("a") == place.end_of("a")


def test_a_damaged_turn_says_that_there_are_no_steps(place):
    place.turn = -5
    assert place.end_of("a") is None
