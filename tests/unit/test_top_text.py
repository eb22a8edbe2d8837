"""Text on the screen of ``top``: whatever is written on the board fills its columns and no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from queuepool.top.layout import cut, fitted, plain, width, wrapped
from tests.support.each import each

ESCAPES = "\x1b[2J\x1b]0;title\x07\r\n\x9b31m"


@given(st.text(max_size=80), st.integers(0, 40), st.booleans())
def test_a_cell_has_exactly_its_columns(text, columns, to_the_right):
    cell = fitted(plain(text), columns, to_the_right=to_the_right)

    assert columns == width(cell)
    assert cell.isprintable()


@given(st.text(max_size=80), st.integers(1, 40))
def test_what_is_cut_is_never_wider_than_asked(text, columns):
    assert width(cut(plain(text), columns)) <= columns
    assert all(width(each) <= max(columns, 2) for each in wrapped(plain(text), columns))


@pytest.mark.bad_input("B137")
def test_escape_sequences_are_shown_and_not_sent():
    shown = plain(f"mail{ESCAPES}")

    assert r"mail\x1b[2J\x1b]0;title\x07\r\n\x9b31m" == shown


@pytest.mark.bad_input("B137")
@each("letter", ["\u202e", "\u200b", "\u200d", "\ud800", "\ue000", "\U000e0041", "\ufeff", "\u0378"])
def test_a_letter_that_a_terminal_does_not_draw_is_escaped(letter):
    assert ascii(letter)[1:-1] == plain(letter)


@each("text", ["漢字", "한국어", "\u1112\u1161\u11ab", "e\u0301", "नमस्ते", "🙂", "ｆｕｌｌ", "אבג", "ไทยที่"])
def test_letters_are_as_wide_as_terminals_draw_them(text):
    assert wcswidth(plain(text)) == width(plain(text))


def test_a_wide_letter_is_not_cut_in_two():
    assert ("漢~", "漢~ ", "漢字") == (cut("漢字漢", 3), fitted("漢字漢", 4), cut("漢字", 4))


@pytest.mark.bad_input("B137")
def test_of_marks_that_are_piled_up_two_are_kept():
    assert "a\u0300\u0301b" == cut("\u0302a\u0300\u0301\u0302\u0303b", 10)


def test_what_a_locale_cannot_show_is_escaped():
    assert r"caf\xe9 \u6f22" == plain("café 漢", "ascii")


@pytest.mark.bad_input("B137")
def test_a_long_text_is_looked_at_only_as_far_as_a_screen_could_show_it():
    assert 3000 == len(plain("a" * 10_000_000))
    assert len(plain("\x1b" * 10_000_000)) == 3000 * 4
