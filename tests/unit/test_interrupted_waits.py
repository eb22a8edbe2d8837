"""A signal ends a wait also when it comes in the middle of a finalizer, whose exceptions Python drops."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, time
from queuepool.unix.signals import WorkerSignals

class Closes:
    def __del__(self):
        self.close()
        print("closed")
    def close(self):
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(10):
            str(_)

def blocking():
    {what}
    time.sleep(60)

def trace(frame, event, argument):
    return None

sys.settrace(trace if {traced} else None)
signals = WorkerSignals()
signals.listen()
for _ in range(3):
    signals.begin_round()
    signals.wait(blocking)
    print("ended", signals.begin_round(), sys.gettrace() is (trace if {traced} else None))
signals.wait(lambda: print("waits again"))
"""


@pytest.mark.by_turns("what", "traced")
@pytest.mark.parametrize("what", ["Closes()", "[Closes() for _ in range(2)]", "(lambda: Closes() and None)()"])
@pytest.mark.parametrize("traced", [False, True])
def test_a_wait_ends_though_a_finalizer_was_interrupted(what, traced):
    program = SCRIPT.format(what=what, traced=traced)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)

    assert "" == done.stderr
    lines = [line for line in done.stdout.splitlines() if line != "closed"]
    assert [*["ended True True"] * 3, "waits again"] == lines
