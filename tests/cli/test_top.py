"""``queuepool top`` on a real terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from queuepool.board.board import Board, Role, State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import ConnectionSettings, PoolSettings
from tests.support.boards import busy, process
from tests.support.commands import queuepool
from tests.support.eventually import eventually
from tests.support.processes import halt
from tests.support.terminal import CTRL_C, CTRL_Z, DOWN, ENTER, ESCAPE, Terminal, terminal

EVIL = "\x1b[2J\x1b]0;pwned\x07\r\n\u202e漢字e\u0301"


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    """The flags that say where the pools are."""
    return ["--runtime-dir", str(tmp_path / "run")]


def standing(tmp_path: Path, name: str = "default") -> tuple[RuntimeDir, Board]:
    """A pool whose master is this process, with a steward and two workers, one of them busy."""
    connection = ConnectionSettings(url=f"sqlite:///{tmp_path}/queue.db")
    runtime = RuntimeDir(PoolSettings(name=name, connection=connection, runtime_dir=tmp_path / "run"))
    runtime.claim()
    board = runtime.new_board(8)
    board.header.state, board.header.target, board.header.generation = State.RUNNING, 2, 1
    process(board, 0, Role.STEWARD, 0, State.RUNNING)
    for number in (1, 2):
        process(board, number, Role.WORKER, number, State.IDLE)
    busy(board.slots[2], "app.mail", queue="high")
    return runtime, board


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    runtime, made = standing(tmp_path)
    yield made
    made.unlink()
    runtime.release()


@pytest.fixture
def top(tmp_path: Path, board: Board, place: list[str]) -> Iterator[Terminal]:
    """It shows that pool."""
    with terminal("top", *place, cwd=tmp_path) as found:
        found.shows("queuepool default  running", "? help")
        yield found


def test_it_shows_workers_follows_the_board_and_ends_with_q(top, board):
    text = top.shows("worker 1", "worker 2", "app.mail", "1 of 2 workers busy")
    assert text.splitlines()[-1].startswith("? help")

    busy(board.slots[1], "app.report")
    top.shows("app.report", "2 of 2 workers busy")
    top.press("q")

    assert 0 == top.ends()


def test_ctrl_c_gives_the_terminal_back_and_exits_with_130(top):
    top.press(CTRL_C)

    assert 130 == top.ends()
    assert b"\x1b[?25h" in top.sent  # the cursor


def test_term_gives_the_terminal_back(top):
    top.process.kill(signal.SIGTERM)

    assert 0 == top.ends()
    assert b"\x1b[?25h" in top.sent


def test_pages_help_details_and_a_filter(top):
    top.press("2")
    top.shows("QUEUE", "not measured")
    top.press("3")
    top.shows("nothing to show")
    top.press("?")
    top.shows("names of jobs", "PgUp")
    top.press("x1")
    top.shows("worker 1")
    top.press(DOWN + ENTER)
    top.shows("time left", "id-of-2")
    top.press("x/mail" + ENTER)
    eventually(lambda: "worker 1" not in top.text() and "worker 2" in top.text())
    top.press(ESCAPE)
    top.shows("worker 1", "worker 2")


def test_a_frozen_frame_stays(top, board):
    top.press(" ")
    top.shows("FROZEN")
    busy(board.slots[1], "app.report")
    top.press("2")
    top.shows("not measured")
    top.press("1")
    assert "app.report" not in top.shows("worker 1", "FROZEN")
    top.press(" ")
    top.shows("app.report")


def test_it_follows_the_size_of_the_terminal(top):
    for columns, lines in ((300, 80), (40, 10), (20, 4), (80, 24)):
        top.resize(columns, lines)
        top.shows("queuepool default"[:columns])
        eventually(lambda: "? help" in top.text().split("\n")[-1])
    top.resize(1, 1)
    top.press("q")

    assert 0 == top.ends()


@pytest.mark.bad_input("B139")
@pytest.mark.thorough("300 sizes; the tests around it have a few")
def test_a_storm_of_resizes_is_survived(top):
    for number in range(300):
        top.resize(40 + number % 50, 10 + number % 20)
    top.resize(100, 30)
    top.shows("queuepool default  running", "1 of 2 workers busy")

    eventually(lambda: "? help" in top.text().split("\n")[-1])


@pytest.mark.bad_input("B139")
def test_it_stops_for_ctrl_z_and_comes_back_to_a_terminal_of_another_size(tmp_path, board, place):
    """A shell's job: the kernel tells a new size only to the processes in the foreground."""
    shell = "set -m; {}; echo is stopped; until [ -e go ]; do sleep 0.1; done; fg"
    with terminal("top", *place, cwd=tmp_path, shell=shell) as found:
        found.shows("queuepool default  running", "? help")
        found.press(CTRL_Z)
        found.shows("is stopped")
        found.resize(120, 40)
        (tmp_path / "go").touch()

        eventually(lambda: "? help" in found.text().split("\n")[-1])
        found.shows("queuepool default  running")
        found.press("q")
        assert 0 == found.ends()


