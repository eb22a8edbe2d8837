"""Jobs with soft timeouts, and jobs that name the exceptions after which they are retried."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from queuepool import Job, SoftTimeout, current, job, on
from queuepool.errors import JobError, TimedOut
from queuepool.events import JobProcessing, JobQueued
from tests.support.poolapp import note


class Wrong(ValueError):
    """Derived from a class that a job names."""


class Derived(Wrong, TimeoutError):
    """Derived from two that jobs name."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("as asked"),
    "Wrong": lambda: Wrong("as asked"),
    "TimeoutError": lambda: TimeoutError("as asked"),
    "Derived": lambda: Derived("as asked"),
    "KeyError": lambda: KeyError("as asked"),
    "SystemExit": lambda: SystemExit(3),
    "JobError": lambda: JobError("as asked"),
    "TimedOut": lambda: TimedOut("not by the pool"),
}


def raise_it(error: str, release: bool = False) -> None:
    note(event="start", error=error, attempt=current().attempts)
    if release:
        current().release(0)
    raise RAISED[error]()


job("plain", tries=3)(raise_it)
job("retry_on", tries=3, retry_on=(TimeoutError, Wrong))(raise_it)
job("fail_on", tries=3, fail_on=ValueError)(raise_it)
job("both", tries=3, retry_on=[ValueError, TimeoutError], fail_on=[Wrong])(raise_it)


class Failing(Job, name="Failing", tries=3, fail_on=(ValueError,)):
    error: str

    def handle(self) -> None:
        raise_it(self.error)

    def after_failed(self, error: BaseException) -> None:
        note(event="after_failed", error=type(error).__name__)


@job("killed", tries=2, retry_on=(TimeoutError,), fail_on=(ValueError,))
def killed() -> None:
    note(event="start", attempt=current().attempts)
    if current().attempts == 1:
        os.kill(os.getpid(), signal.SIGKILL)


#: when each job was about to begin (monotonic): its timer is armed later
_begun: list[float] = []


@on(JobProcessing)
def take_the_time(event: JobProcessing) -> None:
    _begun.append(time.monotonic())


def soft(mode: str, **options: Any) -> None:
    try:  # at once: what comes before it may be late enough for the soft timeout to come there
        MODES[mode](**options)
    except SoftTimeout as error:
        note(event="soft", mode=mode, after=time.monotonic() - _begun[-1], says=str(error))
        raise
    note(event="end", mode=mode)


@job("after_soft")
def after_soft() -> None:
    """Of another kind: no soft timeout is ever in it."""
    note(event="after", has_usual_hook=sys.unraisablehook is sys.__unraisablehook__)


run = job("soft", soft_timeout=0.2)(soft)
job("soft_retried", soft_timeout=0.2, tries=2, retry_on=(SoftTimeout,))(soft)
job("soft_final", soft_timeout=0.2, tries=3, fail_on=(SoftTimeout,))(soft)
job("soft_not_named", soft_timeout=0.2, tries=3, retry_on=(ValueError,))(soft)
job("soft_unreached", soft_timeout=50)(soft)
#: seconds in which a dispatch comes to its listeners on any machine: in the client of Redis the error would be lost
SLOWER = 1.5
slower = job("soft_slower", soft_timeout=SLOWER)(soft)
job("pools")(soft)


@slower.after_succeeded
@run.after_succeeded
def slow_hook(mode: str, **options: Any) -> None:
    time.sleep(options.get("hook", 0.0))
    note(event="hook", mode=mode)


def spin() -> None:
    while True:
        pass


def wait_for_a_socket() -> None:
    ours, _theirs = socket.socketpair()
    ours.recv(1)


def wait_for_a_thread() -> None:
    """While another thread is busy, which might take the signal."""
    stop = threading.Event()
    busy = threading.Thread(target=lambda: sum(1 for _ in iter(stop.is_set, True)))
    busy.start()
    try:
        busy.join()
    finally:
        stop.set()


def ignore_exceptions() -> None:
    while True:
        with suppress(Exception):
            time.sleep(60)


def clean_up(seconds: float = 0.3) -> None:
    """As a job does that has something to put away; it takes longer than its soft timeout."""
    try:
        time.sleep(60)
    except SoftTimeout:
        time.sleep(seconds)
        note(event="cleaned up")


def clean_up_and_release() -> None:
    try:
        time.sleep(60)
    except SoftTimeout:
        current().release(60)


def block_the_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(0.3)


def take_the_handlers() -> None:
    for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGALRM}:
        signal.signal(signum, signal.SIG_IGN)


def fork() -> None:
    """The child outlives the soft timeout; its parent waits for it with a loop that is not interrupted."""
    child = os.fork()
    if child == 0:
        try:
            time.sleep(0.5)
            os._exit(0)
        except BaseException:
            os._exit(1)
    while True:
        try:
            _, status = os.waitpid(child, 0)
            break
        except SoftTimeout:
            note(event="soft in the parent")
    note(event="child", status=status)


