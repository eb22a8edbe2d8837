"""Tables that fit a terminal: what is cut, what is left out, and what is not."""

from __future__ import annotations

from queuepool.cli.output import WHOLE, Columns
from tests.support.each import each

ID = "9f3c1a2b-0000-4000-8000-000000000000"
SPARE = ("attempts", "connection", "failed_at")
HEADERS = ["id", "connection", "queue", "class", "attempts", "failed_at", "exception"]
ROW = [ID, "redis", "high", "app.jobs.invoices.send_reminder", "1", "2026-11-25T03:00:00Z", "ValueError: " + "x" * 200]


def shown(room: int | None, headers: list[str] = HEADERS, row: list[str] = ROW) -> list[str]:
    columns = Columns(headers, [row], room, SPARE, WHOLE)
    return [*columns.lines([columns.titles, row]), *columns.left_out]


def test_a_pipe_gets_everything():
    title, line = shown(None)

    assert [word.upper() for word in HEADERS] == title.split()
    assert "  ".join(cell.ljust(len(name)) for cell, name in zip(ROW, HEADERS, strict=True)).rstrip() == line


@each("room", [60, 72, 80, 100, 130, 200])
def test_a_row_fits_and_ids_are_whole(room):
    title, line, *left_out = shown(room)

    assert room >= max(map(len, (title, line)))
    assert line.startswith(f"{ID}  ")
    assert [*SPARE[: len(left_out)]] == left_out
    assert ("~" in line, room < 105) == (True, "connection" in left_out)


def test_nothing_is_cut_where_there_is_room():
    assert shown(None) == shown(400)


def test_letters_of_two_columns_count_as_two():
    _, line, *_ = shown(80, row=[ID, "redis", "高い", "請求書" * 30, "1", "-", "エラー" * 30])

    assert 80 >= len(line) + sum(not letter.isascii() for letter in line)
