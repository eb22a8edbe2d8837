"""A template imports modules once: workers share them, restarts bring new code, no death costs a worker."""

from __future__ import annotations

import os
import random
import re
import signal
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.faults.corpus.cases import cases
from tests.faults.corpus.modules import HOSTILE
from tests.support.eventually import eventually
from tests.support.lines import fewest_workers
from tests.support.pools import is_gone, psutil_gone
from tests.support.processes import halt

MODULE = """
from tests.support.poolapp import note
from queuepool import job
note(event="import", version=1)

@job("v")
def v(): note(event="ran", version=1)
"""
#: holds each process that is forked so many times from who imports it, until the gate is there
SLOW_FORK = """
import os, time
from pathlib import Path
from tests.support.poolapp import note
note(event="import")
depth = 0

def hold():
    global depth
    depth += 1
    if depth == {depth}:
        note(event="forked")
        while not Path("{gate}").exists():
            time.sleep(0.005)

os.register_at_fork(after_in_child=hold)
"""
TEMPLATE = r"^queuepool: template \[default\] idle$"


@pytest.fixture
def module(site):
    path = site.path / "own.py"
    path.write_text(MODULE)
    return path


@contextmanager
def preloading(site, *flags: str, modules: str = "tests.support.poolapp,own", **more):
    """A pool of which nothing is left at the end, whoever forked it."""
    with site.pool("--preload", "--modules", modules, *flags, **more) as pool:
        yield pool
    eventually(lambda: not [one for one in psutil.process_iter() if is_of(site, one)])


def is_of(site, process: psutil.Process) -> bool:
    with psutil_gone(), suppress(psutil.AccessDenied):
        return process.environ().get("TRAIL") == str(site.trail_file)
    return False


def template(pool) -> int:
    [pid] = eventually(lambda: len(found := pool.pids(TEMPLATE)) == 1 and found)
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def works(site) -> None:
    """A job that is pushed now is done."""
    done = site.push("ok")
    eventually(lambda: site.trail(event="end", id=done))


# Workers


@pytest.mark.real_start
def test_modules_are_imported_once_in_the_template_and_workers_are_the_masters_all_the_same(site, module):
    with preloading(site, "--workers", "3") as pool:
        first = pool.workers()[0]
        kill(first)
        eventually(lambda: len(now := pool.workers()) == 3 and first not in now)
        works(site)
        families = {(psutil.Process(pid).ppid(), os.getpgid(pid) == pid) for pid in pool.workers()}

        assert [template(pool)] == [line["pid"] for line in site.trail(event="import")]
    assert {(pool.pid, True)} == families


LARGE = """
import gc
from tests.support.poolapp import note, until_told
from queuepool import job
gc.disable()  # it would look through them again and again while they are made
DATA = [[str(number)] for number in range(500_000)]
gc.enable()

@job("collect")
def collect(gate):
    gc.collect()
    note(collected=gate)
    until_told(gate)
"""


@pytest.mark.real_start
@pytest.mark.thorough("hundreds of megabytes")
def test_workers_share_the_memory_of_what_is_imported_also_when_they_have_collected_garbage(site, module):
    module.write_text(LARGE)
    sums = {}
    for how in ("--preload", "--no-preload"):
        gate = str(site.path / how)
        for _ in range(4):
            site.queue.push("collect", {"gate": gate})
        with site.pool(how, "--workers", "4", "--memory", "0", "--modules", "tests.support.poolapp,own") as pool:
            eventually(lambda gate=gate: 4 == len(site.trail(collected=gate)))
            everybody = [*pool.workers(), *pool.pids(TEMPLATE)]
            sums[how] = sum(psutil.Process(pid).memory_full_info().pss for pid in everybody)
            (site.path / how).touch()

    assert sums["--preload"] < sums["--no-preload"] / 2


@pytest.mark.thorough("the test above replaces a killed worker, and counts the imports")
def test_a_dead_worker_is_replaced_without_a_second_import(site, module):
    """Which would last longer than the test may."""
    module.write_text(
        "import os, time\nif os.path.exists('imported'): time.sleep(600)\nopen('imported', 'w').close()\n"
    )
    with preloading(site, "--workers", "2") as pool:
        for _ in range(3):
            victim = pool.workers()[0]
            kill(victim)
            eventually(lambda gone=victim: len(now := pool.workers()) == 2 and gone not in now)
        works(site)


