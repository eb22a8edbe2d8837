"""Run every job in a fresh interpreter, so that it runs the current code. For development."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence

import click

from queuepool.cli import output
from queuepool.cli.options import FLAGS, WORKER, Where, located
from queuepool.config import application
from queuepool.unix import proc
from queuepool.unix.signals import WorkerSignals, reset_inherited


@click.command()
@located(*WORKER)
def listen(where: Where) -> int:
    """Run every job in a fresh interpreter, for development"""
    pool = where.pool()
    proc.show(f"queuepool: listener [{pool.name}] running")
    reset_inherited()
    signals = WorkerSignals()
    signals.listen()
    command = _command(where, brief=not pool.verbose)
    while not signals.stop:
        signals.begin_round()
        if signals.paused or not _run_one(command, signals):
            signals.wait(lambda: time.sleep(pool.sleep))
    return 0


def _command(where: Where, *, brief: bool) -> list[str]:
    """``work --once`` with the given flags; ``brief``: without log lines for each child's start and stop."""
    words = [*application.source().command, "work", "--once", *(["--brief"] if brief else [])]
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


def _run_one(command: Sequence[str], signals: WorkerSignals) -> bool:
    """Run one child until it leaves; ``False`` if it failed to work, so that the caller pauses.

    With no job the child itself waits for ``--sleep``.
    """
    child = subprocess.Popen(command)
    stop_sent = False
    while child.poll() is None:
        signals.begin_round()
        if signals.stop and not stop_sent:
            stop_sent = True
            child.send_signal(signal.SIGTERM)
        # Does not reap, so that a signal can interrupt it; the next poll reaps.
        signals.wait(lambda: os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT))
    if child.returncode == -signal.SIGALRM:
        output.complain(f"pid={child.pid} killed: its job ran past its timeout, and is tried again when its lease ends")
    elif child.returncode < 0 and not stop_sent:
        output.complain(f"pid={child.pid} died: {signal.Signals(-child.returncode).name}")
    return child.returncode in (0, -signal.SIGALRM)
