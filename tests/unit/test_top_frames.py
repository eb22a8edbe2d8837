"""Frames of ``top``: facts in, lines out."""

from __future__ import annotations

import os
import random
from pathlib import Path
from textwrap import dedent

import pytest

from queuepool.board.board import Board, State
from queuepool.board.counts import JobCounts, PoolCounts, QueueFacts
from queuepool.board.health import NOT_RUNNING, STUCK
from queuepool.top.frame import frame, report, table_of
from queuepool.top.layout import Display, Line, Style, plain_text, width
from queuepool.top.reading import Pace, PoolReading
from queuepool.top.tables import PAGES, Page
from queuepool.top.view import KeyCommand, Mode, View, asked
from tests.support.boards import NOW, board_with, busy, reading_of, some_counts
from tests.support.each import each

COUNTS = some_counts()
PACE = Pace((41.24, 0.1, 0.0), {"default": -4.0, "imports": 12.0}, COUNTS.jobs)


@pytest.fixture
def board(tmp_path: Path) -> Board:
    made = board_with(tmp_path)
    busy(made.slots[1], "app.mail")
    busy(made.slots[2], "app.resize", queue="high", hours=2, limit=2.2)
    return made


@pytest.fixture
def reading(board: Board) -> PoolReading:
    board.header.store_lost = NOW - 60
    return reading_of(board, COUNTS, PACE)


def shown(reading: PoolReading, view: View, columns: int, lines: int) -> list[str]:
    return [plain_text(line) for line in frame(reading, view, Display(columns, lines), NOW)]


def picture(text: str) -> list[str]:
    return dedent(text).strip("\n").split("\n")


def style_of(lines: list[Line], word: str) -> Style:
    """That of the span with this word."""
    return next(span.style for line in lines for span in line if word in span.text)


def test_workers_and_the_first_queues_on_80_columns(reading):
    assert shown(reading, View(), 80, 18) == picture("""
        queuepool default  running  up 3d00h  master 4526  generation 2
        ! the store has been away since 2027-01-15T07:59:00Z
        2 of 3 workers busy, 126 MB, failed jobs kept: 17  [||||||||||||||||||         ]
        done 1,234,000 (41.2/s)  failed 0 (0.1/s)  released 0 (0.0/s)
        store redis://127.0.0.1:6379/0  user app

        QUEUE      READY  DELAYED  RESERVED  OLDEST   CHANGE
        imports  10,000+        0         0   1h06m  +12.0/s  delayed jobs late: 1m01s
        default    1,234        5         2   1m05s   -4.0/s  paused
        and 1 more: press 2
        PROCESS    PID  STATE    JOB         QUEUE    RUNNING  LIMIT  DONE  FAILED
        worker 1  4531  busy     app.mail    default    1h00m    25%     0       0
        worker 2  4532  busy     app.resize  high       2h00m    91%     0       0
        worker 3  4533  idle     -           -              -      -     0       0
        steward   4530  running  -           -              -      -     -       -


        ? help  q quit  1 workers  2 queues  3 jobs
        """)


def test_queues(reading):
    assert shown(reading, View(page=Page.QUEUES), 120, 11)[6:] == picture("""
        QUEUE      READY  DELAYED  RESERVED  OLDEST   CHANGE  EMPTY IN  WAIT P95  QUARANTINED
        imports  10,000+        0         0   1h06m  +12.0/s         -         -            0  delayed jobs late: 1m01s
        default    1,234        5         2   1m05s   -4.0/s     5m08s      4.9s            1  paused
        high           0        0         0    0.0s        -         -         -            0
        ? help  q quit  1 workers  2 queues  3 jobs
        """)


def test_names_of_jobs(reading):
    assert shown(reading, View(page=Page.JOBS), 100, 10)[6:] == picture("""
        JOB         QUEUE     DONE  RELEASED  FAILED  KILLED  RUN P50  RUN P95  WAIT P95  TIME TAKEN
        app.resize  high        20         1       0       0    1m30s    1m57s         -      31m30s
        app.mail    default  5,000         0       3       2    0.17s    0.24s      4.9s      16m40s
        ? help  q quit  1 workers  2 queues  3 jobs
        """)


def test_a_small_terminal(reading):
    assert shown(reading, View(), 40, 10) == picture("""
        queuepool default  running  up 3d00h  m~
        ! the store has been away since 2027-01~
        2 of 3 workers busy, 126 MB, failed job~
        done 1,234,000 (41.2/s)  failed 0 (0.1/~
        store redis://127.0.0.1:6379/0  user app

         PID  STATE    JOB         RUNNING
        4531  busy     app.mail      1h00m
        4532  busy     app.resize    2h00m
        ? help  q quit  1 workers  2 queues  3 ~
        """)


