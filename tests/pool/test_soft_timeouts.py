"""``SoftTimeout`` is raised in a handler in time, and never in any other code of its worker."""

from __future__ import annotations

import random
import re
import signal
from typing import Any

import pytest

from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("any_site")

APP = ("--workers", "1", "--modules", "tests.support.softapp")
JOBS = 100
#: seconds: the soft timeout of the stress, as in ``softapp``
SHORT = 0.004
#: seconds within which it is raised, also on a busy machine: a handler that does not get it goes on for a minute
IN_TIME = 10.0


def work(site: Site, name: str, mode: str, *flags: str, **data: Any) -> str:
    """Run this job, and another one after it, in one lone worker; gives its log."""
    site.push(mode, name=name, **data)
    site.queue.push("after_soft", {})
    return site.work("--modules", "tests.support.softapp", *flags).stderr


def failures(site: Site) -> list[str]:
    """The last line of each failed job's record."""
    return [row.exception.strip().splitlines()[-1] for row in site.queue.stores.failed.page()]


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["sleep", "select", "socket", "thread", "spin", "ignore"])
def test_a_handler_gets_it_whatever_it_waits_for(site, mode):
    log = work(site, "soft", mode)

    [soft] = site.trail(event="soft")
    assert 0.2 <= soft["after"] < IN_TIME
    assert "the handler has run for 0.2 s, its soft timeout" == soft["says"]
    assert ["queuepool.errors.SoftTimeout: the handler has run for 0.2 s, its soft timeout"] == failures(site)
    assert 1 == len(site.trail(event="after"))
    assert re.search(r"job failed .*SoftTimeout", log)


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["clean_up", "clean_up_and_release"])
def test_a_job_that_catches_it_decides_for_itself(site, mode):
    work(site, "soft", mode, maxTries=2)

    released = mode == "clean_up_and_release"
    assert [] == failures(site)
    assert (1, 1 if released else 0) == (len(site.trail(event="end")), site.queue.sizes().delayed)
    assert (0 if released else 1) == len(site.trail(event="cleaned up"))  # it took longer than another 0.2 s


@pytest.mark.parametrize(("name", "attempts"), [("soft_retried", 2), ("soft_final", 1), ("soft_not_named", 1)])
def test_it_is_retried_as_any_exception(site, name, attempts):
    work(site, name, "sleep")

    assert attempts == len(site.trail(event="soft"))
    assert 1 == len(failures(site))


def test_the_pools_counts_for_jobs_without_their_own(site):
    work(site, "pools", "sleep", "--soft-timeout", "0.1")
    [soft] = site.trail(event="soft")
    assert 0.1 <= soft["after"] < IN_TIME


def test_the_pools_does_not_count_for_jobs_with_a_shorter_timeout(site):
    site.push("swallow", timeout=0.3, maxTries=1)
    killed = site.work("--soft-timeout", "0.4", check=False)

    assert -signal.SIGALRM == killed.returncode
    assert "never reached" not in killed.stderr  # the job has not asked for it


@pytest.mark.bad_input("B116")
def test_a_soft_timeout_that_a_payloads_timeout_comes_before_is_named_in_the_log(site):
    log = work(site, "soft_unreached", "ok", timeout=10)

    assert "soft_timeout 50 is not below its timeout, 10: it is never reached" in log
    assert 1 == len(site.trail(event="end"))


def test_the_timeout_is_still_there_for_a_job_that_swallows_it(site):
    site.push("swallow", timeout=0.6, maxTries=1)
    killed = site.work("--soft-timeout", "0.2", check=False)

    assert -signal.SIGALRM == killed.returncode


