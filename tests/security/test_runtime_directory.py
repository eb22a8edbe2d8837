"""The pool refuses a runtime directory that another user may have prepared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from queuepool.board import runtime_dir
from queuepool.board.about import About
from queuepool.board.blame import Blame
from queuepool.board.board import Board, BoardName, Role
from queuepool.board.runtime_dir import Pidfile, RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.errors import ConfigError, NotRunning, PoolRunning, WorkerDied
from queuepool.payload.lease import Lease
from queuepool.settlement import deferred_hooks
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.unix import proc
from tests.support.commands import ROOT
from tests.support.each import each

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
NOBODY = 65534
CLAIM = """
import sys
from pathlib import Path
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
RuntimeDir(PoolSettings(name="p", runtime_dir=Path(sys.argv[1]))).claim()
print("claimed", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir(mode=0o755)
    return path


@pytest.fixture
def runtime(place: Path) -> RuntimeDir:
    return RuntimeDir(PoolSettings(name="p", runtime_dir=place))


@pytest.fixture
def pool(place: Path) -> Path:
    """The pool's own directory, there already."""
    path = place / "p"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def another(place: Path) -> Iterator[Callable[[], int]]:
    """Another process becomes the master; gives its pid."""
    started: list[subprocess.Popen[str]] = []

    def claim() -> int:
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-c", CLAIM, str(place)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started.append(subprocess.Popen(command, env=env, text=True, **pipes))
        assert started[0].stdout
        assert "claimed\n" == started[0].stdout.readline()
        return started[0].pid

    yield claim
    for process in started:
        process.communicate()


def refusal(runtime: RuntimeDir) -> str:
    with pytest.raises(ConfigError) as caught:
        runtime.claim()
    return str(caught.value)


# The directory


def test_a_directory_is_made_private_whatever_the_umask(runtime, place):
    before = os.umask(0)
    try:
        deep = RuntimeDir(PoolSettings(name="p", runtime_dir=place / "deep" / "deeper"))
        deep.claim()
    finally:
        os.umask(before)

    assert 0o700 == deep.path.stat().st_mode & 0o777
    assert 0o755 == deep.path.parent.stat().st_mode & 0o777
    assert 0o600 == (deep.path / "master.pid").stat().st_mode & 0o777
    deep.release()


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777, 0o1777])
def test_a_directory_that_others_can_enter_is_refused(runtime, pool, mode):
    pool.chmod(mode)

    assert f"runtime_dir: {pool} is open to others (mode {mode:04o}): chmod 700 {pool}" == refusal(runtime)


def test_a_link_or_a_file_in_place_of_the_directory_is_refused(runtime, place, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (place / "p").symlink_to(tmp_path / "elsewhere")

    assert f"runtime_dir: {place}/p is a symbolic link: remove it" == refusal(runtime)
    assert [] == list((tmp_path / "elsewhere").iterdir())
    (place / "p").unlink()
    (place / "p").touch()
    assert str(place / "p") in refusal(runtime)


def test_a_place_that_everybody_can_write_to_is_refused_unless_it_is_sticky(runtime, place):
    place.chmod(0o777)
    said = refusal(runtime)
    place.chmod(0o1777)
    runtime.claim()
    runtime.release()

    assert f"runtime_dir: {place} is writable by every user: chmod o-w {place}, or choose another place" == said


def test_a_place_above_that_everybody_can_write_to_is_refused(place, tmp_path):
    tmp_path.chmod(0o777)

    assert f"{tmp_path} is writable by every user" in refusal(RuntimeDir(PoolSettings(runtime_dir=place)))


@needs_root
def test_a_directory_or_a_place_of_another_user_is_refused(runtime, place, pool):
    os.chown(pool, NOBODY, -1)
    said = refusal(runtime)
    os.chown(pool, 0, -1)
    os.chown(place, NOBODY, -1)

    assert f"runtime_dir: {pool} belongs to another user (uid {NOBODY}): have it removed" == said
    assert f"{place} belongs to another user (uid {NOBODY})" in refusal(runtime)


BASE = """
import os, sys
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
import tempfile  # before the rights are gone that it may take to read it
os.setuid(int(sys.argv[1]))
print(RuntimeDir(PoolSettings(name="p")).path)
"""


@pytest.mark.by_turns("mode", "chosen")
@needs_root
@pytest.mark.parametrize(("mode", "chosen"), [(0o1777, "{}"), (0o777, "/dev/shm")])
def test_the_default_place_is_one_where_nobody_can_exchange_it(mode, chosen):
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, mode)
        env = {"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": name}
        done = subprocess.run(
            [sys.executable, "-c", BASE, str(NOBODY)], env=env, capture_output=True, text=True, check=True
        )

        assert f"{chosen.format(name)}/queuepool-{NOBODY}/p\n" == done.stdout
        with suppress(FileNotFoundError):  # another run of the tests beside this one has the same place
            Path(done.stdout.strip()).parent.rmdir()


