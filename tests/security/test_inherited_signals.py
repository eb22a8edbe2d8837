"""The pool's parent ignores or blocks signals before it starts the pool (item 4 of docs/attacks.md)."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from tests.support.eventually import eventually
from tests.support.pools import is_gone

pytestmark = pytest.mark.real_start

#: becomes the command after it, once it has done this to signals
PARENT = """
import os, signal, sys
every = signal.valid_signals() - {{signal.SIGKILL, signal.SIGSTOP}}
{}
os.execv(sys.argv[1], sys.argv[1:])
"""
DEEDS = {
    "ends of children ignored": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "all ignored": "[signal.signal(signum, signal.SIG_IGN) for signum in every]",
    "all blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, every)",
}
PARENTS = {name: [sys.executable, "-c", PARENT.format(deed)] for name, deed in DEEDS.items()}


@pytest.fixture(
    params=[
        pytest.param("ends of children ignored", marks=pytest.mark.thorough("the next one ignores them, too")),
        "all ignored",
        "all blocked",
    ]
)
def parent(request) -> list[str]:
    return PARENTS[request.param]


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["--preload", "--no-preload"])
def test_a_killed_worker_is_reaped_and_its_job_runs_again_whatever_the_parent_made_of_signals(site, parent, how):
    gate = site.path / "gate"
    site.push("until", gate=str(gate), maxTries=0)
    with site.pool("--workers", "2", how, parent=parent) as pool:
        [first] = eventually(lambda: site.trail(event="start"))
        os.kill(first["pid"], signal.SIGKILL)
        eventually(lambda: len(site.trail(event="start")) == 2)
        gate.touch()
        eventually(lambda: site.trail(event="end"))

        assert is_gone(first["pid"])
        assert 2 == len(eventually(lambda: len(found := pool.workers()) == 2 and found))


# By turns: the test above ends a pool of each parent by SIGTERM.
@pytest.mark.by_turns("signum", "parent")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_every_stop_is_obeyed_whatever_the_parent_made_of_signals(site, parent, signum):
    site.push("sleep", seconds=600, maxTries=0)
    with site.pool("--workers", "1", "--stop-timeout", "0.5", parent=parent) as pool:
        eventually(lambda: site.trail(event="start"))
        pool.signal(signum)

        assert 0 == pool.wait()


@pytest.mark.by_turns("parent")
def test_a_job_finds_the_signals_as_a_process_of_its_own_would(site, parent):
    (site.path / "own.py").write_text(
        "import signal\nfrom tests.support.poolapp import note\nfrom queuepool import job\n"
        "@job('look')\ndef look():\n"
        "    ignored = [one for one in signal.valid_signals() if signal.getsignal(one) == signal.SIG_IGN]\n"
        "    note(ignored=sorted(map(int, ignored)), blocked=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())))\n"
    )
    site.queue.push("look")
    with site.pool("--workers", "1", "--modules", "tests.support.poolapp,own", parent=parent):
        [line] = eventually(lambda: [line for line in site.trail() if "ignored" in line])

    # Python itself ignores these two.
    assert ([signal.SIGPIPE, signal.SIGXFSZ], []) == (line["ignored"], line["blocked"])


@pytest.mark.thorough("the test before it looks at the signals of a job in a pool")
def test_a_lone_worker_sees_the_ends_of_what_its_jobs_start(site):
    (site.path / "own.py").write_text(
        "import subprocess\nfrom tests.support.poolapp import note\nfrom queuepool import job\n"
        "@job('call')\ndef call(): note(code=subprocess.run(['false']).returncode)\n"
    )
    site.queue.push("call")
    flags = site.flags("--stop-when-empty", "--modules", "tests.support.poolapp,own")
    site.run("work", *flags, parent=PARENTS["ends of children ignored"])

    assert [1] == [line["code"] for line in site.trail() if "code" in line]
