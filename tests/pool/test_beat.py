"""The master's beat in a real pool: on the board, in its file, for the probe and in ``status``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from queuepool.board.board import Board
from tests.support.eventually import eventually
from tests.support.lines import without_silences
from tests.support.probing import probe
from tests.support.processes import go_on, halt, halted

#: a process that sees none of the others by their pids, as in a container of its own
APART = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]

can_be_apart = pytest.mark.skipif(
    subprocess.run([*APART, "true"], capture_output=True, check=False).returncode != 0,
    reason="this kernel lets nobody make a pid namespace of their own",
)


def board_of(site) -> Board:
    [path] = (path for path in (site.path / "run/default").glob("board.*") if path.name.count(".") == 1)
    return Board.open(path)


def alive_of(site) -> Path:
    return site.path / "run/default/alive"


def code_of(site, question: str, *flags: str) -> int:
    return probe(question, site.path / "run", *flags).returncode


def follows(path: Path) -> bool:
    """Whether the file's time goes on, once it is there: the board of a new directory comes before it."""
    eventually(lambda: os.path.lexists(path))
    before = path.lstat().st_mtime_ns
    return bool(eventually(lambda: path.lstat().st_mtime_ns > before))


def test_a_running_pool_is_live_started_and_ready_and_status_says_how_old_its_beat_is(site):
    with site.pool("--workers", "2"):
        eventually(lambda: [0, 0, 0] == [code_of(site, question) for question in ("live", "started", "ready")])
        [facts] = json.loads(site.run("status", "--runtime-dir", "run", "--json").stdout)
        said = site.run("status", "--runtime-dir", "run").stdout.splitlines()[0]
        header = board_of(site).header
        first = header.beat
        eventually(lambda: header.beat > first)
        began = header.ready

        assert follows(alive_of(site))
        assert board_of(site).header.ready == began

    assert 0.0 <= facts["beat_age"] < 15.0
    assert " beat=" in said
    assert [3, 3, 3] == [code_of(site, question) for question in ("live", "started", "ready")]


@pytest.mark.thorough("unit/test_probe.py has the probe's answers; the tests around have a pool's beat")
def test_the_file_is_touched_at_most_four_times_a_second(site):
    with site.pool("--workers", "1") as pool:
        changes, until = set(), time.monotonic() + 1.0
        while time.monotonic() < until:
            pool.signal(signal.SIGUSR1)  # a pass for each
            changes.add(alive_of(site).stat().st_mtime_ns)

    assert len(changes) <= 6  # those at the beginning and the end, and four in between


@pytest.mark.fault("F87")
def test_a_stopped_master_is_not_live_until_it_goes_on(site):
    with site.pool("--workers", "1") as pool:
        halt(pool.pid)
        said = eventually(lambda: (done := probe("live", site.path / "run", "--max-age", "1")).returncode and done)
        go_on(pool.pid)
        eventually(lambda: 0 == code_of(site, "live"))

    assert (1, "") == (said.returncode, said.stdout)
    assert "its master's loop last came round" in said.stderr


@pytest.mark.bad_input("B163")
def test_a_killed_master_is_no_pool_even_while_its_orphans_work(site):
    site.push("until", gate=str(site.path / "gate"))
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        pool.titles()
        pool.signal(signal.SIGKILL)
        pool.wait()
        code = code_of(site, "live")
        (site.path / "gate").touch()

    assert 3 == code


def test_a_pool_that_starts_while_its_store_is_away_is_live_and_started_but_not_ready(site):
    flags = ["--url", f"unix://{site.path}/none.sock", "--workers", "1"]
    with site.pool(*flags, wait=False):
        eventually(lambda: 0 == code_of(site, "started"))

        assert [0, 1] == [code_of(site, question) for question in ("live", "ready")]


@pytest.mark.thorough("unit/test_probe.py has the probe's answers; the tests around have a pool's beat")
def test_a_pool_whose_modules_are_being_imported_is_live_and_not_started(site):
    (site.path / "slow_import.py").write_text(
        "import time\nfrom pathlib import Path\nfrom tests.support.poolapp import *\n"
        f"while not Path({str(site.path / 'gate')!r}).exists(): time.sleep(0.01)\n"
    )
    with site.pool("--workers", "1", "--modules", "slow_import", wait=False):
        eventually(lambda: 0 == code_of(site, "live"))
        before = code_of(site, "started")
        (site.path / "gate").touch()
        eventually(lambda: 0 == code_of(site, "started"))

    assert 1 == before


@pytest.mark.thorough("unit/test_probe.py has the probe's answers; the tests around have a pool's beat")
@pytest.mark.parametrize("how", ["--preload", "--no-preload"])
def test_workers_that_leave_after_each_job_have_come_to_work(site, how):
    for _ in range(5):
        site.push("ok")
    with site.pool("--workers", "1", "--max-jobs", "1", how, wait=False):
        eventually(lambda: 5 == len(site.trail(event="end")))
        eventually(lambda: 0 == code_of(site, "started"))


@can_be_apart
def test_a_probe_in_another_container_finds_the_board_of_the_lock(site):
    with site.pool("--workers", "1"):
        (site.path / "run/default/board.1-2").write_bytes(bytes(8192))  # what a killed pool of an old version left
        done = probe("ready", site.path / "run", parent=APART)
        (site.path / "run/default/board.1-2").unlink(missing_ok=True)  # its steward may have swept it up by now

    assert (0, "") == (done.returncode, done.stderr)


# The file, removed or replaced

REPLACEMENTS = {
    "nothing": lambda path: None,
    "a directory": lambda path: path.mkdir(),
    "a link": lambda path: path.symlink_to(path.with_name("elsewhere")),
    "a FIFO": lambda path: os.mkfifo(path),
}


@pytest.mark.fault("F88")
@pytest.mark.by_turns("what")
@pytest.mark.parametrize("what", REPLACEMENTS)
def test_a_file_that_is_removed_or_replaced_disturbs_nobody(site, what):
    with site.pool("--workers", "1") as pool:
        path = alive_of(site)
        with halted(pool.pid):  # else it may make the file anew before something else is there
            path.unlink()
            REPLACEMENTS[what](path)
        eventually(lambda: os.path.lexists(path))

        assert follows(path)
        assert not (path.with_name("elsewhere")).exists()
        site.push("ok")
        eventually(lambda: site.trail(event="end"))
        assert 0 == code_of(site, "live")
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
    assert "ERROR" not in without_silences(pool.log())


@pytest.mark.fault("F88")
def test_a_directory_that_disappeared_has_the_file_again_and_the_probe_finds_the_board(site):
    with site.pool("--workers", "1"):
        folder = site.path / "run/default"
        folder.rename(site.path / "away")
        eventually(lambda: 0 == code_of(site, "live"))

        assert follows(alive_of(site))


@pytest.mark.thorough("unit/test_probe.py has the probe's answers; the tests around have a pool's beat")
def test_what_a_job_writes_over_the_board_is_no_reason_for_a_restart(site):
    modules = "tests.support.poolapp,tests.support.attackapp"
    with site.pool("--workers", "1", "--modules", modules):
        header = board_of(site).header
        ready = header.ready
        site.queue.push("scribble", {"how": "zeros", "last": 4096})
        eventually(lambda: site.trail(event="scribbled"))
        eventually(lambda: header.ready == ready)
        eventually(lambda: [0, 0] == [code_of(site, question) for question in ("live", "started")])