@pytest.mark.real_start
def test_no_other_job_pays_for_it(site):
    """No timer is made for a worker whose jobs have no soft timeout; a forked child has none either."""
    (site.path / "timers.py").write_text(
        "from queuepool import job\n"
        "from tests.support.poolapp import note\n"
        "import os, sys\n"
        "def timers(): return open('/proc/self/timers').read().count('notify:')\n"
        "@job('count')\n"
        "def count():\n"
        "    note(event='count', timers=timers(), made='queuepool.unix.posix_timer' in sys.modules)\n"
        "@job('count_soft', soft_timeout=30)\n"
        "def count_soft():\n"
        "    child = os.fork()\n"
        "    note(event='child' if child == 0 else 'soft', timers=timers())\n"
        "    os._exit(0) if child == 0 else os.waitpid(child, 0)\n"
    )
    for name in ("count", "count_soft", "count_soft", "count"):
        site.queue.push(name, {})
    site.work("--modules", "timers")

    before, after = site.trail(event="count")
    assert (0, False) == (before["timers"], before["made"])
    assert (1, True) == (after["timers"], after["made"])
    assert [1, 1] == [line["timers"] for line in site.trail(event="soft")]
    assert [0, 0] == [line["timers"] for line in site.trail(event="child")]


@pytest.mark.thorough("a job or a library that is in its way; the tests around have plain jobs")
def test_a_forked_child_has_no_timer_and_a_program_is_not_killed(site):
    site.push("program", name="soft")
    log = work(site, "soft", "fork")

    assert [0, 0] == [line["status"] for line in site.trail(event="child")]
    assert 1 == len(site.trail(event="soft in the parent"))
    assert [] == failures(site), log


@pytest.mark.thorough("a job or a library that is in its way; the tests around have plain jobs")
@pytest.mark.parametrize(
    ("name", "mode", "last"), [("soft", "finalize", "finalized"), ("soft_slower", "dispatch", "listened")]
)
def test_it_waits_where_python_or_a_listener_would_swallow_it(site, name, mode, last):
    work(site, name, mode)

    assert 1 == len(site.trail(event=last))
    [soft] = site.trail(event="soft")
    assert 0.4 <= soft["after"] < IN_TIME
    assert 1 == len(failures(site))


@pytest.mark.thorough("a job or a library that is in its way; the tests around have plain jobs")
def test_it_comes_again_if_python_has_ignored_it(site):
    """Out of the callback of a weak reference, in which it came first: that callback would go on for ever."""
    log = work(site, "soft", "callback")

    assert ["called back", "went on", "soft", "after"] == [line["event"] for line in site.trail()]
    assert 1 == len(failures(site))
    assert "Exception ignored" not in log
    assert [True] == [line["has_usual_hook"] for line in site.trail(event="after")]