def test_a_pool_that_counts_nothing_has_its_queues_and_no_figures_of_them(board):
    lines = shown(reading_of(board), View(page=Page.QUEUES), 80, 10)

    assert lines[3:8] == picture("""
        store redis://127.0.0.1:6379/0  user app

        QUEUE
        high     not measured
        default  not measured
        """)
    assert "done 1,234,000 (-)  failed 0 (-)  released 0 (-)" == lines[2]
    assert "nothing to show" in shown(reading_of(board), View(page=Page.JOBS), 80, 10)


def test_a_report_has_all_tables(reading):
    lines = report(reading, Display(160, None), NOW)

    assert 3 == lines.count("")
    assert {"QUEUE", "PROCESS", "JOB"} == {before_after(lines, index) for index, line in enumerate(lines) if not line}
    assert "id-of-2" in "\n".join(lines)


def before_after(lines: list[str], index: int) -> str:
    return lines[index + 1].split()[0]


def test_a_pool_that_has_ended_is_shown_as_it_was_last_seen(board):
    reading = reading_of(board, state=NOT_RUNNING)
    lines = frame(reading, View(row=3), Display(80, 24), NOW)

    assert "queuepool default  not running" == plain_text(lines[0]).partition("Z")[0][:30]
    assert "as last seen 2027-01-15T08:00:00Z:" == plain_text(lines[1])
    assert (Style.BAD, Style.FAINT) == (style_of(lines, "not running"), style_of(lines, "app.resize"))


def test_a_pool_that_never_ran_has_one_line_that_says_so():
    reading = PoolReading("default", 0.0, None, PoolCounts(), Pace(), "no live master in /run", runs=False)
    lines = shown(reading, View(), 80, 8)

    assert ["queuepool default  not running", "no live master in /run"] == [lines[0][:30], lines[1]]
    assert "nothing to show" in lines


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"state": STUCK}, "until queuepool continue or kill -CONT 4526"),
        ({"state": "paused"}, "until queuepool continue"),
        ({"state": "failing"}, "the steward dies again and again"),
        ({"beat_age": 12.0}, "the master has been busy or stuck for 12 s"),
        ({"alerts": [{"since": "2027-01-15T07:59:00Z", "text": "queue high: \x1b[2J"}]}, r"queue high: \x1b[2J"),
        ({"maintenance": True}, "maintenance mode"),
        ({"paused": ["high"]}, "paused queues: high"),
        ({"outdated": 2, "boot_problem": "no module app"}, "the new code does not become ready: no module app"),
        ({"outdated": 2, "boot_problem": None}, "restart under way: workers that still run the old code: 2"),
        ({"store_full": "2027-01-15T07:59:00Z"}, "the store has been full since 2027-01-15T07:59:00Z"),
        ({"failed_store_lost": "2027-01-15T07:59:00Z"}, "the failed store has been away since"),
        ({"orphans": 2}, "workers of a killed master still run, and a stop waits for them: 2"),
        ({"unrecorded": 4}, "failed jobs wait for the failed store: 4"),
    ],
)
def test_what_is_wrong_is_said_on_top(board, facts, words):
    lines = frame(reading_of(board, **facts), View(), Display(160, 24), NOW)

    assert words in plain_text(lines[1])
    assert Style.WARNING is style_of(lines, words)


def test_many_troubles_leave_room_for_the_workers(board):
    facts = {"state": "paused", "maintenance": True, "paused": ["high"], "unrecorded": 4, "outdated": 1}
    lines = shown(reading_of(board, boot_problem="", **facts), View(), 80, 12)

    assert "! and 2 more: see queuepool status" == lines[4]
    assert any("worker 1" in line for line in lines)


def test_a_job_near_its_limit_and_a_dead_worker_are_pointed_out(board):
    board.slots[3].dead = 1
    lines = frame(reading_of(board), View(row=3), Display(80, 24), NOW)

    assert [Style.PLAIN, Style.WARNING, Style.BAD] == [style_of(lines, f"worker {number}") for number in (1, 2, 3)]


def test_old_figures_of_a_queue_are_pointed_out(board):
    counts = PoolCounts(queues={"high": QueueFacts(3, measured_at=NOW - 90)})
    lines = frame(reading_of(board, counts), View(page=Page.QUEUES, row=1), Display(80, 24), NOW)

    assert Style.WARNING is style_of(lines, "measured 1m30s ago")


def test_the_chosen_row_is_in_sight(board):
    counts = PoolCounts(queues={f"q{number:03}": QueueFacts(number, measured_at=NOW) for number in range(300)})
    for row in (0, 150, 299, 100_000):
        lines = frame(reading_of(board, counts, queues=[]), View(page=Page.QUEUES, row=row), Display(80, 24), NOW)
        assert style_of(lines, f"q{299 - min(row, 299):03}") is Style.SELECTED


