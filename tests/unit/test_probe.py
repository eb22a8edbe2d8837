"""The probe: where it looks, what it refuses, what it takes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest

import queuepool_probe
from queuepool.board.board import Board, Header, Role, Slot, State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import overview
from queuepool.config.settings import PoolSettings
from tests.support.probing import PROBE, PYTHON, probe


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    """The board of a pool whose master is this process, with an idle worker."""
    runtime = RuntimeDir(PoolSettings(runtime_dir=tmp_path))
    runtime.claim()
    board = runtime.new_board(capacity=4)
    header, slot = board.header, board.slots[2]
    header.state, header.target, header.beat, header.ready = State.RUNNING, 1, time.monotonic(), time.time()
    board.allocate(slot)
    slot.begin(Role.WORKER, 1, 1)
    slot.state = State.IDLE
    yield board
    board.unlink()
    runtime.release()


def asked(question: str, folder: Path, *flags: str) -> tuple[int, str]:
    """The exit code, and the one line that it wrote."""
    done = probe(question, folder, *flags)
    [line] = (done.stdout + done.stderr).splitlines()
    return done.returncode, line


_OF_HEADER = (
    "CAPACITY", "MASTER_PID", "MASTER_START_TIME", "STATE", "TARGET", "USED", "STORE_LOST", "BEAT", "READY",
)  # fmt: skip


def test_the_probe_knows_where_the_board_has_its_fields():
    header = {name: vars(Header)[name.lower()].offset for name in _OF_HEADER}
    slot = {"ROLE": Slot.role.offset, "DEAD": Slot.dead.offset, "SLOT_STATE": Slot.state.offset}  # type: ignore[attr-defined]

    assert {name: getattr(queuepool_probe, name) for name in header | slot} == header | slot


def test_the_probe_knows_what_the_numbers_mean(board):
    assert [state.name.lower() for state in State] == list(queuepool_probe.STATES)
    assert (Role.WORKER, board.header.magic) == (queuepool_probe.WORKER, queuepool_probe.MAGIC)
    assert board.slots[0].base == queuepool_probe.HEADER


@pytest.mark.parametrize("question", ["live", "started", "ready"])
def test_a_pool_at_work_is_live_started_and_ready(board, tmp_path, question):
    code, line = asked(question, tmp_path)

    assert 0 == code
    assert line.startswith(f"pool default: {question}")


def test_another_process_of_the_pool_finds_the_directory_by_the_environment(board, tmp_path):
    variables = {"QUEUEPOOL_POOL_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run([*PYTHON, PROBE, "live"], env=variables, capture_output=True, check=False)

    assert (0, b"") == (done.returncode, done.stderr)


NOT_READY: dict[str, tuple[Callable[[Board], None], str]] = {
    "starting": (lambda board: setattr(board.header, "state", State.STARTING), "not ready, it is starting"),
    "draining": (lambda board: setattr(board.header, "state", State.DRAINING), "not ready, it is draining"),
    "failing": (lambda board: setattr(board.header, "state", State.FAILING), "not ready, it is failing"),
    "no store": (lambda board: setattr(board.header, "store_lost", time.time() - 100), "its store has been away for 1"),
    "scaled to 0": (lambda board: setattr(board.header, "target", 0), "it was scaled to 0 workers"),
    "maintenance": (lambda board: setattr(board.slots[2], "state", State.PAUSED), "no worker takes jobs"),
    "dead worker": (lambda board: setattr(board.slots[2], "dead", 1), "no worker takes jobs"),
    "hanging": (lambda board: setattr(board.header, "beat", time.monotonic() - 200), "loop last came round 2"),
}


@pytest.mark.parametrize("what", NOT_READY)
def test_a_pool_that_takes_no_jobs_is_not_ready(board, tmp_path, what):
    change, words = NOT_READY[what]
    change(board)
    code, line = asked("ready", tmp_path)

    assert 1 == code
    assert words in line


def test_a_store_that_was_lost_a_moment_ago_changes_nothing(board, tmp_path):
    board.header.store_lost = time.time() - 5

    assert 0 == asked("ready", tmp_path)[0]


@pytest.mark.by_turns("state")
@pytest.mark.parametrize("state", [State.STARTING, State.PAUSED, State.DRAINING, State.FAILING])
def test_a_pool_is_live_whatever_its_state_and_its_store(board, tmp_path, state):
    board.header.state, board.header.store_lost, board.slots[2].dead = state, 1.0, 1

    assert [0, 0] == [asked(question, tmp_path)[0] for question in ("live", "started")]


def test_a_master_of_a_version_without_a_beat_has_no_age(board):
    first = overview("default", board).beat_age
    board.header.beat = 0.0

    assert 0.0 <= first < 60.0
    assert overview("default", board).beat_age is None


def test_a_pool_without_modules_is_live_and_not_started(board, tmp_path):
    board.header.ready = 0.0

    assert (1, "pool default: starting, no worker has imported the modules yet") == asked("started", tmp_path)
    assert 0 == asked("live", tmp_path)[0]


def test_the_beat_may_be_as_old_as_was_asked_for(board, tmp_path):
    board.header.beat = time.monotonic() - 100

    assert [1, 0] == [asked("live", tmp_path, "--max-age", age)[0] for age in ("100", "3600")]


DAMAGE: dict[str, tuple[Callable[[Board], object], str]] = {
    "other version": (lambda board: setattr(board.header, "magic", 7), "is of another version of queuepool"),
    "cut": (lambda board: os.truncate(board.path, 1000), "has no beat"),
    "empty": (lambda board: os.truncate(board.path, 0), "is of another version of queuepool"),
    "no beat": (lambda board: setattr(board.header, "beat", 0.0), "has no beat"),
    "beat to come": (lambda board: setattr(board.header, "beat", 1e300), "has no beat"),
    "beat is NaN": (lambda board: setattr(board.header, "beat", float("nan")), "has no beat"),
    "capacity 0": (lambda board: setattr(board.header, "capacity", 0), "is damaged"),
    "capacity 2**62": (lambda board: setattr(board.header, "capacity", 2**62), "is damaged"),
    "used -1": (lambda board: setattr(board.header, "used", -1), "is damaged"),
    "state 99": (lambda board: setattr(board.header, "state", 99), "it is unknown"),
    "FIFO": (lambda board: (board.path.unlink(), os.mkfifo(board.path)), "cannot be read"),
}


@pytest.mark.by_turns("how")
@pytest.mark.bad_input("B165")
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_board_is_refused_in_a_line(board, tmp_path, how):
    damage, words = DAMAGE[how]
    damage(board)
    code, line = asked("ready", tmp_path)

    assert 1 == code
    assert words in line


def test_a_board_that_was_removed_is_read_all_the_same(board, tmp_path):
    board.path.unlink()

    assert 0 == asked("live", tmp_path)[0]


PLACES: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "missing": (lambda path: path.rename(path.with_name("elsewhere")), 3, "there is no "),
    "link": (lambda path: path.symlink_to(path.rename(path.with_name("elsewhere"))), 1, "with mode 0700"),
    "open to all": (lambda path: path.chmod(0o755), 1, "with mode 0700"),
    "a file": (lambda path: (path.rename(path.with_name("elsewhere")), path.touch(0o700)), 1, "with mode 0700"),
    "no pidfile": (lambda path: (path / "master.pid").unlink(), 3, "no pool runs in"),
    "a free pidfile": (lambda path: ((path / "master.pid").unlink(), (path / "master.pid").touch()), 3, "has ended"),
    "FIFO as pidfile": (lambda path: ((path / "master.pid").unlink(), os.mkfifo(path / "master.pid")), 3, "has ended"),
}


@pytest.mark.bad_input("B163", "B164")
@pytest.mark.parametrize("what", PLACES)
def test_a_directory_that_is_not_the_pools_is_refused_in_a_line(tmp_path, what):
    runtime = RuntimeDir(PoolSettings(runtime_dir=tmp_path))
    runtime.claim()
    change, expected, words = PLACES[what]
    change(runtime.path)
    code, line = asked("live", tmp_path)

    assert expected == code
    assert words in line


@pytest.mark.by_turns("arguments")
@pytest.mark.bad_input("B162")
@pytest.mark.parametrize("arguments", ["", "alive", "live ready", "live --dir", "live --host x", "--dir x live"])
def test_a_command_line_that_means_nothing_gets_the_usage(arguments):
    done = subprocess.run([*PYTHON, PROBE, *arguments.split()], capture_output=True, text=True, check=False)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("Usage: queuepool-probe live|started|ready ")


@pytest.mark.by_turns("value")
@pytest.mark.bad_input("B162")
@pytest.mark.parametrize(
    ("flag", "value"),
    [("max-age", value) for value in ("", "0", "-1", "nan", "inf", "15s")]
    + [("pool", value) for value in ("", "..", "a/b", "../etc")],
)
def test_a_value_that_means_nothing_is_named(tmp_path, flag, value):
    code, line = asked("live", tmp_path, f"--{flag}={value}")

    assert 2 == code
    assert line.startswith(f"--{flag} {value!r} is not ")


def test_the_usage_is_no_mistake():
    done = subprocess.run([*PYTHON, PROBE, "--help"], capture_output=True, text=True, check=False)

    assert (0, queuepool_probe.USAGE) == (done.returncode, done.stdout)


def test_closed_streams_change_no_answer(board, tmp_path):
    for question, expected in (("live", 0), ("nonsense", 2)):
        command = f'"$@" {question} --dir {tmp_path} >&- 2>&-'

        assert expected == subprocess.run(["sh", "-c", command, "sh", *PYTHON, PROBE], check=False).returncode


def test_the_probe_imports_what_the_interpreter_brings_and_no_package():
    before = "import fcntl, os, struct, sys, time; before = set(sys.modules); "
    names = f"{before}import queuepool_probe; print(*set(sys.modules) - before)"
    command = [sys.executable, "-S", "-c", names]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROBE.parent, check=True)

    assert {"queuepool_probe", "__future__"} == set(done.stdout.split())


@pytest.mark.thorough("a measurement; what it imports is held by the test above")
def test_the_probe_takes_little_more_than_its_interpreter(board, tmp_path):
    bare = median(processor_time([*PYTHON, "-c", "pass"]) for _ in range(9))
    whole = median(
        processor_time([*PYTHON, str(PROBE), "live", "--dir", str(tmp_path), "--max-age", "3600"]) for _ in range(9)
    )

    assert whole < 3 * bare + 0.01


def processor_time(command: list[str]) -> float:
    """User and system seconds of one run, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