@pytest.mark.thorough("a job or a library that is in its way; the tests around have plain jobs")
def test_it_leaves_no_lock_held_that_its_owner_would_release(site):
    """Nor would the job itself come to its end, if it waits for that lock again as it ends."""
    site.queue.bulk([("at_a_lock", {"number": number}) for number in range(JOBS // 4)])
    site.work("--modules", "tests.support.softapp")

    # On a busy machine it may come before the job's own try.
    assert JOBS // 4 == len(site.trail(event="soft")) + len(failures(site))
    assert {False} == {line["is_held"] for line in site.trail(event="soft")}


@pytest.mark.thorough("a job or a library that is in its way; the tests around have plain jobs")
@pytest.mark.parametrize("mode", ["block", "handlers"])
def test_what_a_job_does_to_signals_harms_no_later_job(site, mode):
    site.push(mode, name="soft")
    work(site, "soft", "sleep")

    assert ["sleep"] == [line["mode"] for line in site.trail(event="soft")]
    assert 1 == len(site.trail(event="end", mode=mode))
    assert 1 == len(site.trail(event="after"))


def test_a_hook_may_take_longer(site):
    work(site, "soft_slower", "ok", hook=1.8)  # its handler may take 1.5 s

    assert 1 == len(site.trail(event="hook"))
    assert [] == failures(site)


def test_a_stop_signal_that_comes_before_it_is_not_lost(site):
    log = work(site, "soft", "stop", maxTries=1)

    assert "stop_signal" in log
    assert (1, 0) == (len(site.trail(event="soft")), len(site.trail(event="after")))


# Async handlers


@pytest.mark.parametrize(
    ("mode", "cancelled", "last"),
    [
        ("sleep", 1, "queuepool.errors.SoftTimeout: the handler has run for 0.2 s, its soft timeout"),
        ("group", 1, "queuepool.errors.SoftTimeout: the handler has run for 0.2 s, its soft timeout"),
        ("block", 1, "queuepool.errors.SoftTimeout: the handler has run for 0.2 s, its soft timeout"),
        ("raise", 1, "ValueError: instead"),
        ("cancel", 1, "asyncio.exceptions.CancelledError"),
        ("timeout", 0, "TimeoutError"),
        ("return", 1, ""),
        ("ok", 0, ""),
    ],
)
def test_an_async_handler_is_cancelled(site, mode, cancelled, last):
    # Where it must not be cancelled, its soft timeout is far away: on a busy machine a short one may come first.
    work(site, "async_soft" if cancelled else "async_late", mode)

    assert cancelled == len(site.trail(event="cancelled"))
    assert ([last] if last else []) == failures(site)
    assert 1 == len(site.trail(event="after"))


def test_the_record_shows_where_an_async_handler_was(site):
    work(site, "async_soft", "sleep")

    [row] = site.queue.stores.failed.page()
    assert "await ASYNC[mode]()" in row.exception


# At the handler's end


def push_stress(site: Site, name: str) -> None:
    """Jobs that end just before, at and after their soft timeouts, and others in between."""
    for number in range(JOBS):
        site.queue.push(name, {"number": number, "seconds": SHORT * random.uniform(0.3, 1.2)})
        site.queue.push("calm", {"number": number})


@pytest.mark.thorough("hundreds of ends near the moment; each end by itself is tested above")
@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["stress", "stress_async"])
def test_jobs_that_end_at_their_soft_timeout_are_done_or_failed_and_nothing_else_gets_it(site, name):
    push_stress(site, name)
    with site.pool(*APP) as pool:
        eventually(lambda: 0 == site.queue.size(), within=60)
        log, numbers = pool.log(), list(range(JOBS))
    ends = site.trail(event="succeeded") + site.trail(event="failed")

    assert numbers == sorted(line["number"] for line in ends)
    assert numbers == sorted(line["number"] for line in site.trail(event="calm"))
    assert {"SoftTimeout"} == {line["error"] for line in site.trail(event="failed")}
    assert len(site.trail(event="failed")) == site.queue.stores.failed.count()
    assert min(len(site.trail(event="failed")), len(site.trail(event="succeeded"))) > JOBS / 40
    assert 1 == len({line["pid"] for line in site.trail()})
    # On a busy machine the time may be over before the handler's first line: then no frame of the handler is shown.
    texts = [row.exception for row in site.queue.stores.failed.page() if "File " in row.exception]
    assert [] == [text for text in texts if f"in {name}" not in text]
    assert not re.search("hook|listener|worker died", log)


@pytest.fixture(params=["redis", "sqlite", "postgres", "mariadb"])
def any_site(request):
    with site_on(request.param, request) as found:
        yield found


@pytest.mark.thorough("a job or a library that is in its way; the tests around have plain jobs")
def test_a_dispatch_that_is_interrupted_spoils_no_later_one(any_site):
    site = any_site
    (site.path / "dispatching.py").write_text(
        "from queuepool import SoftTimeout, configure, job\n"
        "from queuepool.jobs.connecting import default_queue\n"
        "from tests.support.poolapp import note\n"
        "@job('target', queue='other')\n"
        "def target(number): ...\n"
        "@job('dispatching', soft_timeout=0.004, tries=1)\n"
        "def dispatching(first):\n"
        "    number = first\n"
        "    try:\n"
        "        while True:\n"
        "            assert default_queue().size('none') == 0\n"
        "            identity = target.dispatch(number)\n"
        "            assert isinstance(identity, str) and len(identity) > 8, identity\n"
        "            note(event='stored', number=number)\n"
        "            number += 1\n"
        "    except SoftTimeout:\n"
        "        note(event='soft')\n"
    )
    # Each takes until the timer meets the handler outside of a push, seconds on a busy machine.
    for first in range(4):
        site.queue.push("dispatching", {"first": first * 1000})
    site.work("--modules", "dispatching")

    assert 4 == len(site.trail(event="soft")) + len(failures(site))  # it may come before the job's own try
    assert all("SoftTimeout" in line for line in failures(site))
    stored = len(site.trail(event="stored"))
    assert stored <= site.queue.size("other") <= stored + 4  # a push is not broken off, but may be unnoted