def start_a_program() -> None:
    code = "import time; time.sleep(0.5)"
    child = subprocess.Popen([sys.executable, "-c", code])
    with suppress(SoftTimeout):
        child.wait()
    note(event="child", status=child.wait())


class Resource:
    """Python ignores what a finalizer raises."""

    def __del__(self) -> None:
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            pass
        note(event="finalized")


def finalize() -> None:
    resource = Resource()
    del resource
    time.sleep(60)


def call_back() -> None:
    """Python ignores what the callback of a weak reference raises, too; it is no frame of a known name."""

    def spin_on(_: object) -> None:
        note(event="called back")
        spin()

    lock = threading.Event()
    reference = weakref.ref(lock, spin_on)
    del lock
    note(event="went on", reference=str(reference()))
    time.sleep(60)


@on(JobQueued)
def slow_listener(event: JobQueued) -> None:
    until = time.monotonic() + SLOWER + 0.2
    while time.monotonic() < until:
        time.sleep(0.01)
    note(event="listened")


def dispatch() -> None:
    after_soft.dispatch()
    time.sleep(60)


def stop_in_time() -> None:
    """A stop signal during the job is not lost, whatever else is raised."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


def around(seconds: float) -> None:
    """Ends about when the soft timeout does: asleep, or busy."""
    if random.random() < 0.5:
        time.sleep(seconds)
        return
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


MODES: dict[str, Callable[..., None]] = {
    "ok": lambda **_: None,
    "sleep": lambda: time.sleep(60),
    "select": lambda: select.select([], [], [], 60) and None,
    "socket": wait_for_a_socket,
    "thread": wait_for_a_thread,
    "spin": spin,
    "ignore": ignore_exceptions,
    "clean_up": clean_up,
    "clean_up_and_release": clean_up_and_release,
    "block": block_the_signals,
    "handlers": take_the_handlers,
    "fork": fork,
    "program": start_a_program,
    "finalize": finalize,
    "callback": call_back,
    "dispatch": dispatch,
    "stop": stop_in_time,
}


@job("async_late", soft_timeout=30, tries=1)
async def async_late(mode: str) -> None:
    await in_time_or_not(mode)


@job("async_soft", soft_timeout=0.2, tries=1)
async def async_soft(mode: str) -> None:
    await in_time_or_not(mode)


async def in_time_or_not(mode: str) -> None:
    note(event="start", mode=mode)
    try:
        await ASYNC[mode]()
    except asyncio.CancelledError:
        note(event="cancelled", mode=mode)
        if mode == "return":
            return
        if mode == "raise":
            raise ValueError("instead") from None
        raise
    note(event="end", mode=mode)


async def cancel_itself() -> None:
    task = asyncio.current_task()
    assert task
    task.cancel()
    await asyncio.sleep(60)


async def time_out() -> None:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(60)


async def block_the_loop() -> None:
    time.sleep(0.3)
    await asyncio.sleep(60)


async def in_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60))
        group.create_task(asyncio.sleep(60))


ASYNC: dict[str, Callable[[], Any]] = {
    "sleep": lambda: asyncio.sleep(60),
    "return": lambda: asyncio.sleep(60),
    "raise": lambda: asyncio.sleep(60),
    "ok": lambda: asyncio.sleep(0),
    "cancel": cancel_itself,
    "timeout": time_out,
    "block": block_the_loop,
    "group": in_a_group,
}

#: seconds: the soft timeout of the stress, about as long as its jobs take
SHORT = 0.004


@job("stress", soft_timeout=SHORT, tries=1)
def stress(number: int, seconds: float) -> None:
    around(seconds)
    note(event="worked", number=number)


@stress.after_succeeded
def succeeded(number: int, seconds: float) -> None:
    around(SHORT)
    note(event="succeeded", number=number)


@stress.after_failed
def failed(error: BaseException, number: int, seconds: float) -> None:
    around(SHORT)
    note(event="failed", number=number, error=type(error).__name__)


@job("stress_async", soft_timeout=SHORT, tries=1)
async def stress_async(number: int, seconds: float) -> None:
    await asyncio.sleep(seconds)
    note(event="worked", number=number)


@stress_async.after_succeeded
async def succeeded_async(number: int, seconds: float) -> None:
    await asyncio.sleep(SHORT)
    note(event="succeeded", number=number)


@stress_async.after_failed
async def failed_async(error: BaseException, number: int, seconds: float) -> None:
    note(event="failed", number=number, error=type(error).__name__)


@job("at_a_lock", soft_timeout=SHORT, tries=1)
def take_a_lock(number: int) -> None:
    lock = threading.Lock()
    condition = threading.Condition(lock)  # as of an event, or a queue
    try:
        while True:
            with condition:
                pass
    except SoftTimeout:
        note(event="soft", is_held=lock.locked())


@job("calm")
def calm(number: int) -> None:
    around(SHORT / 2)
    note(event="calm", number=number)
