"""A fresh interpreter for every job, so that the next job runs the code as it is now. For development."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import click

from queuepool.cli import output
from queuepool.cli.flags import FLAGS, WORKER
from queuepool.cli.options import Where, located
from queuepool.unix import proc, signals
from queuepool.unix.signals import WorkerSignals


@click.command()
@located(*WORKER)
def listen(where: Where) -> int:
    """Run every job in a fresh interpreter, for development"""
    pool = where.pool()
    proc.show(f"queuepool: listener [{pool.name}] running")
    signals.begin()
    attention = WorkerSignals()
    attention.listen()
    command = _command(where, brief=not pool.verbose)
    while not attention.stop:
        attention.begin_round()
        if attention.paused or not _run_one(command, attention):
            attention.wait(lambda: time.sleep(pool.sleep))
    return 0


def _command(where: Where, *, brief: bool) -> list[str]:
    """``work --once`` with the flags that we were given; ``brief``: not a word of each child's coming and going."""
    words = [sys.executable, "-m", "queuepool", "work", "--once", *(["--brief"] if brief else [])]
    words += [f"--config={where.path}"] if where.path else []
    words += [f"--pool={where.pool_name}"] if where.pool_name else []
    for key, value in where.overrides.items():
        name = key.partition(".")[2].replace("_", "-")
        words += [f"--{name}={value}"] if FLAGS[key].unit else _switch(name, value)
    return words


def _switch(name: str, value: str) -> list[str]:
    if value == "yes":
        return [f"--{name}"]
    return [f"--no-{name}"] if name == "force" else []


def _run_one(command: Sequence[str], attention: WorkerSignals) -> bool:
    """Let one child run until it leaves; ``False`` when it did not come to work, so that we rest.

    With nothing to do the child itself waits for ``--sleep``.
    """
    child = subprocess.Popen(command)
    told = False
    while child.poll() is None:
        attention.begin_round()
        if attention.stop and not told:
            told = True
            child.send_signal(signal.SIGTERM)
        # Only waits, so that a signal can break it off; the next poll reaps.
        attention.wait(lambda: os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT))
    if child.returncode == -signal.SIGALRM:
        output.complain(f"pid={child.pid} killed: its job ran past its timeout, and is tried again when its lease ends")
    elif child.returncode < 0 and not told:
        output.complain(f"pid={child.pid} died: {signal.Signals(-child.returncode).name}")
    return child.returncode in (0, -signal.SIGALRM)