def prepared_link(path: Path) -> None:
    path.symlink_to("/nowhere")


@pytest.mark.thorough("where the place is safe is in the test before it, and what is refused in those above")
@needs_root
@each(
    ("prepare", "problem"),
    [
        (Path.mkdir, "belongs to another user (uid 0): have it removed"),
        (Path.touch, "is not a directory: remove it"),
        (prepared_link, "is a symbolic link: remove it"),
        (lambda path: path.mkdir() or os.chown(path, NOBODY, -1), "is open to others (mode 0755): chmod 700 "),
    ],
)
def test_what_is_in_the_default_place_already_is_called_what_it_is(prepare, problem):
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o1777)
        prepare(Path(name, f"queuepool-{NOBODY}"))
        env = {"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": name}
        done = subprocess.run(
            [sys.executable, "-c", BASE, str(NOBODY)], env=env, capture_output=True, text=True, check=False
        )

    assert f"runtime_dir: {name}/queuepool-{NOBODY} {problem}" in done.stderr
    assert ", or set runtime_dir" in done.stderr


# The pidfile


def plant_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "precious")


PLANTED: list[Callable[[Path], object]] = [plant_link, os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_no_file_in_place_of_the_pidfile_is_refused_and_not_touched(runtime, place, pool, plant):
    (place / "precious").write_text("precious")
    plant(pool / "master.pid")

    assert f"runtime_dir: {pool}/master.pid" in refusal(runtime)
    with pytest.raises(NotRunning):
        runtime.master_pid()
    assert "precious" == (place / "precious").read_text()


@needs_root
def test_a_pidfile_of_another_user_is_refused(runtime, pool):
    (pool / "master.pid").touch()
    os.chown(pool / "master.pid", NOBODY, -1)

    assert f"{pool}/master.pid is not a file of yours: remove it" in refusal(runtime)


def test_the_master_is_who_holds_the_lock_whatever_the_pidfile_says(runtime, pool, another):
    pid, texts = another(), ["1\n", "", "x", "-1", "9" * 5000, "\0"]
    found = []
    for text in texts:
        (pool / "master.pid").write_text(text)
        found.append(runtime.master_pid())

    assert [pid] * len(texts) == found
    with pytest.raises(PoolRunning, match=f"already running \\(pid {pid}, in "):
        runtime.claim()


def test_a_start_waits_for_the_last_steward_which_holds_the_lock_while_it_clears_up(pool, place, monkeypatch):
    monkeypatch.setattr(runtime_dir, "_LOCK_WAIT", 60.0)  # else its end is to come within two seconds of the first try
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    tries = list[int]()
    with subprocess.Popen([sys.executable, "-c", CLAIM, str(place)], cwd=ROOT, text=True, **pipes) as steward:

        def refused(pid: int) -> PoolRunning:
            tries.append(pid)
            if len(tries) == 15:  # on a slow disk
                steward.kill()
            return PoolRunning("p", pid, pool)

        assert steward.stdout
        assert "claimed\n" == steward.stdout.readline()
        pidfile = Pidfile(pool / "master.pid", refused)
        pidfile.claim(lambda: None)

    assert pidfile.is_ours
    assert {steward.pid} == set(tries)
    pidfile.close()


def test_a_start_beside_a_master_is_refused_at_once(pool, another):
    pid, tries = another(), list[int]()
    Board.create(pool / str(BoardName.of(pid)), 1)

    def refused(pid: int) -> PoolRunning:
        tries.append(pid)
        return PoolRunning("p", pid, pool)

    with pytest.raises(PoolRunning):
        Pidfile(pool / "master.pid", refused).claim(lambda: None)
    assert [pid] == tries


def test_a_pidfile_that_nobody_holds_names_nobody(runtime, pool):
    (pool / "master.pid").write_text(f"{os.getppid()}\n")

    with pytest.raises(NotRunning):
        runtime.master_pid()


ASK = """
import os, sys
from pathlib import Path
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
os.setuid(int(sys.argv[2]))
try:
    RuntimeDir(PoolSettings(name="p", runtime_dir=Path(sys.argv[1]))).master_pid()
except Exception as error:
    print(type(error).__name__)
"""


@needs_root
def test_nobody_is_led_to_signal_a_process_by_another_users_directory():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        pool = Path(name, "p")
        pool.mkdir(mode=0o700)
        (pool / "master.pid").touch()
        os.chown(pool, NOBODY - 1, -1)
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-c", ASK, name, str(NOBODY)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)

    assert "ConfigError\n" == done.stdout


# What lies beside it


def others(ours: Board, runtime: RuntimeDir) -> list[Board]:
    """The boards that a steward looks after besides its own."""
    return [board for board in OrphanedBoards(ours, runtime, Blame(ours.header)).boards() if board is not ours]


def test_what_is_left_alone_is_a_living_masters_else_that_of_the_first_board_with_a_steward(runtime):
    runtime.claim()
    names = [str(BoardName(number, 1, proc.boot(), proc.namespace())) for number in (1, 2, 3)]
    alone, first, second = (Board.create(runtime.path / name, 1, runtime.store) for name in names)
    for board in (first, second):  # the steward of each has outlived its master
        board.slots[0].begin(Role.STEWARD, 0, 1)
        board.slots[0].pid, board.slots[0].start_time = os.getpid(), proc.start_time(os.getpid())
    without = [others(first, runtime), others(second, runtime)]
    living = runtime.new_board(1)
    with_one = [others(first, runtime), others(second, runtime), others(living, runtime)]

    assert [[alone.path], []] == [[board.path for board in boards] for boards in without]
    assert [[], [], [alone.path]] == [[board.path for board in boards] for boards in with_one]


_LOOKS_AFTER_IT = """
import sys
from pathlib import Path
from queuepool.board.board import Board
board = Board.create(Path(sys.argv[1]), 1, sys.argv[2])
print(flush=True)
input()
"""


@pytest.mark.by_turns("where")
@pytest.mark.parametrize("where", ["another container", "another boot"])
def test_what_is_of_another_system_is_left_to_who_looks_after_it_there(runtime, where):
    runtime.claim()
    ours = runtime.new_board(1)
    place = (proc.boot(), "1") if where == "another container" else ("00000000", proc.namespace())
    theirs = runtime.path / str(BoardName(os.getpid(), proc.start_time(os.getpid()), *place))
    command = [sys.executable, "-c", _LOOKS_AFTER_IT, str(theirs), runtime.store]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        while_it_lives = others(ours, runtime)
        other.kill()
        other.wait()

    assert [] == while_it_lives
    assert [theirs] == [board.path for board in others(ours, runtime)]


@needs_root
def test_a_board_of_another_user_is_not_settled(runtime, place):
    runtime.claim()
    ours = runtime.new_board(1)
    planted, kept = (Board.create(ours.path.with_name(name), 1, runtime.store) for name in ("board.1-1", "board.2-2"))
    planted.header.master_pid = kept.header.master_pid = 0  # their masters are dead
    os.chown(planted.path, NOBODY, -1)

    assert [kept.path] == [board.path for board in others(ours, runtime)]
    assert not planted.path.exists()


def test_a_board_that_cannot_be_read_is_removed_with_what_lies_beside_it(runtime, place):
    runtime.claim()
    ours = runtime.new_board(1)
    broken = Board.create(ours.path.with_name("board.1-1"), 1, runtime.store)
    broken.new_trace(broken.slots[0]).close()
    os.truncate(broken.path, 10)

    assert [] == others(ours, runtime)
    assert [] == [*place.rglob("board.1-1*")]


def test_a_board_that_stewards_have_died_of_is_removed(runtime):
    runtime.claim()
    ours = runtime.new_board(1)
    deadly = Board.create(ours.path.with_name("board.1-1"), 1, runtime.store)
    deadly.header.master_pid = 0
    for _ in range(2):
        died(ours, deadly.path.name)

    assert [] == others(ours, runtime)
    assert [ours.path] == runtime.board_paths()


def died(board: Board, what: str) -> None:
    """As a steward's last word."""
    Blame(board.header)
    board.header.doing = what


@pytest.mark.timeout(60)
def test_what_is_no_board_does_not_stop_the_steward(runtime, tmp_path):
    runtime.claim()
    ours = runtime.new_board(1)
    outside = Board.create(tmp_path / "outside", 1)
    ours.path.with_name("board.1-1").symlink_to(outside.path)
    os.mkfifo(ours.path.with_name("board.2-2"))
    ours.path.with_name("board.3-3").mkdir()
    ours.path.with_name("board.4-4").write_text("no board")

    assert [] == others(ours, runtime)
    assert outside.path.exists()


def test_a_trace_is_a_new_file_whatever_lay_in_its_place(tmp_path):
    board = Board.create(tmp_path / "board", 1)
    precious = tmp_path / "precious"
    precious.write_text("precious")
    board.trace(board.slots[0]).symlink_to(precious)
    with board.new_trace(board.slots[0]) as trace:
        trace.write(b"stack")

    assert ("precious", b"stack") == (precious.read_text(), board.trace(board.slots[0]).read_bytes())


NOTE = {"queue": "q", "receipt": "r", "error": "WorkerDied", "message": "m", "trace": "t"}


@pytest.mark.timeout(60)
def test_a_note_that_the_steward_did_not_write_is_dropped(tmp_path):
    odd = [
        "",
        "{}",
        "[]",
        "null",
        "x",
        json.dumps({**NOTE, "error": "annotations"}),
        json.dumps({**NOTE, "receipt": 1}),
    ]
    for number, text in enumerate([*odd, json.dumps({**NOTE, "error": "BootFailure"})]):
        (tmp_path / f"hook.store.{number}").write_text(text)
    (tmp_path / "elsewhere").write_text(json.dumps(NOTE))
    (tmp_path / "hook.store.link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "hook.store.fifo")
    deferred_hooks.leave(tmp_path, "store", Lease("q", b"ours"), WorkerDied("died"))
    if os.geteuid() == 0:
        (tmp_path / "hook.store.theirs").write_text(json.dumps(NOTE))
        os.chown(tmp_path / "hook.store.theirs", NOBODY, -1)
    found = deferred_hooks.take(tmp_path, "store")

    assert found
    assert b"ours" == found.lease.receipt
    assert None is deferred_hooks.take(tmp_path, "store")
    with suppress(FileNotFoundError):
        (tmp_path / "elsewhere").unlink()
    assert [] == list(tmp_path.iterdir())


def test_a_note_of_another_stores_job_is_left_for_that_stores_workers(tmp_path):
    deferred_hooks.leave(tmp_path, "theirs", Lease("q", b"job"), WorkerDied("died"))

    assert None is deferred_hooks.take(tmp_path, "ours")
    assert deferred_hooks.take(tmp_path, "theirs")


def test_a_note_for_which_there_is_no_room_costs_the_hook_and_not_the_steward(tmp_path, caplog):
    deferred_hooks.leave(tmp_path / "gone", "ours", Lease("q", b"ours"), WorkerDied("died"))

    assert f"after_failed is not called for a job of queue q: {tmp_path}/gone: No such file" in caplog.text


def test_a_stop_leaves_nothing_but_the_notes_of_hooks_that_are_still_to_be_called(runtime):
    runtime.claim()
    for name in ("draft.1", "taken.2", "hook.3"):
        (runtime.path / name).touch()
    runtime.release()

    assert ["hook.3"] == [path.name for path in runtime.path.iterdir()]


def test_a_master_that_was_killed_as_it_wrote_what_the_pool_is_leaves_nothing(pool, runtime):
    runtime.claim()
    about = pool / "about.json"
    draft = draft_of(about, runtime)
    draft.write_bytes(about.read_bytes()[:10])
    runtime.release()

    assert not pool.exists()


def draft_of(about: Path, runtime: RuntimeDir) -> Path:
    """What it is written to before it has its name: seen where that name cannot be given."""
    about.unlink()
    about.mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        About.of(runtime._settings).write(about.parent)
    about.rmdir()
    [draft] = [path for path in about.parent.iterdir() if path.name != "master.pid"]
    about.write_text("{}")
    return draft
