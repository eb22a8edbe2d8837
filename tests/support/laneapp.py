"""Jobs for workers that run several at once: each shows something that a job may do there."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from queuepool import current, job
from tests.support.gates import until_told
from tests.support.poolapp import note

_kept: list[bytes] = []


@job("prints")
async def prints(word: str, last: str = "\n", count: int = 5) -> None:
    """Print one line in pieces, while the neighbours print theirs."""
    for number in range(count):
        print(word, end=" " if number < count - 1 else last)
        await asyncio.sleep(0.02)
    note(event="printed", word=word, job=current().name)


@job("threads")
async def threads(gate: str, asks: str) -> None:
    """Work in a thread until the file exists."""
    call = partial(_in_a_thread, gate)
    if asks == "to_thread":
        note(event="back", of=await asyncio.to_thread(call))
    elif asks == "executor":
        note(event="back", of=await asyncio.get_running_loop().run_in_executor(None, call))
    else:  # leave it behind
        asyncio.get_running_loop().run_in_executor(None, call)
        note(event="back", of="")


def _in_a_thread(gate: str) -> str:
    note(event="in a thread", of=current().name)
    until_told(gate)
    note(event="out of it")
    return current().name


@job("plain")
def plain(gate: str) -> None:
    _in_a_thread(gate)


@plain.after_succeeded
def after_plain(gate: str) -> None:
    is_on_the_loop = asyncio._get_running_loop() is not None
    note(event="after", of=current().name, on_the_loop=is_on_the_loop)


@job("tells_its_loop")
async def tells_its_loop() -> None:
    kind = type(asyncio.get_running_loop())
    note(event="loop", kind=f"{kind.__module__}.{kind.__name__}")


@job("blocks")
async def blocks(seconds: float) -> None:
    await asyncio.sleep(0)
    time.sleep(seconds)
    note(event="unblocked")


@job("fails", tries=1)
async def fails() -> None:
    raise ValueError("as asked")


@fails.after_failed
async def mourns(error: BaseException) -> None:
    await asyncio.sleep(1)
    note(event="mourned")


@job("keeps")
async def keeps(megabytes: int) -> None:
    _kept.append(b"x" * megabytes * 1_000_000)
