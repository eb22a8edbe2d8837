"""The log is a FIFO, another user's link, or an inherited descriptor (item 9 of docs/attacks.md)."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.eventually import eventually
from tests.support.lines import Pipe

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
NOBODY = 65534


def refused(site, log: Path, code: int = 78) -> str:
    """What ``start`` and ``work`` say, each in one line and at once."""
    lines = set()
    for verb, more in (("start", ["--runtime-dir", str(site.path / "run")]), ("work", ["--stop-when-empty"])):
        done = site.run(verb, *site.flags("--log", str(log), *more), check=False)
        assert (code, "") == (done.returncode, done.stdout)
        lines.add(done.stderr)
    [line] = lines
    assert 1 == len(line.splitlines())
    return line


def test_a_fifo_that_nobody_reads_is_refused_at_once(site):
    os.mkfifo(site.path / "fifo")

    assert f"log: {site.path}/fifo is a FIFO without a reader\n" == refused(site, site.path / "fifo")


def test_a_log_in_a_directory_that_is_not_there_is_refused_by_its_whole_path(site):
    log = site.path / "not" / "there" / "pool.log"

    assert f"queuepool: {log}: No such file or directory\n" == refused(site, log, code=1)


def test_a_fifo_has_the_lines_while_somebody_reads_and_costs_nobody_when_he_leaves(site):
    os.mkfifo(site.path / "fifo")
    reader = os.open(site.path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with site.pool("--workers", "2", "--log", str(site.path / "fifo")) as pool:
        said = Pipe(reader)
        eventually(lambda: b"worker starting" in said.read())
        os.close(reader)
        done = site.push("ok")
        eventually(lambda: site.trail(event="end", id=done))
        processes.kill(pool.workers()[0])  # its successor has nowhere to write to
        eventually(lambda: len(pool.workers()) == 2)
        again = site.push("ok")
        eventually(lambda: site.trail(event="end", id=again))


@needs_root
@pytest.mark.parametrize("part", ["log", "logs/log"])
def test_a_link_that_another_user_planted_is_refused_and_not_followed(site, part):
    precious = site.path / "precious"
    precious.mkdir()
    (precious / "log").write_text("precious")
    planted = site.path / Path(part).parts[0]
    planted.symlink_to(precious if "/" in part else precious / "log")
    os.chown(planted, NOBODY, -1, follow_symlinks=False)

    expected = f"log: {planted} is a symbolic link of another user (uid {NOBODY}): name the file itself\n"
    assert expected == refused(site, site.path / part)
    assert "precious" == (precious / "log").read_text()


@needs_root
def test_a_link_that_is_planted_while_the_pool_runs_is_not_followed(site):
    (site.path / "precious").write_text("precious")
    log = site.path / "pool.log"
    with site.pool("--workers", "1", "--log", str(log)) as pool:
        eventually(lambda: "worker starting" in log.read_text())
        log.rename(site.path / "moved")
        (site.path / "planted").symlink_to(site.path / "precious")
        os.chown(site.path / "planted", NOBODY, -1, follow_symlinks=False)
        (site.path / "planted").rename(log)
        os.kill(pool.workers()[0], signal.SIGKILL)
        eventually(lambda: "process died" in (site.path / "moved").read_text())

    assert "precious" == (site.path / "precious").read_text()


def test_a_link_of_our_own_is_followed(site):
    (site.path / "own").symlink_to("logs/real")
    (site.path / "logs").mkdir()
    with site.pool("--workers", "1", "--log", str(site.path / "own")):
        eventually(lambda: "worker starting" in (site.path / "logs/real").read_text())


@pytest.mark.by_turns("name")
@pytest.mark.by_turns("kind")
@pytest.mark.parametrize(
    "name",
    [
        "/dev/stdout",
        pytest.param("/dev/stderr", marks=pytest.mark.thorough("the other stream")),
        pytest.param("/dev/fd/1", marks=pytest.mark.thorough("another name of the first")),
        "link",
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_what_a_start_was_given_to_write_to_is_a_log(site, name, kind):
    if name == "link":  # as images of containers do
        name = str(site.path / "link")
        (site.path / "link").symlink_to("/dev/stdout")
    command = [sys.executable, "-m", "queuepool", "work", *site.flags("--stop-when-empty", "--log", name)]
    with (site.path / "output").open("ab") as file:
        place = subprocess.PIPE if kind == "pipe" else file
        done = subprocess.run(
            command, env=site.env(), cwd=site.path, stdout=place, stderr=subprocess.STDOUT, check=True
        )

    assert b"worker starting" in (done.stdout or (site.path / "output").read_bytes())


def test_a_terminal_is_a_log(site):
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    said = Pipe(ours)
    site.run("work", *site.flags("--stop-when-empty", "--log", os.ttyname(theirs)))

    eventually(lambda: b"worker starting" in said.read())
