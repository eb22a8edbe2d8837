"""Jobs that harm their own worker."""

from __future__ import annotations

import asyncio
import atexit
import locale
import os
import random
import resource
import subprocess
import sys
import threading
import time
import uuid

import psutil

from queuepool import current, job
from tests.support.poolapp import note


class Odd(BaseException):
    """A direct subclass of ``BaseException``."""


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Empty(Exception):
    """False as a truth value, as an error with a length may be."""

    def __len__(self) -> int:
        return 0


RAISED = {
    "Empty": lambda: Empty(),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(),
    "GeneratorExit": lambda: GeneratorExit(),
    "SystemExit": lambda: SystemExit(0),
    "CancelledError": lambda: asyncio.CancelledError(),
    "Odd": lambda: Odd("odd"),
    "Mute": lambda: Mute(),
    "large": lambda: ValueError("x" * 100_000_000),
    "long": lambda: ValueError("x" * 100_000),
    "surrogates": lambda: ValueError("\ud800\udc00 \x1b[31m"),
    "cycle": lambda: _cycle(),
}


def _cycle() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


@job("throw")
def throw(what: str) -> None:
    raise RAISED[what]()


@job("abort")
def abort() -> None:
    os.abort()


@job("recurse")
def recurse() -> None:
    """Use only with a limit on the address space: otherwise it takes all memory there is."""
    most = psutil.Process().memory_info().vms + 48 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    sys.setrecursionlimit(2**31 - 1)

    def deeper() -> None:
        deeper()

    deeper()


@job("close_all")
def close_all() -> None:
    os.closerange(3, 4096)


@job("spoil")
def spoil(folder: str) -> None:
    """Spoil all settings of this process."""
    os.mkdir(folder)
    os.chdir(folder)
    os.rmdir(folder)
    os.umask(0o777)
    os.environ["LC_ALL"] = "C"
    locale.setlocale(locale.LC_ALL, "C")
    sys.path.clear()
    sys.stdout.close()
    sys.stdin.close()
    random.seed(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@job("canary")
def canary() -> None:
    try:
        here = os.getcwd()
    except FileNotFoundError:
        here = ""
    note(event="canary", here=here, path=len(sys.path), closed=sys.stdout.closed, umask=os.umask(0o22))


@job("linger")
def linger() -> None:
    """Leaves a thread and an exit handler that never end."""
    threading.Thread(target=time.sleep, args=(600,)).start()
    atexit.register(time.sleep, 600)


@job("leave_an_orphan")
def leave_an_orphan(gate: str) -> None:
    """Leave an orphan that hides its origin, and lives until the gate is there."""
    waits = f"(until [ -e '{gate}' ]; do /bin/sleep 0.05; done; exit 3) & exit 0"
    subprocess.run(["env", "-i", "/bin/sh", "-c", waits], check=True)


@job("until_about")
def until_about(seconds: float) -> None:
    time.sleep(seconds)
    note(event="ended", id=current().id)


@until_about.after_succeeded
def until_about_succeeded(seconds: float) -> None:
    note(event="succeeded", id=current().id)


@job("hold_on")
def hold_on() -> None:
    try:
        time.sleep(60)
    finally:
        time.sleep(60)


@job("draw")
def draw() -> None:
    note(event="drawn", number=random.random(), id=uuid.uuid1().hex)


@job("mutter")
def mutter() -> None:
    sys.stdout.write("half a line")
