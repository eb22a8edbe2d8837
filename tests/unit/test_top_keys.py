"""The keys of ``top``: what they show, and which verbs they ask for."""

from __future__ import annotations

from functools import reduce

import pytest

from queuepool.cli.verbs import VERBS
from queuepool.top.tables import PAGES, Page, queues
from queuepool.top.view import Mode, View, command_for, moved
from tests.support.boards import board_with, reading_of, reading_with
from tests.support.each import each


def after(*keys: str, view: View | None = None, pools: int = 1, rows: int = 20) -> View:
    return reduce(lambda view, key: moved(view, key, pools, rows), keys, view or View())


@pytest.fixture
def reading(tmp_path):
    return reading_of(board_with(tmp_path))


def test_rows_are_chosen_within_the_table():
    assert [1, 0, 19, 19, 10] == [after(*keys).row for keys in (["j"], ["up"], ["end"], ["end", "down"], ["page down"])]
    assert 3 == after("end", rows=4).row
    assert 0 == after("down", rows=0).row


def test_a_row_that_is_no_longer_there_is_left_from_the_last_one():
    assert 3 == after("up", view=View(row=500), rows=5).row


def test_pages_and_pools():
    assert [Page.WORKERS, Page.QUEUES, Page.JOBS] == [after("2", key).page for key in "123"]
    assert [1, 0, 2] == [after(*keys, pools=3).pool for keys in (["\t"], ["\t"] * 3, ["back tab"])]
    assert 0 == after("\t", pools=0).pool


def test_orders_go_round_and_begin_anew_on_another_page():
    assert 1 == after("s").order
    assert 0 == after(*"s" * len(PAGES[Page.WORKERS].orders)).order
    assert (0, False) == (after("s", "r", "2").order, after("s", "r", "2").is_reversed)


def test_a_filter_is_typed_and_dropped():
    typed = after("/", *"mail", "\x7f", "l", "q")
    assert ("mailq", Mode.FILTER, False) == (typed.filter, typed.mode, typed.has_ended)
    assert ("maiq", Mode.TABLES) == (after("/", *"maiq", "\n").filter, after("/", *"maiq", "\n").mode)
    assert "" == after("/", *"mail", "\x1b").filter == after("/", *"mail", "\n", "\x1b").filter
    assert 60 == len(after("/", *"x" * 1000).filter)


def test_help_and_details_are_closed_by_any_key():
    assert [Mode.HELP, Mode.TABLES, Mode.TABLES] == [after(*keys).mode for keys in ("?", "?x", "??")]
    assert [Mode.DETAILS, Mode.TABLES] == [after(*keys).mode for keys in (["\n"], ["2", "\n"])]
    assert not after("?", "q").has_ended


def test_freezing_and_quitting():
    assert (True, False, True) == (after(" ").is_frozen, after(" ", " ").is_frozen, after("q").has_ended)


@each("key", ["", "\x00", "é", "漢", "x", "C", "K", "\x03", "P", "R", "Q", "+"])
def test_other_keys_do_nothing_by_themselves(key):
    assert View() == after(key)


@each(
    ("key", "facts", "words", "question"),
    [
        ("P", {}, ["pause"], "Pause pool 'default' (master 4526)?"),
        ("P", {"state": "paused"}, ["continue"], "Continue pool 'default' (master 4526)?"),
        ("P", {"state": "stopped by a signal"}, ["continue"], "Continue pool 'default' (master 4526)?"),
        ("R", {}, ["reload"], "Replace the workers of pool 'default' (master 4526)?"),
        ("+", {}, ["scale", "--", "4"], "Scale pool 'default' from 3 to 4 workers?"),
        ("-", {}, ["scale", "--", "2"], "Scale pool 'default' from 3 to 2 workers?"),
        ("-", {"workers": 0}, ["scale", "--", "0"], "Scale pool 'default' from 0 to 0 workers?"),
    ],
)
def test_a_key_that_changes_the_pool_asks_for_a_verb(reading, key, facts, words, question):
    command = command_for(key, reading_with(reading, **facts).local.overview, None)

    assert (words, question) == (list(command.words), command.question)
    assert command.words[0] in VERBS


def test_a_queue_is_paused_and_continued_on_its_page_alone(reading):
    [high, default] = queues(reading_with(reading, paused=["default"]))
    pool = reading.local.overview

    assert ("pause", "--", "high") == command_for("Q", pool, high).words
    assert ("continue", "--", "default") == command_for("Q", pool, default).words
    assert command_for("Q", pool, pool.processes[0]) is None
    assert command_for("Q", pool, None) is None


@pytest.mark.bad_input("B137")
def test_a_name_that_no_queue_can_have_is_given_to_no_command(reading):
    [*_, bad] = queues(reading_with(reading, queues=["a", "b\x00\x1b[2J"]))

    assert command_for("Q", reading.local.overview, bad) is None


def test_a_pool_that_does_not_run_is_asked_for_nothing():
    assert [None] * 4 == [command_for(key, None, None) for key in "PR+-"]
