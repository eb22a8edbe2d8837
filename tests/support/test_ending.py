"""A run of the tests that is interrupted ends, and leaves nothing: no process, no directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import ROOT
from tests.support.eventually import eventually
from tests.support.pools import is_gone

LONG = """
import subprocess, tempfile, time
from pathlib import Path
import pytest
from tests.support import ending

@pytest.fixture(scope="session")
def server():
    with tempfile.TemporaryDirectory(prefix="server-", dir=Path(__file__).parent) as folder:
        process = subprocess.Popen(["sleep", "600"])
        Path(folder, str(process.pid)).touch()
        yield folder
        if Path(__file__).with_name("hangs").exists():
            process.wait()
        process.kill()
        process.wait()
        Path(__file__).with_name(f"ended-by-{ending._ended[0]}-{process.pid}").touch()

@pytest.mark.parametrize("number", range(8))
def test_long(server, number):
    Path(__file__).with_name(f"runs-{number}").touch()
    time.sleep(600)
"""


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen, list[Path]]]:
    """A run in two processes, and what these have started: in each a server's folder with its pid."""
    (folder / "test_long.py").write_text(LONG)
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "tests.support.ending", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    with subprocess.Popen(
        [*command, str(folder)], cwd=folder, env=env, stdout=subprocess.DEVNULL, start_new_session=True
    ) as run:
        eventually(lambda: len(list(folder.glob("runs-*"))) == 2)  # the servers are their fixtures' by then
        yield run, list(folder.glob("server-*/*"))


@pytest.mark.thorough("of the tests' own machinery: it starts a run of its own")
@pytest.mark.by_turns("signum", "everybody")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("everybody", [False, True])
def test_an_interrupted_run_clears_away_what_its_workers_have_started(tmp_path, signum, everybody):
    with running(tmp_path) as (run, started):
        signal_to = os.killpg if everybody else os.kill
        signal_to(run.pid, signum)

        assert 2 == run.wait(timeout=60)

    assert [] == list(tmp_path.glob("server-*"))
    told = signum if everybody else signal.SIGTERM  # and not by xdist, which waits for 5 s before
    assert 2 == len(list(tmp_path.glob(f"ended-by-{told:d}-*")))
    eventually(lambda: all(is_gone(int(path.name)) for path in started))


@pytest.mark.thorough("as above")
def test_what_takes_too_long_to_clear_away_is_killed(tmp_path):
    (tmp_path / "hangs").touch()
    with running(tmp_path) as (run, started):
        os.kill(run.pid, signal.SIGTERM)

        assert 2 == run.wait(timeout=90)

    assert 2 == len(started)
    eventually(lambda: all(is_gone(int(path.name)) for path in started))