@pytest.mark.bad_input("B137")
def test_names_on_the_board_move_no_cursor(top, board):
    board.slots[2].job = f"{EVIL}{'x' * 500}"
    board.slots[2].queue = EVIL
    lines = top.shows(r"\x1b[2J").splitlines()

    assert "queuepool default  running" == lines[0][:26]
    assert b"pwned\x07" not in top.sent
    assert not {"\u202e", "\x07"} & set(top.sent.decode("utf-8", "replace").replace("\x0f", ""))


@pytest.mark.thorough("unit/test_top_text.py counts the cells of letters")
@pytest.mark.bad_input("B137")
def test_wide_and_combining_letters_leave_the_columns_where_they_are(top, board):
    board.slots[1].job_id = board.slots[2].job_id = "same"
    for slot, name in zip(board.slots[1:3], ("漢字한국어", "cafe\u0301"), strict=True):
        busy(slot, name, queue="high")
    text = top.shows("漢字", "caf")
    rows = [number for number, line in enumerate(text.splitlines()) if line.startswith("worker ")]
    columns = [[top.screen.buffer[row][column].data for column in range(80)] for row in rows]

    assert 2 == len(rows)
    places = ["".join(cell or "\0" for cell in row) for row in columns]
    titles = next(line for line in text.splitlines() if line.startswith("PROCESS"))
    assert [titles.index("QUEUE")] * 2 == [cells(row).index("h") for row in columns], places


def cells(row: list[str]) -> list[str]:
    """From the job on: its own letters have none of ``h``."""
    return ["" if number < 20 else cell for number, cell in enumerate(row)]


