"""The jobs that most tests run: one handler with modes, which writes a trail of what it did."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

from queuepool import Job, current, job
from tests.support.eventually import eventually
from tests.support.gates import until_told

_memory: list[bytearray] = []


def note(**facts: Any) -> None:
    """Write one line at once, so that lines of several processes do not mix."""
    line = json.dumps({"pid": os.getpid(), "at": time.time(), **facts}) + "\n"
    fd = os.open(os.environ["TRAIL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode())
    os.close(fd)


@job("do")
def do(mode: str = "ok", tag: str = "", **options: Any) -> None:
    note(event="start", mode=mode, tag=tag, id=current().id, attempt=current().attempts)
    MODES[mode](**options)
    note(event="end", mode=mode, tag=tag, id=current().id, attempt=current().attempts)


@do.after_failed
def do_failed(error: BaseException, mode: str, **options: Any) -> None:
    note(event="after_failed", mode=mode, error=type(error).__name__)


@do.after_succeeded
def do_succeeded(mode: str, **options: Any) -> None:
    note(event="after_succeeded", mode=mode)


@job("slow", timeout=1, tries=2, backoff=0)
def slow() -> None:
    note(event="start", mode="slow", attempt=current().attempts)
    hang_in_c()


@job("twice", tries=2, backoff=0)
def twice() -> None:
    """Killed at its first attempt; fails at all others."""
    note(event="start", mode="twice", attempt=current().attempts)
    if current().attempts == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("as asked")


@job("add")
async def add(left: int, right: int) -> None:
    import asyncio

    await asyncio.sleep(0.01)
    note(event="end", mode="add", sum=left + right)


async def refuse() -> None:
    """A task that refuses to be cancelled."""
    import asyncio

    while True:
        try:
            await asyncio.sleep(0.01)
        except BaseException:
            continue


class Import(Job, name="Import", tries=1):
    path: str
    lines: int = 1

    def handle(self) -> None:
        note(event="end", mode="Import", path=self.path, lines=self.lines)
        if self.lines < 0:
            raise ValueError("fewer than no lines")

    def after_succeeded(self) -> None:
        note(event="after_succeeded", mode="Import", path=self.path)

    def after_failed(self, error: BaseException) -> None:
        note(event="after_failed", mode="Import", path=self.path, error=type(error).__name__)


@job("App\\Jobs\\SendMail")
def send_mail(to: str, template: str) -> None:
    note(event="end", mode="SendMail", to=to, template=template, attempt=current().attempts)


@job("App\\Jobs\\SecretMail")
def secret_mail(to: str, template: str) -> None:
    note(event="end", mode="SecretMail", to=to, template=template)


@job("App\\Jobs\\Report@build")
def report(id: int, fail_times: int = 0) -> None:
    note(event="end", mode="Report", id=id, attempt=current().attempts)


def hang_in_c() -> None:
    """Take a lock of the C library's twice: no handler of a signal ends that, and it costs no processor."""
    lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
    lock(mutex)
    lock(mutex)


def raise_it(times: int = 1_000_000) -> None:
    if current().attempts <= times:
        raise ValueError("as asked")


def swallow() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(60)


def fork_and_return_twice() -> None:
    os.fork()


def eat(mb: int, keep: float = 0.0) -> None:
    _memory.append(bytearray(os.urandom(1024) * 1024 * mb))
    time.sleep(keep)


def leave_a_child() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    note(event="child", child=child.pid)
    os.kill(os.getpid(), signal.SIGKILL)


def start_a_session(gate: str) -> None:
    """A child that no kill of the worker's process group reaches."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"], start_new_session=True)
    note(event="child", child=child.pid)
    until_told(gate)


def leave_an_orphan(gate: str) -> None:
    """A program in a session of its own, whose parent has ended."""
    program = "import os, time; os.fork() and os._exit(0); os.setsid(); print(os.getpid(), flush=True); time.sleep(120)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        note(event="child", child=int(child.stdout.readline()))
    until_told(gate)


def leave_a_copy() -> None:
    """A forked child in the worker's process group, not started from its environment."""
    child = os.fork()
    if child == 0:
        time.sleep(120)
        os._exit(0)
    note(event="child", child=child)


def become_a_daemon(gate: str) -> None:
    """A grandchild that hides its origin: no parent, a session of its own, not started from our environment."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note(event="child", child=os.getpid())
            time.sleep(120)
        os._exit(0)
    os.wait()
    until_told(gate)


def start_a_bare_daemon(gate: str) -> None:
    """A grandchild that has lost all that it was given: no parent, a session and an environment of its own."""
    line = "env -i sleep 120 > /dev/null 2>&1 & echo $!"
    note(event="child", child=int(subprocess.check_output(["sh", "-c", line], start_new_session=True)))
    until_told(gate)


def make_deaf() -> None:
    """What a careless library leaves behind."""
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM):
        signal.signal(signum, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def beat(seconds: float) -> None:
    """Note all the time that it still runs."""
    ends = time.monotonic() + seconds

    def is_over() -> bool:
        note(event="beat", id=current().id, attempt=current().attempts)
        return time.monotonic() >= ends

    eventually(is_over, within=seconds + 45.0)


MODES: dict[str, Any] = {
    "ok": lambda **_: None,
    "raise": raise_it,
    "sleep": lambda seconds: time.sleep(seconds),
    "beat": beat,
    "until": until_told,
    "raise_when": lambda gate: (until_told(gate), raise_it(times=1)),
    "hang_in_c": hang_in_c,
    "hold_the_gil": lambda: ctypes.PyDLL(None).sleep(60),
    "swallow": swallow,
    "block_signals": block_signals,
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda code=0: os._exit(code),
    "sys_exit": lambda: sys.exit("not my business"),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "fork": fork_and_return_twice,
    "eat": eat,
    "child": leave_a_child,
    "deaf": make_deaf,
    "close": lambda: os.closerange(3, 4096),
    "session": start_a_session,
    "orphan": leave_an_orphan,
    "daemon": become_a_daemon,
    "bare": start_a_bare_daemon,
    "copy": leave_a_copy,
    "timer": lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds),
    "release": lambda delay=0.0, times=1: current().release(delay) if current().attempts <= times else None,
    "fail": lambda: current().fail("by hand"),
    "delete": lambda: (current().delete(), raise_it()),
}
