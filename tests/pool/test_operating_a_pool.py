"""Operating a pool: start, signals, restart, pause, scale and stop."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from queuepool.board.board import Board, Role
from tests.support.eventually import eventually
from tests.support.lines import fewest_workers, whole_lines
from tests.support.meters import counts_in
from tests.support.processes import go_on, halt


def held(site, **data):
    """Push a job that runs until ``let_go``."""
    site.push("until", gate=str(site.path / "gate"), **data)


def let_go(site):
    (site.path / "gate").touch()


def test_a_pool_runs_what_was_pushed_and_counts_it(site):
    for number in range(20):
        site.push("ok", tag=str(number))
    with site.pool("--workers", "2") as pool:
        eventually(lambda: len(site.trail(event="end")) == 20)
        eventually(lambda: pool.pids(r"^queuepool: master \[default\] running workers=2 busy=0 done=20 failed=0$"))

    assert 0 == site.queue.size()


@pytest.mark.bad_input("B104")
def test_the_titles_follow_their_grammar_and_show_no_arguments(site):
    grammar = re.compile(r"queuepool: (master|steward|worker \d+) \[\w+\] [a-z]+( [a-z]+=[^ ]+)*")
    held(site, tag="hunter2")
    with site.pool("--workers", "2") as pool:
        busy = eventually(
            lambda: pool.pids(r"^queuepool: worker \d \[default\] busy queue=default job=do id=\S+ attempt=1 since=")
        )
        titles = pool.titles()
        let_go(site)

    assert 1 == len(busy)
    assert [] == [title for title in titles.values() if not grammar.fullmatch(title)]
    assert [] == [title for title in titles.values() if "hunter2" in title or len(title) > 200]


def test_term_lets_running_jobs_finish(site):
    held(site)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        pool.signal(signal.SIGTERM)
        eventually(lambda: pool.pids("^queuepool: master .* draining"))
        site.push("ok", tag="late")
        let_go(site)
        code = pool.wait()

    assert 0 == code
    assert 1 == len(site.trail(event="end"))
    assert 1 == site.queue.size()


@pytest.mark.parametrize("signals", [[signal.SIGQUIT], [signal.SIGINT, signal.SIGINT]])
def test_stop_now_gives_running_jobs_back_without_costing_them_an_attempt(site, signals):
    held(site)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        for signum in signals:
            pool.signal(signum)
            eventually(lambda: pool.process.poll() is not None or pool.pids("^queuepool: master .* draining"))
        code = pool.wait()
    let_go(site)
    site.work()

    assert 0 == code
    assert [1, 1] == [line["attempt"] for line in site.trail(event="start")]


def test_a_stop_waits_no_longer_than_it_may(site):
    held(site)
    with site.pool("--workers", "1", "--stop-timeout", "0.3") as pool:
        eventually(lambda: site.trail(event="start"))
        pool.signal(signal.SIGTERM)
        pool.wait()

    assert 1 == site.queue.sizes().ready


@pytest.mark.fault("F35")
def test_hup_replaces_every_worker_with_new_code_and_never_has_fewer(site):
    module = site.path / "versioned.py"
    module.write_text(
        "from queuepool import job\nfrom tests.support.poolapp import note\n@job('v')\ndef v(): note(version=1)\n"
    )
    with site.pool("--workers", "2", "--modules", "tests.support.poolapp,versioned") as pool:
        site.queue.push("v")
        eventually(lambda: site.trail(version=1))
        module.write_text(module.read_text().replace("version=1", "version=22"))
        before = set(pool.workers())
        pool.signal(signal.SIGHUP)
        eventually(lambda: not before & set(pool.workers()))
        log = pool.log()
        site.queue.push("v")
        eventually(lambda: site.trail(version=22))

    assert (2, 2) == (fewest_workers(log, 2), log.count("worker stopping"))


@pytest.mark.fault("F35")
def test_a_replacement_that_cannot_boot_costs_nobody(site):
    module = site.path / "versioned.py"
    module.write_text("import queuepool\n")
    with site.pool("--workers", "2", "--modules", "tests.support.poolapp,versioned") as pool:
        before = set(pool.workers())
        module.write_text("raise RuntimeError('half deployed')\n")
        pool.signal(signal.SIGHUP)
        eventually(lambda: "half deployed" in pool.log())
        site.push("ok")
        eventually(lambda: site.trail(event="end"))

        assert before == set(pool.workers())
        module.write_text("import queuepool\n")
        eventually(lambda: not before & set(pool.workers()))


def test_the_restart_broadcast_replaces_the_workers(site):
    with site.pool("--workers", "2") as pool:
        before = set(pool.workers())
        said = site.run("restart", *site.where)
        eventually(lambda: len(now := set(pool.workers())) == 2 and not now & before)

    assert "restart" in said.stdout


@pytest.mark.fault("F34")
def test_a_restart_key_that_is_gone_is_no_restart(site, server):
    site.queue.stores.control.restart()
    with site.pool("--workers", "1") as pool:
        before = pool.workers()
        server.delete(site.connection.restart_key)
        site.queue.stores.control.pause("default")
        eventually(lambda: "queues paused" in pool.log())

        assert before == pool.workers()


def test_usr2_pauses_and_cont_continues(site):
    with site.pool("--workers", "2") as pool:
        pool.signal(signal.SIGUSR2)
        eventually(lambda: len(pool.pids(r"worker \d \[default\] paused")) == 2)
        site.push("ok")
        assert 1 == site.queue.sizes().ready
        pool.signal(signal.SIGCONT)
        eventually(lambda: site.trail(event="end"))


def test_ttin_and_ttou_make_one_worker_more_and_less(site):
    with site.pool("--workers", "1") as pool:
        pool.signal(signal.SIGTTIN)
        eventually(lambda: len(pool.workers()) == 2)
        pool.signal(signal.SIGTTOU)
        eventually(lambda: len(pool.workers()) == 1)


def test_a_queue_is_paused_for_all_hosts_through_the_store(site):
    with site.pool("--workers", "1", "--queue", "a,b") as pool:
        site.queue.stores.control.pause("a")
        eventually(lambda: "queues paused queues=a" in pool.log())
        eventually(lambda: pool.workers())
        site.push("ok", queue="a", tag="a")
        site.push("ok", queue="b", tag="b")
        eventually(lambda: site.trail(event="end"))
        site.queue.stores.control.resume("a")
        eventually(lambda: len(site.trail(event="end")) == 2)

    assert ["b", "a"] == [line["tag"] for line in site.trail(event="start")]


@pytest.mark.thorough("as one queue is, which the test above has")
def test_many_queues_are_paused_as_one_is(site):
    """All but one of more queues than their names have room for on the board."""
    queues = [f"tenant-{number:03}" for number in reversed(range(300))]
    for queue in set(queues) - {"tenant-150"}:
        site.queue.stores.control.pause(queue)
    site.push("ok", queue="tenant-299", tag="paused")
    site.push("ok", queue="tenant-150", tag="open")
    with site.pool("--workers", "1", "--queue", ",".join(queues)) as pool:
        eventually(lambda: site.trail(event="end"))
        [status] = json.loads(site.run("status", "--json", *site.where, "--runtime-dir", pool.runtime).stdout)
        eventually(lambda: set(queues) - {"tenant-150"} == paused_queues(pool))
        site.queue.stores.control.resume("tenant-299")
        eventually(lambda: len(site.trail(event="end")) == 2)
        times = pool.log().count("queues paused")

    assert ["open", "paused"] == [line["tag"] for line in site.trail(event="start")]
    assert set(queues) - {"tenant-150"} == set(status["paused"])
    assert 1 == times


def paused_queues(pool) -> set[str]:
    """As the metrics have it."""
    return {name for name, facts in counts_in(Path(pool.runtime)).queues.items() if facts.paused}


def test_maintenance_holds_the_pool_unless_forced(site):
    site.queue.stores.control.down()
    site.push("ok")
    with site.pool("--workers", "1") as pool:
        eventually(lambda: pool.pids(r"worker 1 \[default\] paused"))
        assert 1 == site.queue.sizes().ready
        site.queue.stores.control.up()
        eventually(lambda: site.trail(event="end"))
    site.queue.stores.control.down()
    site.push("ok")
    with site.pool("--workers", "1", "--force"):
        eventually(lambda: len(site.trail(event="end")) == 2)


@pytest.mark.fault("F22")
def test_an_import_that_never_ends_is_ended_and_shows_where_it_hung(site):
    (site.path / "endless.py").write_text("import threading\nthreading.Event().wait()\n")
    (site.path / "startless.py").write_text("import endless\n")
    flags = ["--workers", "1", "--modules", "startless", "--boot-timeout", "3", "--give-up", "4"]
    with site.pool(*flags, wait=False) as pool:
        assert 1 == pool.wait()
        log = pool.log()
    assert "never became ready: signal 14" in log
    assert 1 == log.count('problem="the import of startless took longer than boot_timeout (3 s)"')
    frames = re.findall(r'^ +File "(.*)", line', log, re.MULTILINE)
    assert [f"{site.path}/endless.py", f"{site.path}/startless.py"] == frames[-2:]
    assert {threading.__file__} == set(frames[:-2])


@pytest.mark.fault("F22")
def test_a_pool_that_waits_for_its_store_does_not_give_up(site):
    with site.pool("--workers", "1", "--url", "unix:///nonexistent.sock", "--give-up", "0.5", wait=False) as pool:
        worker = eventually(lambda: pool.pids(r"^queuepool: worker 1 \[default\] starting"))[0]
        eventually(lambda: psutil.Process(worker).create_time() < time.time() - 1.5)
        assert pool.process.poll() is None


def test_a_worker_that_has_not_ended_its_wait_in_time_is_replaced(site):
    config = "[connection]\nblock_for = 1\n"
    with site.pool("--workers", "1", config=config) as pool:
        (worker,) = pool.workers()
        eventually(lambda: is_stopped_in_its_wait(site, worker))
        eventually(lambda: [worker] != pool.workers() and pool.workers())
        site.push("ok")
        eventually(lambda: site.trail(event="end"))

    assert "killed: STALLED (no job ran: the process itself hung)" in pool.log()


def is_stopped_in_its_wait(site, worker: int) -> bool:
    """Before and after a wait a worker has half a minute longer: then it goes on, and may be stopped later."""
    halt(worker)
    [path] = (path for path in (site.path / "run").rglob("board.*") if path.name.count(".") == 1)
    [slot] = Board.open(path).of(Role.WORKER)
    if slot.deadline < time.monotonic() + 10:
        return True
    go_on(worker)
    return False


@pytest.mark.fault("F31")
def test_workers_that_keep_dying_young_are_replaced_later_and_later_and_the_pool_goes_on(site):
    for _ in range(3):
        site.push("kill", maxTries=0)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: 3 == len(site.queue.stores.failed.page()))
        rests = [float(seconds) for seconds in re.findall(r"died young again: .* next try in ([\d.]+)s", pool.log())]
        site.push("ok")
        eventually(lambda: site.trail(event="end", mode="ok"))

    assert rests  # one that a busy machine lets live for five seconds begins them anew
    assert [0.1, 0.2, 0.4, 0.8][: len(rests)] == rests


def test_a_pool_waits_for_a_store_that_is_not_there_and_says_so_once(site):
    flags = ["--url", f"unix://{site.path}/none.sock", "--workers", "1"]
    with site.pool(*flags, wait=False) as pool:
        eventually(lambda: "store lost" in pool.log())
        eventually(lambda: pool.pids("^queuepool: worker 1 .* starting"))

    assert 1 == pool.log().count("store lost")


def test_a_delayed_job_starts_when_it_is_due_and_not_when_a_wait_is_over(site):
    """The wait would last longer than the test may."""
    with site.pool("--workers", "1", config="[connection]\nblock_for = 3600\n"):
        before = site.queue.stores.queue.now()
        site.push("ok", delay=0.5)
        eventually(lambda: site.trail(event="end"))

    assert 0.5 <= site.trail(event="start")[0]["at"] - before


def test_json_logs_are_one_object_a_line_with_laravels_names(site):
    site.push("ok")
    site.push("raise", maxTries=1)
    with site.pool("--workers", "1", "--json", "--verbose"):
        eventually(lambda: len(site.trail(event="start")) == 2)
    lines = [json.loads(line) for line in whole_lines(site.path / "log")]
    job = {line["event"]: line for line in lines if line.get("job") == "do"}

    assert ("starting", "do", "default", 1) == tuple(
        job["JobProcessing"][key] for key in ("status", "job", "queue", "attempts")
    )
    assert "success" == job["JobProcessed"]["status"]
    assert ("failed", "ValueError") == (job["JobFailed"]["status"], job["JobFailed"]["exception"])