@pytest.mark.thorough("faults/test_worker_faults.py has what jobs leave in a buffer")
def test_what_an_import_says_is_said_once(site, module, monkeypatch):
    """It may lie in a buffer that each fork gets a copy of."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    module.write_text("import sys\nsys.stdout.write('hello out')\n")
    with preloading(site, "--workers", "3") as pool:
        pass

    assert 1 == pool.log().count("hello out")


@pytest.mark.real_start
def test_workers_draw_random_numbers_of_their_own(site, module):
    module.write_text(
        "import random\nfrom tests.support.poolapp import note, until_told\nfrom queuepool import job\nrandom.seed(1)\n"
        "@job('draw')\ndef draw(gate):\n    note(drawn=random.random())\n    until_told(gate)\n"
    )
    for _ in range(2):
        site.queue.push("draw", {"gate": str(site.path / "gate")})
    with preloading(site, "--workers", "2"):
        drawn = eventually(lambda: len(found := [line for line in site.trail() if "drawn" in line]) == 2 and found)
        (site.path / "gate").touch()

    assert drawn[0]["drawn"] != drawn[1]["drawn"]


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["--preload", "--no-preload"])
def test_what_a_module_does_with_the_ends_of_children_holds_in_its_workers_and_disturbs_no_fork(site, module, how):
    module.write_text(
        "import signal\nfrom tests.support.poolapp import note\nfrom queuepool import job\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "@job('look')\ndef look(): note(ignored=signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN)\n"
    )
    site.queue.push("look")
    with site.pool(how, "--workers", "1", "--modules", "tests.support.poolapp,own") as pool:
        eventually(lambda: site.trail(ignored=True))

    assert "ERROR" not in pool.log()


def test_a_module_that_asks_the_queue_at_its_import_leaves_each_worker_a_connection_of_its_own(site, module):
    module.write_text(
        "from tests.support.poolapp import do, note\nfrom queuepool import job\n"
        "from queuepool.jobs.connecting import default_queue\n"
        "default_queue().size()\n"
        "@job('ask')\ndef ask():\n    for _ in range(50):\n"
        "        assert default_queue().size('none') == 0\n        note(id=do.dispatch())\n"
    )
    for _ in range(3):
        site.queue.push("ask")
    with preloading(site, "--workers", "3"):
        eventually(lambda: len(site.trail(event="end")) == 150)

    assert {line["id"] for line in site.trail(event="end")} == {
        line["id"] for line in site.trail() if "event" not in line
    }


@pytest.mark.thorough("a pause, and a fork by the template, each have a test")
def test_a_paused_pool_forks_paused_workers_which_go_on_with_the_others(site, module):
    with preloading(site, "--workers", "2") as pool:
        pool.signal(signal.SIGUSR2)
        paused = eventually(lambda: len(found := pool.pids(r"worker \d \[default\] paused")) == 2 and found)
        kill(paused[0])
        eventually(lambda: set(pool.pids(r"worker \d \[default\] paused")) - set(paused))
        pool.signal(signal.SIGCONT)
        eventually(lambda: len(pool.pids(r"worker \d \[default\] idle")) == 2)
        works(site)


@pytest.mark.thorough("a pause, and a fork by the template, each have a test")
def test_a_larger_pool_has_its_workers_from_the_template_too(site, module):
    with preloading(site, "--workers", "1") as pool:
        pool.signal(signal.SIGTTIN)
        eventually(lambda: len(pool.workers()) == 2)
        site.run("scale", "--runtime-dir", str(site.path / "run"), "4")
        eventually(lambda: len(pool.workers()) == 4)

        assert 1 == len(site.trail(event="import"))


def test_the_template_stands_in_ps_and_in_the_status(site, module):
    with preloading(site, "--workers", "1") as pool:
        pid = template(pool)
        status = site.run("status", "--runtime-dir", str(site.path / "run")).stdout

    assert re.search(rf"^template +{pid} +idle ", status, re.MULTILINE)


# Slow: each does something else to the template and to what it forks.
@pytest.mark.parametrize("entry", cases(HOSTILE))
@pytest.mark.by_turns("entry")
def test_bad_input_module_that_is_preloaded(site, entry):
    """Jobs run once, within their time, and a stop is obeyed."""
    (site.path / "hostile.py").write_text(HOSTILE[entry])
    ids = {site.push("ok") for _ in range(5)}
    site.push("hang_in_c", timeout=0.3)
    with preloading(site, "--workers", "2", modules="tests.support.poolapp,hostile", wait=False) as pool:
        [row] = eventually(site.queue.stores.failed.page)
        eventually(lambda: 0 == site.queue.size())
        pool.signal(signal.SIGTERM)
        pool.wait()
        assert "killed: STOP" not in pool.log()

    assert sorted(ids) == sorted(line["id"] for line in site.trail(event="end"))
    assert "signal 14" in row.exception
    assert ("thread" in entry) == ("the modules started threads=1" in pool.log())


@pytest.mark.fault("F38")
@pytest.mark.parametrize(("preload", "warned"), [("yes", True), ("no", False)])
def test_check_warns_of_threads_that_no_worker_would_have(site, preload, warned):
    (site.path / "threaded.py").write_text(HOSTILE["B084 starts a thread"].replace("args=", "daemon=True, args="))
    (site.path / "pool.ini").write_text(f"[pool]\npreload = {preload}\nmodules = tests.support.poolapp,threaded\n")
    said = site.run("check", "-c", "pool.ini", *site.where).stdout

    assert warned == ("warn preload: importing the modules starts threads=1" in said.lower())


# Restarts


@pytest.mark.fault("F35")
def test_a_restart_brings_new_code_and_never_has_fewer_workers(site, module):
    with preloading(site, "--workers", "2") as pool:
        before, old = set(pool.workers()), template(pool)
        module.write_text(MODULE.replace("version=1", "version=22"))
        pool.signal(signal.SIGHUP)
        eventually(lambda: not before & set(pool.workers()))
        log = pool.log()
        site.queue.push("v")
        eventually(lambda: site.trail(event="ran", version=22))

        assert template(pool) != old
    assert (2, 2) == (fewest_workers(log, 2), log.count("worker stopping"))
    assert 1 == len(site.trail(event="import", version=22))


@pytest.mark.fault("F35")
def test_new_code_that_does_not_import_is_told_once_and_costs_nobody_and_the_old_code_stays_whole(site, module):
    with preloading(site, "--workers", "2") as pool:
        before = set(pool.workers())
        module.write_text("raise RuntimeError('half deployed')\n")
        pool.signal(signal.SIGHUP)
        eventually(lambda: pool.log().count("never became ready") >= 2)
        assert before == set(pool.workers())
        victim = before.pop()
        kill(victim)  # its successor is forked by the template that there is
        eventually(lambda: len(now := pool.workers()) == 2 and victim not in now)
        site.queue.push("v")
        eventually(lambda: site.trail(event="ran", version=1))

        before = set(pool.workers())
        module.write_text(MODULE.replace("version=1", "version=2"))
        eventually(lambda: not before & set(pool.workers()))
    assert 1 == pool.log().count("RuntimeError: half deployed")


@pytest.mark.thorough("two restarts at once; each by itself is tested above")
def test_a_restart_in_the_midst_of_an_import_has_the_newest_code_at_once(site, module):
    with preloading(site, "--workers", "1") as pool:
        before = set(pool.workers())
        module.write_text('import time\nfrom tests.support.poolapp import note\nnote(event="half")\ntime.sleep(600)\n')
        pool.signal(signal.SIGHUP)
        eventually(lambda: site.trail(event="half"))
        module.write_text(MODULE.replace("version=1", "version=333"))
        pool.signal(signal.SIGHUP)
        eventually(lambda: not before & set(pool.workers()))
        template(pool)

    assert 1 == len(site.trail(event="import", version=333))
    assert "ERROR" not in pool.log()


@pytest.mark.thorough("two restarts at once; each by itself is tested above")
def test_restarts_in_a_row_do_not_keep_a_pool_from_beginning(site, module):
    gate = site.path / "gate"
    module.write_text(
        f'from tests.support.poolapp import note, until_told\nnote(event="begun")\nuntil_told("{gate}")\n'
    )
    with preloading(site, "--workers", "1", wait=False) as pool:
        [first] = eventually(lambda: site.trail(event="begun"))
        for number in range(2, 5):
            pool.signal(signal.SIGHUP)
            eventually(lambda wanted=number: len(site.trail(event="begun")) == wanted)
            eventually(lambda: len(pool.pids(r"^queuepool: template .* starting")) == 2)
        assert not is_gone(first["pid"])
        gate.touch()
        eventually(lambda: pool.workers())
        template(pool)
        works(site)


# Imports that fail


@pytest.mark.fault("F22")
def test_a_pool_whose_first_template_cannot_import_ends_with_1_and_the_cause_once(site, module):
    module.write_text("raise RuntimeError('not ever')\n")
    with preloading(site, wait=False) as pool:
        assert 1 == pool.wait()

    assert 1 == pool.log().count("RuntimeError: not ever")
    assert 1 == pool.log().count("no worker has become ready since the start: the pool exits")
    assert "never became ready" not in pool.log()


DEAF = "from tests.support.poolapp import make_deaf\nmake_deaf()\n"


@pytest.mark.fault("F22")
@pytest.mark.by_turns("before", "cause")
@pytest.mark.parametrize(("before", "cause"), [("", "never became ready: signal 14"), (DEAF, "killed: OVERDUE")])
def test_an_import_that_never_ends_is_ended(site, module, before, cause):
    module.write_text(f"{before}import threading\nthreading.Event().wait()\n")
    flags = ["--boot-timeout", "3", "--grace", "1", "--give-up", "4"]
    with preloading(site, *flags, wait=False) as pool:
        assert 1 == pool.wait()

    assert cause in pool.log()
    assert int(before == "") == pool.log().count("own.py")
    assert int(before == "") == pool.log().count("the import of own took longer than boot_timeout (3 s)")


@pytest.mark.by_turns("before")
@pytest.mark.parametrize("before", ["", DEAF])
def test_a_stop_waits_for_no_import(site, module, before):
    module.write_text(f"{before}import time\ntime.sleep(600)\n")
    with preloading(site, wait=False) as pool:
        eventually(lambda: pool.pids(r"^queuepool: template \[default\] starting"))
        pool.steward()
        pool.signal(signal.SIGTERM)

        assert 0 == pool.wait()


# Deaths


@pytest.mark.by_turns("signum")
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_a_template_that_dies_is_replaced_and_its_workers_live_on(site, module, signum):
    with preloading(site, "--workers", "2") as pool:
        workers, old = pool.workers(), template(pool)
        os.kill(old, signum)
        eventually(lambda: pool.pids(TEMPLATE) not in ([], [old]))
        works(site)

        assert workers == pool.workers()
    assert int(signum == signal.SIGKILL) == pool.log().count("process died role=template")


@pytest.mark.thorough("the tests around it let a template, a worker or a master die, one by one")
def test_what_a_template_was_to_fork_when_it_died_is_forked_by_the_next(site, module):
    with preloading(site, "--workers", "2") as pool:
        old = template(pool)
        halt(old)
        victim = pool.workers()[0]
        kill(victim)
        eventually(lambda: len(pool.workers()) == 1 and pool.pids("workers=2"))
        kill(old)
        pool.wait_until_ready(2)
        works(site)


@pytest.mark.by_turns("depth")
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("who", ["forked", "template", "master"])
def test_a_death_in_the_midst_of_a_fork_loses_no_worker_and_leaves_nobody_behind(site, who, depth):
    """1 = the process between the template and the worker has just been forked, 2 = the worker."""
    gate = site.path / "gate"
    (site.path / "slow.py").write_text(SLOW_FORK.format(depth=depth, gate=gate))
    with preloading(site, "--workers", "1", modules="tests.support.poolapp,slow", wait=False) as pool:
        [half] = eventually(lambda: site.trail(event="forked"))
        [whole] = site.trail(event="import")
        kill({"forked": half["pid"], "template": whole["pid"], "master": pool.pid}[who])
        if who == "master":
            pool.wait()
            eventually(lambda: is_gone(whole["pid"]))
            gate.touch()
        else:
            eventually(lambda: is_gone(half["pid"]))
            gate.touch()
            pool.wait_until_ready(1)
            works(site)


@pytest.mark.thorough("a stop during an import is tested above, a death during a fork too")
@pytest.mark.by_turns("depth")
@pytest.mark.parametrize("depth", [1, 2])
def test_a_stop_in_the_midst_of_a_fork_leaves_nobody_behind(site, depth):
    (site.path / "slow.py").write_text(SLOW_FORK.format(depth=depth, gate="none"))
    with preloading(site, "--workers", "2", modules="tests.support.poolapp,slow", wait=False) as pool:
        eventually(lambda: site.trail(event="forked"))
        pool.signal(signal.SIGTERM)

        assert 0 == pool.wait()


@pytest.mark.fault("F24")
def test_a_killed_masters_template_leaves_at_once_and_its_workers_finish(site, module):
    gate = site.path / "gate"
    site.push("until", gate=str(gate))
    with preloading(site, "--workers", "2") as pool:
        pid = template(pool)
        eventually(lambda: site.trail(event="start"))
        pool.signal(signal.SIGKILL)
        pool.wait()
        eventually(lambda: is_gone(pid))
        assert [] == site.trail(event="end")
        gate.touch()
        eventually(lambda: site.trail(event="end"))


@pytest.mark.thorough("the tests around it let a template, a worker or a master die, one by one")
def test_in_whatever_order_workers_and_templates_die_the_pool_is_whole_again(site, module):
    dice = random.Random(5)
    with preloading(site, "--workers", "3") as pool:
        for _ in range(6):
            there = [*pool.workers(), *pool.pids(TEMPLATE)]
            for pid in dice.sample(there, k=min(dice.randint(1, 3), len(there))):
                with suppress(ProcessLookupError):  # the last round's restart may end it first
                    kill(pid)
            if dice.random() < 0.5:
                pool.signal(signal.SIGHUP)
            eventually(lambda: pool.pids(TEMPLATE) and len(pool.workers()) >= 2)
        pool.wait_until_ready(3)
        template(pool)
        works(site)
