"""``queuepool metrics``: what it prints for pools that run and that do not, and the file that it writes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from queuepool.board.board import State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import run
from queuepool.config.settings import PoolSettings


@pytest.fixture
def config(tmp_path: Path) -> Iterator[str]:
    """A file with two pools, of which the first one runs: its master is this process."""
    file = tmp_path / "pool.ini"
    file.write_text(f"[pool]\nruntime_dir = {tmp_path}/run\n[pool:here]\n[pool:gone]\n")
    runtime = RuntimeDir(PoolSettings(name="here", runtime_dir=tmp_path / "run", config=file))
    runtime.claim()
    board = runtime.new_board(capacity=4)
    board.header.beat, board.header.state = time.monotonic(), State.RUNNING
    yield str(file)
    board.unlink()
    runtime.release()


def up(text: str) -> dict[str, float]:
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return {sample.labels["pool"]: sample.value for sample in families["queuepool_up"].samples}


def test_it_prints_all_pools_of_the_configuration_also_those_that_do_not_run(config, capfdbinary):
    # The lock of a process on its own file does not count, so the pool that runs is looked for by another process.
    child = os.fork()
    if not child:
        os._exit(run(["metrics", "-c", config]))
    _, code = os.waitpid(child, 0)

    assert 0 == code
    assert {"here": 1.0, "gone": 0.0} == up(capfdbinary.readouterr().out.decode())


def test_it_prints_the_pool_that_is_named(config, capfdbinary):
    assert 0 == run(["metrics", "-c", config, "--pool", "gone"])
    assert {"gone": 0.0} == up(capfdbinary.readouterr().out.decode())


def test_it_replaces_a_file_for_node_exporter_to_read(config, tmp_path, capfdbinary):
    file = tmp_path / "queuepool.prom"
    file.write_text("old")
    old = file.stat().st_ino

    assert 0 == run(["metrics", "-c", config, "--pool", "gone", "--textfile", str(file)])
    assert b"" == capfdbinary.readouterr().out
    assert {"gone": 0.0} == up(file.read_text())
    assert 0o644 == file.stat().st_mode & 0o777
    assert old != file.stat().st_ino
    assert [] == [*tmp_path.glob(".queuepool.prom*")]


@pytest.mark.bad_input("B147")
@pytest.mark.parametrize(
    ("name", "problem"),
    [("none/x.prom", "No such file or directory"), (".", "Is a directory"), ("folder", "Is a directory")],
)
def test_a_file_that_cannot_be_written_is_a_line_and_nothing_is_left(config, tmp_path, capfd, name, problem):
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())

    assert 1 == run(["metrics", "-c", config, "--pool", "gone", "--textfile", str(tmp_path / name)])
    told = capfd.readouterr().err
    assert problem in told
    assert 1 == len(told.splitlines())
    assert before == sorted(tmp_path.iterdir())
