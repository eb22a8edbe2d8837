"""What a job can do in a worker that runs several at once is as in one of its own."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.eventually import eventually
from tests.support.meters import counts_in, of_job
from tests.support.pools import RunningPool, Site
from tests.support.processes import halted
from tests.support.redis_server import PREFIX

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.laneapp")


def push(site: Site, name: str, **data: object) -> str:
    return site.queue.push(name, data)


def test_the_pieces_of_lines_that_jobs_print_at_the_same_time_never_mix(site):
    words = ["aa", "bb", "cc"]
    push(site, "prints", word="first", last=" no end", count=2)
    for word in words:
        push(site, "prints", word=word)
    with site.pool(*BESIDE) as pool:
        eventually(lambda: 4 == len(site.trail(event="printed")))
        eventually(lambda: "no end" in pool.log())

    lines = re.findall(r"((?:\w\w )+\w\w)$", pool.log(), re.MULTILINE)
    assert [" ".join([word] * 5) for word in words] == sorted(line for line in lines if line[:2] in words)
    assert re.search(r"first first no end$", pool.log(), re.MULTILINE)
    assert 0 < pool.log().index("first first no end") < pool.log().index("aa aa aa aa aa")


def checked_with(site: Site, lines: str) -> CompletedProcess[str]:
    (site.path / "pool.ini").write_text(f"[pool]\n{lines}\n")
    return site.run("check", *site.flags(*BESIDE[-2:]), "-c", str(site.path / "pool.ini"), check=False)


def threads_of(pool: RunningPool) -> list[int]:
    """How many threads the board shows for each job that is held."""
    for board in pool._board():
        return [held.threads for slot in board.slots if slot.lanes for held in slot.lanes.held()]
    return []


@pytest.mark.by_turns("asks")
@pytest.mark.parametrize("asks", ["to_thread", "executor"])
def test_a_thread_that_a_job_asks_for_counts_for_the_job_and_knows_it(site, tmp_path, asks):
    push(site, "threads", gate=str(gate := tmp_path / "gate"), asks=asks)
    with site.pool(*BESIDE) as pool:
        eventually(lambda: site.trail(event="in a thread", of="threads"))
        shown = threads_of(pool)
        gate.touch()
        eventually(lambda: site.trail(event="back", of="threads"))

    assert [1] == shown


def test_a_plain_function_runs_in_a_thread_that_counts_for_it_and_so_does_its_hook(site, tmp_path):
    push(site, "plain", gate=str(gate := tmp_path / "gate"))
    with site.pool(*BESIDE) as pool:
        eventually(lambda: site.trail(event="in a thread", of="plain"))
        shown = threads_of(pool)
        gate.touch()
        [after] = eventually(lambda: site.trail(event="after", of="plain"))

    assert [1] == shown
    assert not after["on_the_loop"]


@pytest.mark.thorough("rare: a thread that outlives its job, beside others; the tests above count threads")
def test_a_thread_that_a_job_leaves_behind_is_not_taken_for_that_of_the_lanes_next_job(site, tmp_path):
    left, first, second = (tmp_path / name for name in ("left", "first", "second"))
    push(site, "threads", gate=str(left), asks="nothing")
    with site.pool(*BESIDE) as pool:
        eventually(lambda: site.trail(event="back"))
        eventually(lambda: not threads_of(pool))
        for gate in (first, second):  # a slot has 20 lanes, which take turns: one of the second ten has the first lane
            for _ in range(10):
                push(site, "threads", gate=str(gate), asks="to_thread")
            eventually(lambda: [1] * 10 == threads_of(pool))
            if gate is first:
                gate.touch()
                eventually(lambda: 11 == len(site.trail(event="back")))
        left.touch()
        eventually(lambda: 11 == len(site.trail(event="out of it")))
        shown = threads_of(pool)
        second.touch()

    assert [1] * 10 == shown


@pytest.mark.thorough("a warning; a test above runs such a function in its thread")
def test_the_first_worker_names_the_jobs_that_run_in_threads(site):
    with site.pool(*BESIDE) as pool:
        eventually(lambda: "plain functions run in threads" in pool.log())
    checked = checked_with(site, "concurrency = 10")

    assert re.search(r"^warn pool default concurrency: \d+ plain functions run in threads", checked.stdout, re.M)


def test_jobs_run_on_the_loop_that_the_pool_asks_for(site):
    push(site, "tells_its_loop")
    with site.pool(*BESIDE, "--loop", "uvloop") as pool:
        [line] = eventually(lambda: site.trail(event="loop"))
        push(site, "prints", word="aa")
        eventually(lambda: site.trail(event="printed"))

    assert "aa aa aa aa aa" in pool.log()
    assert "uvloop.Loop" == line["kind"]


@pytest.mark.thorough("two executed programs, for one line")
@pytest.mark.real_start
def test_a_loop_that_is_not_installed_is_refused_in_one_line(site):
    (site.path / "sitecustomize.py").write_text("import sys; sys.modules['uvloop'] = None")
    started = site.run("start", *site.flags(*BESIDE), "--loop", "uvloop", check=False)
    checked = checked_with(site, "concurrency = 10\nloop = uvloop")

    assert (78, "pool default: loop: uvloop needs pip install 'queuepool-worker[uvloop]'\n") == (
        started.returncode, started.stderr
    )  # fmt: skip
    assert "FAIL pool default loop: uvloop needs pip install 'queuepool-worker[uvloop]'\n" in checked.stdout


@pytest.mark.thorough("unit/test_children.py has the successor of a worker that takes no more jobs")
def test_a_worker_that_has_begun_its_last_job_has_a_successor_at_once(site, tmp_path):
    with site.pool(*BESIDE, "--max-jobs", "1") as pool:
        push(site, "threads", gate=str(gate := tmp_path / "gate"), asks="to_thread")
        first = eventually(lambda: site.trail(event="in a thread"))[0]["pid"]
        push(site, "prints", word="aa")
        second = eventually(lambda: site.trail(event="printed"))[0]["pid"]
        still_runs = not site.trail(event="back")
        gate.touch()
        eventually(lambda: site.trail(event="back"))

    assert still_runs
    assert first != second
    assert "reason=max_jobs" in pool.log()
    assert "died" not in pool.log()


def test_a_job_that_blocks_the_loop_is_said_once_with_the_line(site):
    for _ in range(2):
        push(site, "blocks", seconds=3.0)
    with site.pool(*BESIDE) as pool:
        eventually(lambda: 2 == len(site.trail(event="unblocked")))

    [words] = re.findall(r"WARNING .* event loop blocked (.*(?:\n    .*)+)", pool.log())
    assert re.match(r"id=\S+ queue=default job=blocks attempts=1 seconds=\d+\.\d+\n", words)
    assert re.search(r"laneapp.py\", line \d+, in blocks\n +time.sleep\(seconds\)", words)
    assert "asyncio" not in words


def test_a_worker_leaves_when_the_hooks_of_its_failed_jobs_have_ended(site):
    push(site, "fails")
    with site.pool(*BESIDE) as pool:
        eventually(lambda: "job failed" in pool.log())

    assert site.trail(event="mourned")


EARS = """
import os
from queuepool import on
from queuepool.events import JobFailed

