"""Modules that cannot be used end the first start with the cause, and do no harm in a restart."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.support.eventually import eventually

GOOD = "import tests.support.poolapp\nfrom queuepool import job\n@job(queue='emails')\ndef mail() -> None: ...\n"
PUSHES = "from queuepool import job\n@job\ndef last() -> None: ...\nlast.dispatch()\n"
BAD = "raise RuntimeError('half deployed')\n"


@pytest.mark.real_start
@pytest.mark.fault("F22")
def test_a_first_boot_that_fails_ends_the_pool_with_1_and_says_the_cause_once(site):
    (site.path / "never.py").write_text("import no_such_library\n")
    with site.pool("--workers", "4", "--modules", "tests.support.poolapp,never", wait=False) as pool:
        assert 1 == pool.wait()

    log = pool.log()
    assert 1 == log.count("cannot import never: ModuleNotFoundError: No module named 'no_such_library'")
    assert 1 == log.count("never.py")
    assert 1 == log.count("no worker has become ready since the start: the pool exits")
    assert "never became ready" not in log
    assert log.endswith(" stopped: every process of the pool has ended, exit code 1\n")


@pytest.mark.thorough("another cause of the same end; unit/test_module_hints.py has the rule of no job")
@pytest.mark.fault("F22")
def test_modules_without_a_job_end_it_too_and_listeners_that_do_not_import(site):
    (site.path / "none.py").write_text("x = 1\n")
    with site.pool("--workers", "2", "--modules", "none", wait=False) as pool:
        assert 1 == pool.wait()
    assert 1 == pool.log().count(f'problem="no job is registered by none ({site.path}/none.py)')
    assert ("boot failed" in pool.log(), "could not be imported" in pool.log()) == (True, False)

    with site.pool("--workers", "1", "--listeners", "not_there", wait=False) as pool:
        assert 1 == pool.wait()
    assert 1 == pool.log().count("cannot import not_there: there is no not_there in")


@pytest.mark.thorough("unit/test_pushes_at_an_import.py has the warning")
@pytest.mark.real_start
@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", [[], ["--preload"]])
def test_a_job_that_a_module_dispatches_at_its_import_is_warned_of(site, how):
    (site.path / "pushes.py").write_text("import tests.support.poolapp\n" + PUSHES)
    with site.pool("--workers", "1", "--modules", "pushes", *how) as pool:
        eventually(lambda: "pushes.last was dispatched during an import" in pool.log())

    assert 1 == pool.log().count("put what the module runs as a program under if __name__ == '__main__'")


@pytest.mark.thorough("rare: an import without end beside one that fails; each by itself has a test")
def test_what_still_boots_beside_a_failed_first_boot_is_not_waited_for(site):
    """One worker fails while another one is in an import that takes for ever, and hears no signal."""
    (site.path / "uneven.py").write_text(
        "import os, signal, threading\n"
        "try:\n    os.mkdir('first')\nexcept FileExistsError:\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    os.mkdir('second')\n    threading.Event().wait()\n"
        "while not os.path.exists('second'):\n    pass\n"
        "raise RuntimeError('the first one')\n"
    )
    with site.pool("--workers", "2", "--modules", "uneven", wait=False) as pool:
        assert 1 == pool.wait()

    assert "killed: STOP (the stop no longer waits for it)" in pool.log()
    assert 1 == pool.log().count("RuntimeError: the first one")


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["--no-preload", "--preload"])
def test_a_restart_is_watched_until_the_new_code_works_or_is_known_not_to(site, how):
    place = ["--runtime-dir", str(site.path / "run"), *site.where]
    module = site.path / "deployed.py"
    module.write_text(GOOD)
    with site.pool("--workers", "2", how, "--modules", "deployed") as pool:
        eventually(lambda: "no pool in this configuration serves queue emails" in pool.log())
        before = set(pool.workers())
        done = site.run("reload", "--wait", *place)
        assert "pool default: 2 of 2 workers run the new code" in done.stdout
        pool.wait_until_ready()  # the titles come after what the board says
        assert not before & set(pool.workers())
        assert 1 == pool.log().count("no pool in this configuration serves queue emails")  # and not for each worker 1

        before = set(pool.workers())
        module.write_text(BAD)
        for verb in ("reload", "restart"):
            done = site.run(verb, "--wait", "25", *place, check=False)
            assert 1 == done.returncode
            assert "cannot import deployed: RuntimeError: half deployed" in done.stderr.splitlines()[-1]
        assert before == set(pool.workers())

        [facts] = json.loads(site.run("status", "--json", *place).stdout)
        assert 2 == facts["outdated"]
        told = site.run("status", *place).stdout
        assert "the new code does not become ready: cannot import deployed: RuntimeError: half deployed\n" in told
        assert "workers that still run the old code: 2\n" in told
        assert 1 == pool.log().count("RuntimeError: half deployed")

        module.write_text(GOOD + "\n")
        site.run("reload", "--wait=25", *place)
        [facts] = json.loads(site.run("status", "--json", *place).stdout)
        assert (0, None) == (facts["outdated"], facts["boot_problem"])

    assert 3 == site.run("reload", "--wait", *place, check=False).returncode


@pytest.mark.thorough("the test above watches a restart to its end, test_many_hosts.py until its time is over")
def test_a_wait_for_a_restart_ends_when_its_time_is_over(site):
    place = ["--runtime-dir", str(site.path / "run"), *site.where]
    (site.path / "slow.py").write_text(
        "import os, time\nimport tests.support.poolapp\nif os.path.exists('slow'):\n    time.sleep(600)\n"
    )
    with site.pool("--workers", "1", "--modules", "slow") as pool:
        (site.path / "slow").touch()
        began = time.monotonic()
        done = site.run("reload", "--wait", "1", *place, check=False)
        assert 1 == done.returncode
        assert "timed out, 0 of 1 workers run the new code" in done.stderr
        assert time.monotonic() - began >= 1.0
        pool.signal(signal.SIGQUIT)
        assert 0 == pool.wait()


def test_a_pool_without_modules_ends_with_1_and_keeps_the_jobs(site):
    site.push("ok")
    place = ("--runtime-dir", str(site.path / "run"))
    done = site.run("start", *site.flags("--workers", "2", "--modules", "", *place), check=False)

    assert 1 == done.returncode
    assert 1 == done.stderr.count("no modules are configured, so no jobs are known")
    assert 1 == site.queue.size()
