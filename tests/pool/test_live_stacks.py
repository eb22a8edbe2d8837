"""Where a running job is in its code is seen while it goes on, also in C code that holds the interpreter's lock."""

from __future__ import annotations

import json
import signal
import time
from contextlib import contextmanager

import pytest

from queuepool.board.board import Role
from queuepool.board.live_stack import stack_of
from queuepool.board.runtime_dir import boards_in
from queuepool.errors import NoStack
from queuepool.unix.signals import LIVE_STACK
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.processes import halted

ONE = ("--workers", "1", "--modules", "tests.support.cancelapp")
#: seconds for a worker that a busy machine stops to write its stack
PATIENCE = 20.0


@contextmanager
def running(site: Site, name: str = "stays", **data: object):
    """A pool whose worker runs this job; the job's id, and its worker's board and slot. It is killed in the end."""
    job_id = site.queue.push(name, data)
    with site.pool(*ONE) as pool:
        eventually(lambda: site.trail())
        with boards_in([site.path / "run" / "default"]) as boards:
            [board] = boards
            [slot] = board.of(Role.WORKER)
            eventually(lambda: " in note\n" not in stack_of(board, slot, PATIENCE))  # it has told of its start
            yield pool, job_id, board, slot
        pool.signal(signal.SIGQUIT)
        assert 0 == pool.wait()


def shown(site: Site, subject: object, *flags: str, check: bool = True):
    flags = (*flags, *site.where, "--runtime-dir", str(site.path / "run"))
    return site.run("stack", str(subject), *flags, check=check)


def test_a_job_its_worker_and_its_pool_show_the_same(site):
    with running(site) as (pool, job_id, _, _):
        [pid] = pool.workers()
        by = {what: json.loads(shown(site, what, "--json").stdout) for what in (job_id, pid, "default")}
        text = shown(site, job_id).stdout
        assert [] == site.trail(event="after_failed")

    [[row]] = [rows for what, rows in by.items() if what == job_id]
    assert (job_id, pid, "stays", 1) == (row["id"], row["pid"], row["job"], row["attempt"])
    assert ["deeply", "stays"] == [frame["function"] for frame in row["stack"]]
    assert row["stack"][0]["file"].endswith("cancelapp.py")
    assert by[job_id] == by[pid] == by["default"]
    assert f"worker 1 of pool default (pid {pid}): job stays {job_id}" in text
    assert ", in deeply\n" in text


def test_in_c_with_the_interpreters_lock_held(site):
    with running(site, how="gil") as (_, job_id, _, _):
        [row] = json.loads(shown(site, job_id, "--json").stdout)

    assert ["stays"] == [frame["function"] for frame in row["stack"]]


@pytest.mark.thorough("the first test shows a stack by each verb; these are other places to hang in")
def test_the_job_goes_on_however_often_it_is_asked(site):
    """Its sleeps are not cut short, and no request crashes it."""
    with running(site, "quick", n=1, seconds=6.0) as (_, _, board, slot):
        began, asked = time.monotonic(), 0
        while (asked < 4 or time.monotonic() < began + 1.0) and not site.trail(event="done"):
            stack_of(board, slot, PATIENCE)
            asked += 1
        [done] = eventually(lambda: site.trail(event="done"))

    [ran] = site.trail(event="ran")
    assert done["at"] - ran["at"] >= 6.0
    assert asked > 3


def test_one_who_does_not_answer_is_told(site):
    told = pytest.raises(NoStack, match="may be stopped")
    with running(site) as (pool, _, board, slot), halted(*pool.workers()), told:
        stack_of(board, slot, timeout=0.1)


@pytest.mark.thorough("the first test shows a stack by each verb; these are other places to hang in")
def test_who_does_not_listen_is_not_asked(site):
    """Its default action is to ignore it, so a program in its place is not harmed either."""
    with running(site) as (_, _, board, slot):
        slot.start_time += 1
        with pytest.raises(NoStack, match="has ended"):
            stack_of(board, slot)
        slot.start_time -= 1
        [steward] = board.of(Role.STEWARD)
        with pytest.raises(NoStack):
            stack_of(board, steward)

    assert signal.SIG_DFL == signal.getsignal(LIVE_STACK)


def test_nothing_that_a_job_was_given_is_shown(site):
    with running(site, secret="hunter2") as (_, job_id, _, _):
        assert "hunter2" not in shown(site, job_id).stdout


def test_what_runs_nowhere(site):
    names = ["nonesuch", "9" * 5000]  # Python reads no number of so many digits
    with running(site):
        found = [shown(site, name, check=False) for name in names]

    assert [1, 1] == [each.returncode for each in found]
    for name, each in zip(names, found, strict=True):
        assert f"nothing runs here under the id, pid or pool {name}" in each.stderr


@pytest.mark.thorough("the first test shows a stack by each verb; these are other places to hang in")
def test_what_a_coroutine_awaits_is_shown(site):
    with running(site, "awaits") as (_, job_id, _, _):
        [[inner, *_, outer]] = eventually(lambda: tasks_of(site, job_id))

    assert ("sleep", "awaits") == (inner["function"], outer["function"])


SIDE_BY_SIDE = ("--workers", "1", "--concurrency", "4", "--modules", "tests.support.cancelapp")


def test_side_by_side_each_job_shows_its_own(site):
    ids = {name: site.queue.push(name, data) for name, data in {"awaits": {}, "neighbour": {"n": 1}}.items()}
    with site.pool(*SIDE_BY_SIDE) as pool:
        eventually(lambda: 2 == len(site.trail(event="start")))
        seen = {name: eventually(lambda job_id=job_id: tasks_of(site, job_id)) for name, job_id in ids.items()}
        pool.signal(signal.SIGQUIT)
        assert 0 == pool.wait()

    for name, tasks in seen.items():
        assert [name] == [task[-1]["function"] for task in tasks]


def tasks_of(site: Site, job_id: str) -> list[list[dict]]:
    """The tasks that are shown of the job; none if a busy machine keeps its worker from answering in half a second."""
    [row] = json.loads(shown(site, job_id, "--json").stdout)
    return row["tasks"] or []


@pytest.mark.thorough("the first test shows a stack by each verb; these are other places to hang in")
def test_side_by_side_the_one_that_blocks_the_loop_is_seen(site):
    job_id = site.queue.push("blocks", {})
    with site.pool(*SIDE_BY_SIDE) as pool:
        eventually(lambda: site.trail(event="start"))
        functions = eventually(lambda: functions_of(site, job_id))
        pool.signal(signal.SIGQUIT)
        assert 0 == pool.wait()

    assert "blocks" == functions[-1]


def functions_of(site: Site, job_id: str) -> list[str]:
    """Those on the stack of the thread that is at the job; none while it awaits."""
    return [frame["function"] for row in json.loads(shown(site, job_id, "--json").stdout) for frame in row["stack"]]
