"""Coroutine jobs that run side by side in one worker, and what they may do to it; plain ones are in ``poolapp``."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from queuepool import current, job
from tests.support.poolapp import note, refuse

_begun = 0
_kept: list[Any] = []


@job("beside", backoff=0)
async def run(mode: str = "ok", tag: str = "", **options: Any) -> object:
    note(event="start", mode=mode, tag=tag, attempt=current().attempts, id=current().id)
    try:
        returned = await MODES[mode](**options)
    finally:
        note(event="left", mode=mode, tag=tag, id=current().id)
    note(event="end", mode=mode, tag=tag, attempt=current().attempts)
    return returned


@run.after_failed
async def failed(error: BaseException, mode: str, tag: str = "", **options: Any) -> None:
    await asyncio.sleep(0)
    note(event="after_failed", mode=mode, tag=tag, error=type(error).__name__, id=current().id)
    if options.get("hook") == "blocks":
        time.sleep(600)
    if options.get("hook") == "naps":
        time.sleep(8)
        note(event="has napped")


@run.after_succeeded
async def succeeded(mode: str, tag: str = "", **options: Any) -> None:
    await asyncio.sleep(options.get("hook", 0))
    note(event="after_succeeded", mode=mode, tag=tag)


@job("picky", backoff=0, retry_on=ValueError)
async def picky() -> None:
    note(event="start", mode="picky", attempt=current().attempts)
    await asyncio.sleep(60)


@job("soft", backoff=0, soft_timeout=0.3)
async def soft() -> None:
    try:
        await asyncio.sleep(60)
    except BaseException as error:
        note(event="soft", error=type(error).__name__)
        raise


@job("soft_plain", tries=1, soft_timeout=0.2)
def soft_plain() -> None:
    time.sleep(0.6)
    note(event="end", mode="soft_plain")


@job("once", unique="{gate}")
async def once(gate: str) -> None:
    note(event="start", mode="once")
    await until(gate)


@job("tracked", track=60)
async def tracked(gate: str) -> dict[str, int]:
    current().progress(0.5, "half")
    await until(gate)
    return {"answer": 42}


async def until(gate: str) -> None:
    while not Path(gate).exists():
        await asyncio.sleep(0.01)


async def together(number: int) -> None:
    """Ends only once so many have begun in this process."""
    global _begun
    _begun += 1
    while _begun < number:
        await asyncio.sleep(0.01)


async def raise_it(times: int = 1_000_000, **_: object) -> None:
    await asyncio.sleep(0)
    if current().attempts <= times:
        raise ValueError("as asked")


async def do_now(action: Callable[[], object]) -> None:
    await asyncio.sleep(0)
    action()


async def swallow() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            continue


async def hog(gate: str) -> None:
    """Keep the loop until the file exists."""
    while not Path(gate).exists():
        time.sleep(0.01)


async def when(gate: str, then: str) -> None:
    """Do that once the file exists, in a step of this job."""
    await until(gate)
    await MODES[then]()


async def recurse() -> None:
    await recurse()


async def child() -> None:
    """A child that is to end when it is told to."""
    process = await asyncio.create_subprocess_exec("sleep", "60")
    process.terminate()
    note(event="child", code=await process.wait())


async def leave(work: str = "refuse") -> None:
    _kept.append(asyncio.get_running_loop().create_task(WORKS[work]()))
    await asyncio.sleep(0.02)


async def go_on() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        note(event="cancelled")


async def quit_later() -> None:
    await asyncio.sleep(0)
    sys.exit("not my business")


async def quit_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit, 3)
    await asyncio.sleep(0.1)


async def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.05)


async def run_another() -> None:
    asyncio.run(asyncio.sleep(0))


async def close_the_loop() -> None:
    asyncio.get_running_loop().close()


async def cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)


async def await_another() -> None:
    """Its own tasks, which end with it."""
    await asyncio.gather(asyncio.create_task(go_on()), asyncio.create_task(go_on()))


async def offer(gate: str) -> None:
    """A task that another job awaits."""
    _kept.append(asyncio.create_task(until(gate)))
    note(event="offered")
    await _kept[-1]


async def await_anothers(how: str) -> None:
    await {"await": lambda task: task, "gather": asyncio.gather}[how](_kept[-1])


async def fork() -> None:
    if os.fork() == 0:
        note(event="forked")
        return
    await asyncio.sleep(0.1)


async def decide(how: str) -> None:
    if current().attempts == 1:
        getattr(current(), how)()


WORKS: dict[str, Callable[[], Awaitable[None]]] = {"refuse": refuse, "go_on": go_on, "quit": quit_later}
MODES: dict[str, Callable[..., Awaitable[Any]]] = {
    "ok": lambda **_: asyncio.sleep(0),
    "sleep": lambda seconds: asyncio.sleep(seconds),
    "until": until,
    "together": together,
    "raise": raise_it,
    "swallow": swallow,
    "block": lambda: do_now(lambda: time.sleep(60)),
    "hog": hog,
    "hold_the_gil": lambda: do_now(lambda: ctypes.PyDLL(None).sleep(60)),
    "segfault": lambda: do_now(lambda: ctypes.string_at(0)),
    "exit": lambda: do_now(lambda: os._exit(0)),
    "kill": lambda: do_now(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "sys_exit": lambda: do_now(lambda: sys.exit("not my business")),
    "when": when,
    "recurse": recurse,
    "child": child,
    "leave": leave,
    "callback": quit_in_a_callback,
    "stop_the_loop": stop_the_loop,
    "run_another": run_another,
    "close_the_loop": close_the_loop,
    "cancel_all": cancel_all,
    "await_another": await_another,
    "offer": offer,
    "await_anothers": await_anothers,
    "stop": lambda: do_now(lambda: (os.kill(os.getpid(), signal.SIGSTOP), time.sleep(60))),
    "fork": fork,
    "decide": decide,
}
