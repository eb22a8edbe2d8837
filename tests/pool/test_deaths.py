"""A worker dies, in every way: its job is settled at once, with a trace, and the pool goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.support.eventually import eventually
from tests.support.pools import Site, is_gone

pytestmark = pytest.mark.every_store("store")


def failed(site):
    return {row.payload: row for row in site.queue.stores.failed.page()}


@contextmanager
def sqlite_tables(url: str) -> Iterator[None]:
    if url.startswith("sqlite"):
        with closing(SqlClient(url, create=True)) as client:
            migrate(client)
    yield


def only_failure(site):
    return eventually(site.queue.stores.failed.page)[0]


@pytest.mark.fault("F10", "F11")
@pytest.mark.parametrize("mode", ["hang_in_c", "hold_the_gil", "swallow"])
def test_a_job_past_its_deadline_is_killed_wherever_it_hangs_and_says_where(site, mode):
    site.push(mode, maxTries=1, timeout=0.5)
    with site.pool("--workers", "1", "--grace", "60"):  # else a stalled machine's master may be there first
        record = only_failure(site)

    assert "TimedOut" in record.exception
    assert "signal 14" in record.exception
    assert "poolapp.py" in record.exception


@pytest.mark.fault("F12", "F13")
@pytest.mark.parametrize("mode", ["block_signals", "stop"])
def test_a_job_that_escapes_the_alarm_is_killed_by_the_master_after_the_grace(site, mode):
    site.push(mode, maxTries=1, timeout=2)  # in which it escapes also on a busy machine
    with site.pool("--workers", "1", "--grace", "0.3"):
        record = only_failure(site)

    assert "TimedOut" in record.exception
    assert "killed by the master: past its deadline, and the alarm did not end it" in record.exception


def test_a_timed_out_job_with_tries_left_is_tried_again_at_once(site):
    site.queue.push("slow")
    with site.pool("--workers", "1"):
        only_failure(site)

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start")]


def busy(site, pool):
    """The pids of the workers that run a job."""
    [shown] = json.loads(site.run("status", *site.where, "--runtime-dir", pool.runtime, "--json").stdout)
    return [process["pid"] for process in shown["processes"] if "job" in process]


@pytest.mark.thorough("as the first test, but that somebody else sends the alarm")
def test_an_operator_ends_one_job_by_the_alarm_of_its_timeout(site):
    """As docs/operations.md says: it has used up a try, its stack is kept, and the other jobs go on."""
    site.push("hang_in_c", maxTries=2, timeout=600)
    with site.pool("--workers", "2", "--backoff", "0") as pool:
        for attempt in (1, 2):
            [start] = eventually(lambda attempt=attempt: site.trail(event="start", attempt=attempt))
            site.push("ok", tag=str(attempt))
            eventually(lambda attempt=attempt: site.trail(event="end", tag=str(attempt)))
            # The job that has just noted its end may be shown a moment longer.
            [pid] = eventually(lambda: pids if len(pids := busy(site, pool)) == 1 else None)
            assert start["pid"] == pid
            os.kill(pid, signal.SIGALRM)
        record = only_failure(site)

    assert 2 == len(site.trail(event="start", mode="hang_in_c"))
    assert "TimedOut" in record.exception
    assert "poolapp.py" in record.exception


def test_fail_on_timeout_ends_a_job_that_has_tries_left(site):
    site.push("hang_in_c", maxTries=5, timeout=2, failOnTimeout=True)  # its start is noted before
    with site.pool("--workers", "1"):
        only_failure(site)

    assert 1 == len(site.trail(event="start"))


@pytest.mark.fault("F03", "F04")
@pytest.mark.parametrize(
    ("mode", "cause"),
    [("segfault", "SIGSEGV"), ("exit", "exit code 0"), ("kill", "SIGKILL")],
)
def test_a_job_that_ends_its_worker_is_tried_again_and_then_fails_with_the_cause(site, mode, cause):
    site.push(mode, maxTries=2)
    site.push("ok")
    with site.pool("--workers", "1"):
        record = only_failure(site)
        eventually(lambda: site.trail(event="end", mode="ok"))

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start", mode=mode)]
    assert "WorkerDied" in record.exception
    assert cause in record.exception


@pytest.mark.thorough("faults/test_worker_faults.py has its stack in the record")
@pytest.mark.fault("F06")
def test_a_segfault_leaves_its_stack_in_the_failed_record(site):
    site.push("segfault", maxTries=1)
    with site.pool("--workers", "1"):
        record = only_failure(site)

    assert "poolapp.py" in record.exception


@pytest.mark.fault("F63")
def test_a_job_that_keeps_killing_its_worker_fails_after_max_crashes_whatever_its_tries(site):
    site.push("kill", maxTries=0)
    with site.pool("--workers", "1"):
        only_failure(site)

    assert 3 == len(site.trail(event="start"))


def test_the_hook_of_a_job_that_died_with_its_worker_is_called_by_another(site):
    site.push("kill", maxTries=1)
    with site.pool("--workers", "1"):
        eventually(lambda: site.trail(event="after_failed"))
        start, hook = site.trail(event="start")[0], site.trail(event="after_failed")[0]

    assert "WorkerDied" == hook["error"]
    assert start["pid"] != hook["pid"]


@pytest.mark.fault("F01")
def test_a_worker_killed_from_outside_costs_nothing_but_the_attempt(site):
    site.push("until", gate=str(site.path / "gate"), maxTries=0)
    with site.pool("--workers", "1"):
        eventually(lambda: site.trail(event="start"))
        os.kill(site.trail(event="start")[0]["pid"], signal.SIGKILL)
        eventually(lambda: 2 == len(site.trail(event="start")))
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end"))

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start")]
    assert 0 == site.queue.size()


def test_a_death_uses_up_no_try_and_a_timeout_does(site):
    """With the defaults: one try."""
    site.push("until", gate=str(site.path / "gate"))
    with site.pool("--workers", "1"):
        [first] = eventually(lambda: site.trail(event="start"))
        os.kill(first["pid"], signal.SIGKILL)
        eventually(lambda: 2 == len(site.trail(event="start")))
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end"))
        site.push("hang_in_c", timeout=1)
        site.push("kill")
        site.queue.push("twice")
        eventually(lambda: 3 == site.queue.stores.failed.count() and 0 == site.queue.size())

    begun = {mode: [line["attempt"] for line in site.trail(event="start", mode=mode)] for mode in ("hang_in_c", "kill")}
    assert {"hang_in_c": [1], "kill": [1, 2, 3]} == begun
    assert [1, 2, 3] == [line["attempt"] for line in site.trail(event="start", mode="twice")]
    assert ["TimedOut", "ValueError", "WorkerDied"] == sorted(
        row.exception.splitlines()[-1 if "Traceback" in row.exception else 0].split(":")[0]
        for row in site.queue.stores.failed.page()
    )


@pytest.mark.parametrize("store", ["redis", "sqlite"])
def test_what_a_lost_host_had_begun_is_tried_again_by_another(request, tmp_path, store):
    """Of its reservations nobody says anything: their leases end, and only the number of attempts is known."""
    url = request.getfixturevalue(f"{store}_url")
    # Longer than a busy machine may hold up the job that is tried again: it would lose this lease too.
    config = f"[connection]\nurl = {url}\nretry_after = 4\n"
    connection = ConnectionSettings(url=url, retry_after=4.0)
    with sqlite_tables(url), closing(Queue(connection)) as queue:
        site = Site(connection, tmp_path, queue)
        site.push("ok", tag="by default")
        site.push("ok", tag="as laravel says", maxTries=1)
        store_of = queue.stores.queue
        assert 2 == len(store_of.reserve(["default"], store_of.join(), 2).leases)
        with site.pool("--workers", "1", config=config):
            eventually(lambda: 0 == queue.size())

        assert [("by default", 2)] == [(line["tag"], line["attempt"]) for line in site.trail(event="end")]
        assert "TooManyAttempts" in only_failure(site).exception


def test_a_release_without_a_try_left_fails_the_job_at_once_and_says_so(site):
    site.queue.push("do", {"mode": "release", "delay": 30})
    site.work()

    assert (
        "NoTriesLeft: do was released by its handler with no tries left (attempt 1 of 1)"
        in only_failure(site).exception
    )
    assert 0 == site.queue.size()


@pytest.mark.thorough("a worker that was killed with its job is replaced by the same act")
def test_an_idle_worker_killed_from_outside_is_replaced(site):
    with site.pool("--workers", "2") as pool:
        os.kill(pool.workers()[0], signal.SIGKILL)
        pool.wait_until_ready()
        site.push("ok")
        eventually(lambda: site.trail(event="end"))


def test_subprocesses_of_a_killed_job_die_with_it(site):
    site.push("child", maxTries=1)
    with site.pool("--workers", "1"):
        only_failure(site)
        child = site.trail(event="child")[0]["child"]

        eventually(lambda: is_gone(child))


@pytest.mark.fault("F09")
def test_memory_is_looked_at_between_jobs_and_the_worker_replaced(site):
    site.push("eat", mb=150)
    with site.pool("--workers", "1", "--memory", "100") as pool:
        eventually(lambda: "reason=memory" in pool.log())
        pool.wait_until_ready()
        site.push("ok")
        eventually(lambda: site.trail(event="end", mode="ok"))

    assert 1 == len(site.trail(event="start", mode="eat"))
    assert 2 == len({line["pid"] for line in site.trail(event="start")})


@pytest.mark.fault("F09")
def test_memory_hard_kills_a_worker_in_the_middle_of_a_job(site):
    site.push("eat", mb=300, keep=30, maxTries=1)
    with site.pool("--workers", "1", "--memory", "100", "--memory-hard", "200"):
        record = only_failure(site)

    assert "memory_hard" in record.exception


def test_a_steward_that_dies_is_replaced_and_the_workers_go_on(site):
    with site.pool("--workers", "1") as pool:
        worker, steward = pool.workers(), pool.steward()
        os.kill(steward, signal.SIGKILL)
        eventually(lambda: pool.pids("^queuepool: steward") not in ([], [steward]))
        site.push("kill", maxTries=1)
        only_failure(site)

        assert worker != pool.workers()


@pytest.mark.thorough("the test above replaces a killed steward")
def test_a_delayed_job_is_staged_by_the_next_steward_when_one_was_killed(site):
    with site.pool("--workers", "1") as pool:
        steward = pool.steward()
        os.kill(steward, signal.SIGKILL)
        site.push("ok", delay=0.2)
        eventually(lambda: site.trail(event="end"))


def test_jobs_longer_than_their_reservation_run_once(site):
    """Of one the store is asked for the time before it begins."""
    lease, gate = 8, site.path / "gate"  # a steward that a busy machine stops for four seconds still renews it
    site.push("until", gate=str(gate))
    site.push("until", gate=str(gate), retryUntil=int(time.time()) + 600)
    site.push("ok", delay=lease + 2)
    with site.pool("--workers", "3", config=f"[connection]\nretry_after = {lease}\n"):
        eventually(lambda: site.trail(event="end", mode="ok"))
        gate.touch()
        eventually(lambda: 2 == len(site.trail(event="end", mode="until")))

    assert 2 == len(site.trail(event="start", mode="until"))
    assert 0 == site.queue.size()


@pytest.mark.thorough("faults/test_worker_faults.py closes every descriptor, too")
@pytest.mark.fault("F16")
def test_a_job_that_closes_every_file_is_settled_as_it_ended_and_its_worker_replaced(site):
    site.push("close", maxTries=1)
    site.push("ok")
    with site.pool("--workers", "1", "--log", str(site.path / "pool.log")):
        eventually(lambda: site.trail(event="end", mode="ok"))

    first, second = site.trail(event="end")
    assert first["pid"] != second["pid"]
    assert [] == site.queue.stores.failed.page()
    assert 1 == len(site.trail(event="start", mode="close"))
    assert 0 == site.queue.size()


@pytest.mark.fault("F18")
def test_a_worker_whose_job_ignores_and_blocks_all_signals_still_hears_a_stop(site):
    site.push("deaf")
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="end"))
        pool.signal(signal.SIGTERM)
        assert 0 == pool.wait()


@pytest.mark.thorough("faults/test_worker_faults.py spoils the signals of a worker, and lets the next job hang")
@pytest.mark.fault("F18")
def test_the_next_job_has_its_alarm_again(site):
    site.push("deaf")
    site.push("sleep", seconds=0.1)
    site.push("swallow", timeout=0.3, maxTries=1)
    with site.pool("--workers", "1", "--grace", "60"):
        record = only_failure(site)

    assert "signal 14" in record.exception


def test_a_listener_that_ends_the_steward_undoes_no_settlement(site):
    (site.path / "ears.py").write_text(
        "import os\n"
        "from queuepool import on\n"
        "from queuepool.events import JobLost\n"
        "@on(JobLost)\n"
        "def end(event):\n"
        "    os._exit(1)\n"
    )
    site.push("kill", maxTries=1)
    with site.pool("--workers", "1", "--listeners", "ears") as pool:
        assert "SIGKILL" in only_failure(site).exception
        eventually(lambda: "steward=0" in pool.log())
        site.push("ok")
        eventually(lambda: site.trail(event="end", mode="ok"))

    assert 1 == len(site.trail(event="start", mode="kill"))


@pytest.mark.thorough("five seconds; unit/test_children.py has who is overdue, a deadline or the end of a lease")
def test_a_slow_listener_does_not_get_its_worker_killed(site):
    (site.path / "ears.py").write_text(
        "import time\n"
        "from queuepool import on\n"
        "from queuepool.events import JobFailed\n"
        "@on(JobFailed)\n"
        "def dawdle(event):\n"
        "    time.sleep(5)\n"
    )
    site.push("raise", maxTries=1)
    # As long as the listener takes; on a busy machine a short lease would end while the job still runs.
    config = "[connection]\nretry_after = 5\nblock_for = 1\n"
    with site.pool("--workers", "1", "--listeners", "ears", config=config) as pool:
        eventually(lambda: site.trail(event="after_failed"))

        assert "killed" not in pool.log()
