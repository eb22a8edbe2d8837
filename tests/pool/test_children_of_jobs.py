"""What a job forks is as Python alone would have it: its signals, its streams, its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

from tests.support import forked
from tests.support.eventually import eventually

JOBS = """
import multiprocessing
import os
import pty
import signal
import sys
import time

from queuepool import job, on
from queuepool.events import StewardStopping
from tests.support.forked import forked_facts
from tests.support.poolapp import note

forking = multiprocessing.get_context("fork")
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)

note(event="import", facts=forked_facts())

@on(StewardStopping)
def steward_stops(event): note(event="steward", facts=forked_facts())

@job("facts")
def facts(): note(event="facts", facts=forked_facts())

@job("own")
def own():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    note(event="own", facts=forked_facts())
    there, ready = os.pipe()
    child = forking.Process(target=lambda: (os.write(ready, b"."), [time.sleep(0.01) for _ in range(6000)]))
    child.start()
    os.read(there, 1)
    child.terminate()
    child.join()
    note(event="own ended", code=child.exitcode)

@job("signals", timeout=60)
def signals():
    for signum in STOPS:
        for _ in range(5):  # at once: also before the child has run anything
            child = forking.Process(target=time.sleep, args=(60,))
            child.start()
            os.kill(child.pid, signum)
            while signum == signal.SIGINT and child.is_alive():
                child.join(0.2)  # Python ignores what an interrupt raises while it calls others' hooks of a fork
                child.is_alive() and os.kill(child.pid, signum)
            child.join()
            note(event="signalled", by=signum, code=child.exitcode)

def ended(act):
    child = os.fork()
    if child == 0:
        act()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def fail(): raise ValueError("of the child")

@job("ends", soft_timeout=30, timeout=60)
def ends():
    note(event="ends", codes=[ended(lambda: sys.exit(end)) for end in (None, 0, 5)])
    note(event="failed", codes=[ended(lambda: sys.exit("why it ended")), ended(fail)])

def to_a_file(path):
    print("the child's line")
    os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), 1)
    print("elsewhere")

@job("prints")
def prints(path):
    print("half a", end="")
    ended(lambda: to_a_file(path))
    print(" line")

@job("terminal")
def terminal():
    child, fd = pty.fork()
    if child == 0:
        print("on a terminal")
        os._exit(0)
    note(event="terminal", text=os.read(fd, 100).decode())
    os.waitpid(child, 0)
"""


def work(site, *jobs, **data):
    (site.path / "own.py").write_text(JOBS)
    for name in jobs:
        site.queue.push(name, data)
    return site.run("work", *site.flags("--stop-when-empty", "--modules", "own"))


def pythons_own():
    """The facts of a child of a plain program's, which a shell starts in the foreground."""

    def heed() -> None:
        for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_DFL)  # in the background, the tests may be told to ignore them

    found = subprocess.run(
        [sys.executable, forked.__file__], capture_output=True, text=True, check=True, preexec_fn=heed
    )
    return json.loads(found.stdout)


def test_a_child_of_a_job_of_a_module_or_of_a_listener_has_pythons_own_signals(site):
    (site.path / "own.py").write_text(JOBS)
    site.queue.push("facts", {})
    with site.pool("--workers", "1", "--preload", "--modules", "own", "--listeners", "own"):
        eventually(lambda: site.trail(event="facts"))

    expected = pythons_own()
    found = [(line["event"], line["facts"]) for line in site.trail() if "facts" in line]
    assert {"import", "facts", "steward"} == {event for event, _ in found}
    assert [] == [(event, facts) for event, facts in found if facts != expected]


def test_a_signal_ends_a_child_also_one_that_has_just_been_forked(site):
    work(site, "signals")

    signalled = site.trail(event="signalled")
    assert 35 == len(signalled)
    # An interrupt is an exception in Python; one that comes too early for that is the signal it is.
    assert [] == [one for one in signalled if one["code"] not in (-one["by"], 1 if one["by"] == 2 else -one["by"])]


def test_a_handler_and_a_mask_of_the_jobs_own_are_its_childrens_too(site):
    work(site, "own")

    [facts] = [line["facts"] for line in site.trail(event="own")]
    assert ["15 <function own.<locals>.<lambda>"] == [text[:34] for text in facts["handlers"] if text[:2] == "15"]
    assert "0000000000000200" == facts["SigBlk"]
    assert [7] == [line["code"] for line in site.trail(event="own ended")]


def test_a_child_that_comes_back_to_the_worker_ends_as_python_would_end_it(site):
    log = work(site, "ends").stderr

    assert [[0, 0, 5]] == [line["codes"] for line in site.trail(event="ends")]
    assert [[1, 1]] == [line["codes"] for line in site.trail(event="failed")]
    assert "stderr: why it ended" in log
    assert "stderr: ValueError: of the child" in log


def test_what_a_child_prints_is_in_the_log_once_unless_it_was_sent_elsewhere(site):
    path = site.path / "elsewhere"
    log = work(site, "prints", path=str(path)).stderr
    work(site, "terminal")

    printed = [line.partition("stdout: ")[2] for line in log.splitlines() if "stdout: " in line]
    assert ["the child's line", "half a line"] == printed
    assert "elsewhere\n" == path.read_text()
    assert ["on a terminal"] == [line["text"].strip() for line in site.trail(event="terminal")]