@on(JobFailed)
def dies(event):
    os._exit(3)
"""


@pytest.mark.thorough("test_deaths.py has a listener that ends the steward after a settlement")
def test_a_listener_that_ends_the_worker_undoes_no_settlement_of_a_job_beside_others(site):
    (site.path / "ears.py").write_text(EARS)
    push(site, "fails")
    with site.pool(*BESIDE, "--listeners", "ears") as pool:
        eventually(lambda: "process died" in pool.log())  # said after all that its death has brought
        eventually(lambda: 1 == of_job(counts_in(Path(pool.runtime)), "fails").ended)

        assert 1 == of_job(counts_in(Path(pool.runtime)), "fails").failed
    assert 1 == site.queue.stores.failed.count()
    assert "lease lost" not in pool.log()


@pytest.mark.thorough("test_memory_limits.py says it of a worker of one job at a time")
def test_the_log_says_which_of_several_jobs_has_made_the_worker_grow(site):
    push(site, "prints", word="aa")
    with site.pool(*BESIDE, "--memory", "+80") as pool:
        eventually(lambda: site.trail(event="printed"))
        push(site, "keeps", megabytes=100)
        [grown] = eventually(lambda: re.findall(r"reason=memory .* grew_most=keeps grew_mb=(\S+)", pool.log()))

    assert 80 < float(grown) < 130


@pytest.mark.thorough("rare: a pause at the moment of a token; model/ has who leaves with one")
def test_a_worker_that_is_paused_passes_on_the_token_that_its_wait_has_taken(site, server):
    notify = f"{PREFIX}queues:default:notify"
    with site.pool(*BESIDE, config="[connection]\nblock_for = 60\n") as pool:
        eventually(lambda: [one for one in server.client_list() if one["cmd"] == "blpop"])
        with halted(pool.steward()):  # it puts tokens right each second
            os.kill(pool.workers()[0], signal.SIGUSR2)
            eventually(lambda: pool.pids("^queuepool: worker .* paused"))
            push(site, "prints", word="aa")
            # As for a worker of another pool that waits as well: the paused one came first.
            assert server.blpop([notify], timeout=20)

    assert [] == site.trail(event="printed")
