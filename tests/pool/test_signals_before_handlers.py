"""A new child obeys signals that arrived before it had its handlers."""

from __future__ import annotations

import subprocess
import sys

_CHILD = """
import os, signal
from queuepool.unix.signals import HANDLED, WorkerSignals, default_actions

signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)  # as its master has them
attention = WorkerSignals(paused=True)
os.kill(os.getpid(), signal.SIGCONT)
default_actions()
attention.listen()
print("paused" if attention.paused else "goes on")
"""


def test_a_worker_forked_paused_hears_the_continue_that_came_before_it_listened():
    said = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, check=True, timeout=30).stdout

    assert "goes on\n" == said
