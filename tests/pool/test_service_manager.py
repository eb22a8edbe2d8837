"""A pool under a service manager: what it says of itself over a real socket."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from queuepool.board.board import Board
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site
from tests.support.processes import go_on, halt
from tests.support.service_manager import ServiceManager, service_manager

#: longer than a pass can take on a busy machine
WATCHDOG = 6.0
#: seconds: the timeout of a job, with what a stop allows beyond it: the grace, and the time to settle the last job
RUNNING = 9 + 1 + 5
#: most seconds that a worker may take to write a job's outcome: its waits of 5 and 3 s, and 30 s; with the same
SETTLING = 38 + 1 + 5
ENVIRONMENT = """
import os, subprocess
from queuepool import job
from tests.support.poolapp import note, do
@job("show")
def show():
    inherited = subprocess.run(["env"], capture_output=True, text=True).stdout
    note(event="seen", own=sorted(os.environ), inherited=inherited)
"""


@pytest.fixture
def manager(site) -> Iterator[ServiceManager]:
    with service_manager(site.path / "notify", WATCHDOG) as manager:
        yield manager


def asked(manager: ServiceManager, *, stop: bool) -> list[float]:
    """The times in seconds that a start, or a stop, asked for."""
    begun = [message.at for message in manager.having("STOPPING=1")]
    asking = manager.having("EXTEND_TIMEOUT_USEC=.*")
    found = [message for message in asking if bool(begun and message.at >= begun[0]) == stop]
    return [int(str(message.value("EXTEND_TIMEOUT_USEC"))) / 1e6 for message in found]


@contextmanager
def ready(site, manager: ServiceManager, *flags: str) -> Iterator[RunningPool]:
    """A pool that has said that it is ready: its workers are at work a moment before."""
    with site.pool(*flags, env=manager.variables()) as pool:
        eventually(lambda: ["READY"] == manager.phases())
        yield pool


def held(site, **data) -> None:
    site.push("until", gate=str(site.path / "gate"), **data)


def test_a_pool_says_once_that_it_is_ready_and_goes_on_saying_that_it_lives(site, manager):
    """Executed, with its pid in WATCHDOG_PID."""
    with site.pool("--workers", "1", parent=manager.parent()) as pool:
        eventually(lambda: ["READY"] == manager.phases())
        first = len(eventually(lambda: manager.having("WATCHDOG=1")))
        eventually(lambda: manager.having("STATUS=running workers=1 busy=0 done=0 failed=0"))
        eventually(lambda: len(manager.having("WATCHDOG=1")) > first)
        before = manager.phases()
        pool.signal(signal.SIGTERM)
        pool.wait()

    assert ["READY"] == before
    assert ["READY", "STOPPING"] == manager.phases()
    assert [] == manager.having("RELOADING=1")


def test_neither_a_job_nor_what_it_starts_can_speak_for_the_pool(site, manager):
    (site.path / "showing.py").write_text(ENVIRONMENT)
    site.queue.push("show")
    with site.pool("--workers", "1", "--modules", "showing", env=manager.variables()):
        [seen] = eventually(lambda: site.trail(event="seen"))

    for name in ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"):
        assert name not in seen["own"]
        assert name not in seen["inherited"]


@pytest.mark.fault("F87")
def test_a_stopped_master_does_not_ping_and_one_that_goes_on_does(site, manager):
    with ready(site, manager, "--workers", "1") as pool:
        eventually(lambda: manager.having("WATCHDOG=1"))
        halt(pool.pid)
        pinged, stopped = len(manager.having("WATCHDOG=1")), time.monotonic()
        eventually(lambda: time.monotonic() > stopped + WATCHDOG / 2)
        meanwhile = len(manager.having("WATCHDOG=1"))
        go_on(pool.pid)
        eventually(lambda: len(manager.having("WATCHDOG=1")) > pinged)

    assert pinged == meanwhile


@pytest.mark.fault("F87")
def test_a_master_that_the_watchdog_ends_leaves_its_stack(site, manager):
    with ready(site, manager, "--workers", "1") as pool:
        pool.titles()
        pool.signal(signal.SIGABRT)

        assert -signal.SIGABRT == pool.wait(within=30)
    assert "Fatal Python error: Aborted" in pool.log()
    assert "master/loop.py" in pool.log()


def test_a_reload_begins_with_the_time_and_ends_when_all_workers_are_new(site, manager):
    with ready(site, manager, "--workers", "2") as pool:
        before = set(pool.workers())
        began = int(time.monotonic() * 1e6)
        pool.signal(signal.SIGHUP)
        [reload] = eventually(lambda: manager.having("RELOADING=1"))
        eventually(lambda: ["READY", "RELOADING", "READY"] == manager.phases())
        eventually(lambda: not before & set(pool.workers()))

    assert began <= int(reload.value("MONOTONIC_USEC")) <= reload.at * 1e6


@pytest.mark.thorough("test_operating_a_pool.py has code that does not boot, the test above a reload")
def test_a_reload_ends_when_the_new_code_does_not_come_to_work_and_says_so(site, manager):
    module = site.path / "versioned.py"
    module.write_text("import queuepool\n")
    with ready(site, manager, "--workers", "1", "--modules", "tests.support.poolapp,versioned") as pool:
        module.write_text("raise RuntimeError('half deployed')\n")
        pool.signal(signal.SIGHUP)
        eventually(lambda: manager.having("STATUS=.*; the new code does not become ready: .*half deployed.*"))
        eventually(lambda: ["READY", "RELOADING", "READY"] == manager.phases())
        refused = site.run("reload", "--runtime-dir", "run", "--wait", "30", check=False)

    assert 1 == refused.returncode
    assert "half deployed" in refused.stderr


def test_a_stop_asks_for_the_time_that_the_running_job_still_has(site, manager):
    held(site, timeout=40)
    with ready(site, manager, "--workers", "1", "--grace", "2") as pool:
        eventually(lambda: site.trail(event="start"))
        pool.signal(signal.SIGTERM)
        eventually(lambda: len(asked(manager, stop=True)) >= 2)
        (site.path / "gate").touch()
        pool.wait()
    times = asked(manager, stop=True)

    assert 0 < times[-1] < times[0] <= 40 + 2 + 5
    assert times == sorted(times, reverse=True)


@pytest.mark.thorough("unit/test_herald.py has what is said at each moment; in the first test a pool says it")
def test_a_stop_asks_for_no_time_for_a_job_without_a_limit(site, manager):
    held(site)
    with ready(site, manager, "--workers", "1", "--timeout", "0") as pool:
        eventually(lambda: site.trail(event="start"))
        pool.signal(signal.SIGTERM)
        eventually(lambda: manager.having("STOPPING=1"))
        (site.path / "gate").touch()
        pool.wait()

    assert [] == asked(manager, stop=True)


@pytest.mark.thorough("unit/test_herald.py has what is said at each moment; in the first test a pool says it")
def test_a_start_asks_for_the_time_that_its_imports_may_take(site, manager):
    (site.path / "slow_import.py").write_text(
        "import time\nfrom pathlib import Path\nfrom tests.support.poolapp import *\n"
        f"while not Path({str(site.path / 'gate')!r}).exists(): time.sleep(0.01)\n"
    )
    flags = ("--workers", "1", "--modules", "slow_import", "--boot-timeout", "50")
    with site.pool(*flags, env=manager.variables(), wait=False):
        eventually(lambda: len(manager.having("EXTEND_TIMEOUT_USEC=.*")) >= 2)
        early = manager.phases()
        (site.path / "gate").touch()
        eventually(lambda: ["READY"] == manager.phases())

    assert [] == early
    assert [] == [seconds for seconds in asked(manager, stop=False) if not 0 <= seconds <= 50 + 5]


@pytest.mark.thorough("unit/test_herald.py has what is said at each moment; in the first test a pool says it")
def test_a_pool_that_starts_while_its_store_is_away_is_ready(site, manager):
    flags = ["--url", f"unix://{site.path}/none.sock", "--workers", "1"]
    with site.pool(*flags, env=manager.variables(), wait=False):
        eventually(lambda: ["READY"] == manager.phases())


@pytest.mark.thorough("unit/test_herald.py has what is said at each moment; in the first test a pool says it")
def test_a_pool_that_gives_up_says_so(site, manager):
    (site.path / "broken.py").write_text("raise RuntimeError('never')\n")
    with site.pool("--workers", "1", "--modules", "broken", env=manager.variables(), wait=False) as pool:
        assert 1 == pool.wait(within=30)

    assert [] == manager.having("READY=1")
    assert manager.having("STATUS=gives up, see the log: .*")


@pytest.mark.fault("F89")
@pytest.mark.bad_input("B166")
@pytest.mark.by_turns("address")  # each of them is refused in unit/test_herald.py
@pytest.mark.parametrize("address", ["/etc/passwd", "/nonexistent/notify", "relative", "@" + "x" * 200])
def test_a_pool_that_cannot_notify_works_and_says_so_once(site, manager, address):
    site.push("ok")
    with site.pool("--workers", "1", env=manager.variables(NOTIFY_SOCKET=address, WATCHDOG_USEC="1")) as pool:
        eventually(lambda: site.trail(event="end"))

    assert 1 == sum("NOTIFY_SOCKET" in line or "cannot be notified" in line for line in pool.log().splitlines())


TWO = """
[pool:first]
workers = 1
[pool:second]
workers = 1
"""


@pytest.mark.thorough("test_parent.py tells the service manager of two pools")
def test_several_pools_of_one_file_are_ready_together_and_live_together(site, manager):
    masters = r"^queuepool: master \[{}\] running"
    with site.pool(config=TWO, env=manager.variables(), wait=False) as pool:
        eventually(lambda: ["READY"] == manager.phases())
        [second] = eventually(lambda: pool.pids(masters.format("second")))
        eventually(lambda: pool.pids(masters.format("first")))  # a title may follow what it tells
        pinged = len(eventually(lambda: manager.having("WATCHDOG=1")))
        eventually(lambda: len(manager.having("WATCHDOG=1")) > pinged)
        halt(second)
        silent = eventually(lambda: not pings_within(manager, WATCHDOG / 2) and manager.read()[-1])
        go_on(second)
        eventually(lambda: manager.having("WATCHDOG=1")[-1].at > silent.at)
        pool.signal(signal.SIGTERM)
        pool.wait()

    assert ["READY", "STOPPING"] == manager.phases()


def pings_within(manager: ServiceManager, seconds: float) -> bool:
    return manager.having("WATCHDOG=1")[-1].at > time.monotonic() - seconds


class Service(RuleBasedStateMachine):
    """A pool to which anything happens, and what its service manager receives. A subclass has the ``site``."""

    site: Site

    def __init__(self) -> None:
        super().__init__()
        (self.site.path / "notify").unlink(missing_ok=True)
        self.listening = service_manager(self.site.path / "notify", WATCHDOG)
        self.manager = self.listening.__enter__()
        self.running = self.site.pool("--workers", "1", "--timeout", "9", env=self.manager.variables())
        self.pool = self.running.__enter__()
        [path] = (path for path in (self.site.path / "run/default").glob("board.*") if path.name.count(".") == 1)
        self.header, self.beats = Board.open(path).header, [time.monotonic()]
        self.stopped = False

    def teardown(self) -> None:
        self.goes_on()
        running = self.is_stopped_while_a_job_runs()
        with suppress(OSError):  # it is gone when the pool is
            self.watches(lambda: self.pool.process.poll() is not None)
        self.running.__exit__(None, None, None)
        self.check()

        assert [] == [seconds for seconds in running if not 0 <= seconds <= RUNNING]
        self.listening.__exit__(None, None, None)

    def is_stopped_while_a_job_runs(self) -> list[float]:
        """The times that the stop asked for before the job ended: no outcome was written meanwhile."""
        gate = self.site.path / f"gate{self.pool.pid}"
        self.watches(lambda: 0 == self.site.queue.size())  # nor is an earlier job's
        identity = self.site.push("until", gate=str(gate))
        self.watches(lambda: self.site.trail(event="start", id=identity))
        self.pool.signal(signal.SIGTERM)
        self.watches(lambda: asked(self.manager, stop=True))
        asked_for = asked(self.manager, stop=True)
        gate.touch()
        return asked_for

    def watches(self, condition) -> None:
        """Wait for it, and note meanwhile when the loop came round."""

        def looks() -> bool:
            if self.header.beat != self.beats[-1]:
                self.beats.append(self.header.beat)
            self.manager.read()
            return bool(condition())

        eventually(looks)

    @rule()
    def goes_on(self) -> None:
        go_on(self.pool.pid)
        if self.stopped:
            self.stopped = False
            self.beats = [time.monotonic()]
            self.manager.messages.clear()

    @precondition(lambda self: not self.stopped)
    @rule()
    def is_stopped(self) -> None:
        halt(self.pool.pid)
        self.check()
        self.stopped, seen = True, len(self.manager.read())
        until = time.monotonic() + WATCHDOG / 3
        eventually(lambda: time.monotonic() > until)

        assert seen == len(self.manager.read())

    @precondition(lambda self: not self.stopped)
    @rule()
    def works(self) -> None:
        identity = self.site.push("sleep", seconds=0.2)
        self.watches(lambda: self.site.trail(event="end", id=identity))

    @precondition(lambda self: not self.stopped)
    @rule()
    def reloads(self) -> None:
        before = self.header.generation
        self.pool.signal(signal.SIGHUP)
        self.watches(lambda: self.header.generation > before and self.manager.phases()[-1:] == ["READY"])

    def check(self) -> None:
        messages = self.manager.read()
        slowest = max((later - earlier for earlier, later in pairwise(self.beats)), default=0.0)
        pings = [message.at for message in messages if "WATCHDOG=1" in message.lines]
        gaps = [later - earlier for earlier, later in pairwise(pings)]
        phases = [phase for phase in self.manager.phases() if phase != "STOPPING"]

        assert [] == [gap for gap in gaps if gap > WATCHDOG / 2 + 2 * slowest]
        assert [] == [pair for pair in pairwise(phases) if pair[0] == pair[1]]
        assert [] == [seconds for seconds in asked(self.manager, stop=False) if not 0 <= seconds <= 60 + 5]
        assert [] == [seconds for seconds in asked(self.manager, stop=True) if not 0 <= seconds <= SETTLING]


@pytest.mark.thorough("random orders of what the tests above do one by one")
def test_whatever_happens_to_a_pool_its_messages_keep_their_laws(site):
    bound = type("Bound", (Service,), {"site": site})
    quiet = list(HealthCheck)
    run_state_machine_as_test(
        bound,
        settings=settings(
            max_examples=3, stateful_step_count=5, deadline=None, suppress_health_check=quiet, database=None
        ),
    )
