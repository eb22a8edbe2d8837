"""The signal for a worker's stack stays with whoever in the process has it already."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, tempfile
from queuepool.unix.signals import LIVE_STACK, write_stack_on_request

if sys.argv[1] == "taken":
    signal.signal(LIVE_STACK, lambda *_: print("mine"))
with tempfile.TemporaryFile() as file:
    write_stack_on_request(file)
    os.kill(os.getpid(), LIVE_STACK)
    print("stack" if os.fstat(file.fileno()).st_size else "none")
"""


@pytest.mark.parametrize(("whose", "said"), [("taken", ["mine", "none"]), ("free", ["stack"])])
def test_a_handler_that_is_there_is_kept(whose, said):
    found = subprocess.run([sys.executable, "-c", PROGRAM, whose], capture_output=True, text=True, check=True)

    assert said == found.stdout.split()