@pytest.mark.thorough("names of evil letters are escaped in a test above")
@pytest.mark.bad_input("B137")
def test_a_locale_without_unicode_gets_escapes(tmp_path, board, place):
    board.slots[2].job = "café.mail"
    with terminal("top", *place, cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0") as found:
        found.shows(r"caf\xe9.mail")
        assert found.sent.isascii()


@pytest.mark.thorough("one line reads the variable, as in the log, of which test_log_on_a_terminal.py has it")
def test_no_color_sends_none(tmp_path, board, place):
    board.header.state = State.FAILING
    with terminal("top", *place, cwd=tmp_path, NO_COLOR="1") as found:
        found.shows("the steward dies again and again")
        assert b"\x1b[31" not in found.sent
        assert b"\x1b[33" not in found.sent
    with terminal("top", *place, cwd=tmp_path) as found:
        found.shows("the steward dies again and again")
        eventually(lambda: found.text() and b"\x1b[33" in found.sent)


@pytest.mark.by_turns("kind")
@pytest.mark.parametrize("kind", ["dumb", "no-such-terminal", ""])
def test_a_terminal_that_cannot_be_drawn_on_gets_one_frame(tmp_path, board, place, kind):
    with terminal("top", *place, cwd=tmp_path, TERM=kind) as found:
        assert 0 == found.ends()

    assert b"app.mail" in found.sent
    assert b"\x1b" not in found.sent


@pytest.mark.bad_input("B138")
def test_a_board_that_a_job_overwrites_again_and_again_is_drawn(top, board):
    first = board.slots[1].base
    for _ in range(50):
        board.memory[first : first + 2 * len(board.slots[1].facts)] = os.urandom(2 * len(board.slots[1].facts))
        board.memory[4096 - 3000 : 4096] = os.urandom(3000)
        top.text()
    board.slots[1].facts = board.slots[1].facts._replace(role=Role.WORKER, number=1)
    board.header.paused = ""
    top.shows("queuepool default", "? help")


def test_once_is_plain_text_with_all_tables(tmp_path, board, place):
    done = queuepool("top", "--once", *place, cwd=tmp_path, env={"COLUMNS": "200"})

    assert (0, "") == (done.returncode, done.stderr)
    assert ["queuepool default  running", "worker 2"] == [
        done.stdout[:26],
        done.stdout[done.stdout.index("worker 2") :][:8],
    ]
    assert "rates: over 1 s" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.bad_input("B140")
def test_once_of_no_pool_exits_with_3_and_says_where_it_looked(tmp_path, place):
    one, all_of_them = (queuepool("top", "--once", *place, *more, cwd=tmp_path) for more in ([], ["--all"]))

    assert (3, 3) == (one.returncode, all_of_them.returncode)
    assert "queuepool default  not running" in one.stdout
    assert f"no live master in {tmp_path}/run/default" in one.stdout
    assert f"no pool runs in {tmp_path}/run\n" == all_of_them.stderr


@pytest.mark.thorough("test_is_the_pool_well.py says it of each state")
@pytest.mark.bad_input("B140")
@pytest.mark.parametrize(
    ("fact", "words"),
    [({"state": State.FAILING}, "the steward dies again and again"), ({"target": 0}, "it was scaled to 0 workers")],
)
def test_once_exits_with_4_when_the_pool_runs_no_jobs(tmp_path, board, place, fact, words):
    for name, value in fact.items():
        setattr(board.header, name, value)
    done = queuepool("top", "--once", *place, cwd=tmp_path)

    assert 4 == done.returncode
    assert words in done.stdout


@pytest.mark.bad_input("B140")
def test_all_shows_every_pool_in_the_directory_and_passes_over_what_is_none(tmp_path, board, place):
    other, others = standing(tmp_path, "other")
    for name in ("file", "empty"):
        (tmp_path / "run" / name).mkdir(mode=0o700) if name == "empty" else (tmp_path / "run" / name).touch()
    (tmp_path / "run" / "link").symlink_to(tmp_path / "run" / "other")
    done = queuepool("top", "--once", "--all", *place, cwd=tmp_path)
    with terminal("top", "--all", *place, cwd=tmp_path) as found:
        found.shows("queuepool default  running", "Tab next pool")
        found.press("\t")
        found.shows("queuepool other  running")
        others.unlink()
        other.release()
        found.shows("queuepool default  running")

    assert 0 == done.returncode
    assert 2 == done.stdout.count("  running  up")


@pytest.mark.thorough("test_verbs.py says of a killed master what status says")
def test_a_pool_that_is_killed_is_shown_as_such_and_its_successor_when_it_comes(site):
    place = ["--runtime-dir", str(site.path / "run")]
    with terminal("top", *place, cwd=site.path) as found:
        found.shows("queuepool default  not running", "no live master")
        with site.pool("--workers", "1") as pool:
            found.shows("queuepool default  running", "worker 1", f"master {pool.pid}")
            pool.kill_all()
            pool.runtime = str(site.path / "nothing")  # what it has left is the next one's
            found.shows("queuepool default  not running", "as last seen", "worker 1")
        with site.pool("--workers", "2") as pool:
            found.shows("queuepool default  running", "worker 2", f"master {pool.pid}")


def test_a_key_asks_and_runs_its_verb(site):
    place = ["--runtime-dir", str(site.path / "run")]
    with site.pool("--workers", "1") as pool, terminal("top", *place, *site.where, cwd=site.path, columns=100) as found:
        found.shows("queuepool default  running", "0 of 1 workers busy")
        found.press("P")
        found.shows(f"Pause pool 'default' (master {pool.pid})?", "y = yes, any other key = no")
        found.press("n")
        eventually(lambda: "y = yes" not in found.text())
        found.shows("queuepool default  running")

        found.press("Py")
        found.shows("queuepool default  paused", "pool default: paused: its workers start no more jobs")


@pytest.mark.thorough("the test before it pauses by its key; each other key's verb is in unit/test_top_keys.py")
def test_keys_run_the_verbs_of_their_names(site):
    place = ["--runtime-dir", str(site.path / "run")]
    with site.pool("--workers", "1") as pool, terminal("top", *place, *site.where, cwd=site.path, columns=100) as found:
        site.run("pause", *place, *site.where)
        found.shows("queuepool default  paused")
        found.press("Py")
        found.shows("queuepool default  running", "pool default: continues")
        found.press("+y")
        found.shows("0 of 2 workers busy", "pool default has 2 workers")
        found.press("2Qy")
        found.shows("its queues are paused: default", "queue default: paused on all hosts")
        found.press("Qy")
        found.shows("queue default: continues")
        found.press("Ry")
        found.shows("generation 2", "its workers are being replaced, each after its job")  # the verb has ended, too
        halt(pool.pid)
        found.shows("queuepool default  stopped by a signal", f"kill -CONT {pool.pid}")
        found.press("Py")
        found.shows("queuepool default  running")


def test_a_verb_that_fails_says_why(tmp_path, board, place):
    with terminal("top", *place, cwd=tmp_path, columns=120, QUEUEPOOL_CONFIG=str(tmp_path / "no.ini")) as found:
        assert 78 == found.ends()  # as any verb
    with terminal("top", "--all", *place, cwd=tmp_path, columns=120) as found:
        found.shows("queuepool default  running")
        board.header.target = 2**40
        found.shows("of 1.1T workers busy")
        found.press("+y")
        found.shows("failed with exit code 2: queuepool scale: ")
        found.press("2Q")
        found.shows("refused: the pool's store is not this command's")


@pytest.mark.thorough("a leak shows in hours; that it is drawn again and again is in the tests above")
def test_it_leaves_no_files_open_and_sends_the_pool_nothing(top, board):
    me = psutil.Process(top.process.pid)
    before, frames = me.num_fds(), len(top.sent)
    for number in range(10):
        busy(board.slots[1], f"job{number}")
        top.shows(f"job{number} ")

    assert len(top.sent) > frames
    assert me.num_fds() <= before + 1  # at the moment of a look
    assert me.num_threads() == 1