def test_the_page_of_queues_opens_with_the_worst_and_says_how_many_follow(board):
    """However many there are: none of them says that it is not measured."""
    queues = {f"tenant-{number:04}": QueueFacts(measured_at=NOW - 2) for number in range(2000)}
    queues |= {
        "tenant-1999": QueueFacts(7, oldest=30.0, measured_at=NOW),
        "tenant-0700": QueueFacts(7, measured_at=NOW),
    }
    reading = reading_of(board, PoolCounts(queues=queues), queues=[*queues])
    page, workers = shown(reading, View(page=Page.QUEUES), 80, 24), shown(reading, View(), 80, 24)

    assert ["tenant-1999", "tenant-0700", "tenant-0000"] == [row.split()[0] for row in page[6:9]]
    assert "more rows: 1,984 below" == page[-2]
    assert "more rows: 992 above, 992 below" == shown(reading, View(page=Page.QUEUES, row=1000), 80, 24)[-2]
    assert ["tenant-1999", "and 1,996 more: press 2"] == [workers[6].split()[0], workers[10]]
    assert "not measured" not in "".join(row.cells[-1] for row in table_of(reading, View(page=Page.QUEUES)).rows)


def test_a_filter_leaves_the_rows_that_have_the_text(reading):
    items = table_of(reading, View(filter="RESIZE")).items

    assert ["worker"] == [item.role for item in items]
    assert "only 'RESIZE'" in shown(reading, View(filter="RESIZE"), 80, 24)[-1]


@each("page", Page)
def test_every_order_has_all_rows_and_its_reverse(reading, page):
    for number in range(len(PAGES[page].orders)):
        found = table_of(reading, View(page=page, order=number)).items
        backwards = table_of(reading, View(page=page, order=number, is_reversed=True)).items
        assert found == backwards[::-1]
        assert len(found) == len(table_of(reading, View(page=page)).items)


def test_the_longest_running_job_comes_first_if_asked(reading):
    [first, *_] = table_of(reading, View(order=1)).items

    assert "app.resize" == first.job.name


def test_details_have_the_whole_id(board):
    board.slots[1].job_id = "i" * 100
    lines = shown(reading_of(board), View(mode=Mode.DETAILS), 60, 40)

    assert "i" * 100 in "".join(line[14:] for line in lines)


def test_a_question_is_whole_on_a_narrow_terminal(reading):
    question = f"Pause queue {'q' * 60!r} on all hosts?"
    lines = shown(reading, asked(View(), KeyCommand(("pause",), question)), 30, 14)

    assert question in "".join(lines)
    assert "y = yes, any other key = no" in lines


VIEWS = [
    View(),
    View(page=Page.QUEUES, row=99),
    View(page=Page.JOBS),
    View(mode=Mode.HELP),
    View(mode=Mode.DETAILS, row=2),
    View(mode=Mode.FILTER, filter="漢" * 60),
    asked(View(), KeyCommand(("pause",), "漢" * 200)),
]


@each("view", VIEWS)
@each(("columns", "lines"), [(1, 1), (2, 2), (7, 3), (40, 10), (80, 24), (300, 80)])
def test_a_frame_is_as_large_as_the_terminal(reading, view, columns, lines):
    found = frame(reading, view, Display(columns, lines), NOW)

    assert lines == len(found)
    assert max(sum(width(span.text) for span in line) for line in found) <= columns


@pytest.mark.thorough("at random; a board that is cut short makes a frame below, and any slot is read in test_board")
@pytest.mark.bad_input("B138")
@pytest.mark.by_turns("first")
@pytest.mark.parametrize("first", range(0, 20, 2))
@each("number", range(2))
def test_a_board_full_of_nonsense_makes_a_frame_of_the_same_size(board, first, number):
    """Everything but what the board needs to be opened; also the names and numbers of the meters."""
    noise = random.Random(first + number)
    for slot in board.slots:
        board.memory[slot.base : slot.base + slot.size] = noise.randbytes(slot.size)
        slot.role, slot.state = noise.choice([1, 2, 3]), noise.choice([State.BUSY, 10**18, -1])
    header = board.header
    start = type(header).master_pid.offset
    board.memory[start : header.size] = noise.randbytes(header.size - start)
    header.used = len(board.slots)
    name = noise.randbytes(200).decode("utf-8", "replace")
    counts = PoolCounts(
        {(name, name): JobCounts(done=-5, failed=2**63)},
        queues={name: QueueFacts(2**62, -1, 2**63, -7, oldest=1e308, overdue=-1e308, measured_at=-1e300)},
        failed_jobs=2**63 - 1,
    )
    pace = Pace((1e300, -1e300, 0.0), {name: -1e-300}, counts.jobs)
    for view in VIEWS:
        for columns, lines in ((80, 24), (300, 80), (9, 5)):
            found = frame(reading_of(board, counts, pace, store=name), view, Display(columns, lines), NOW)
            assert lines == len(found)
            assert max(sum(width(span.text) for span in line) for line in found) <= columns
            assert all(span.text.isprintable() for line in found for span in line)


@pytest.mark.bad_input("B138")
def test_a_board_that_is_cut_short_makes_a_frame(board):
    os.truncate(board.path, 4096)

    assert 24 == len(shown(reading_of(board), View(), 80, 24))
