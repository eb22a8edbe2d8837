"""Waits under gevent or eventlet end at a signal, and leave no timer behind that strikes in what comes next."""

from __future__ import annotations

import subprocess
import sys

import pytest

from queuepool.stores.factory import Stores
from tests.pool.test_patched_libraries import LIBRARIES

SCRIPT = """
import os, signal, sys, time
from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from queuepool.unix import originals
from queuepool.unix.signals import WorkerSignals

sys.path.insert(0, sys.prefix + "/green")
{patch}

# a timer that is left strikes before the end; and 300 waits that nothing ends outlast the patience
ROUNDS, PAUSE, LONG = 150, 0.002, 0.5
signals = WorkerSignals()
signals.listen()
queue = Stores(ConnectionSettings(url=sys.argv[1], prefix=sys.argv[2])).queue

def signal_often():
    while True:
        originals.sleep(PAUSE)
        os.kill(os.getpid(), signal.SIGUSR1)

queue.wait(["default"], 0.001)  # each connects
queue.wait_for_change(["default"], 0.001)
originals.start_thread(signal_often, ())
for wait in (queue.wait, queue.wait_for_change):
    for _ in range(ROUNDS):
        signals.begin_round()
        signals.wait(lambda: wait(["default"], LONG))
        queue.sizes("default")
time.sleep(1.0)  # gevent's or eventlet's: a timer that was left strikes here
print("all ended")
"""


@pytest.mark.thorough("test_patched_libraries runs a pool with them")
@pytest.mark.by_turns("library", "connection")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_signal_ends_a_wait_and_leaves_no_timer(built: Stores, connection, library):
    script = SCRIPT.format(patch=LIBRARIES[library][0])
    words = [connection.url, connection.prefix]
    python = [sys.executable, "-W", "ignore"]  # eventlet warns of itself
    done = subprocess.run([*python, "-c", script, *words], capture_output=True, text=True, timeout=110)

    assert ("", "all ended\n") == (done.stderr, done.stdout)
