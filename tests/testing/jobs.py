"""The jobs of these tests. What they do is written into ``DONE``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date

from queuepool import Job, context, current, job

DONE: list[object] = []


@job("testing.welcome", queue="mail")
def welcome(to: str, template: str = "plain") -> None:
    DONE.append((to, template))


@job("testing.positional")
def positional(number: int, /, *more: int) -> None:
    DONE.append((number, *more))


@job("testing.anything")
def anything(**values: int) -> None:
    DONE.append(values)


@job("testing.on_queue")
def on_queue(queue: str) -> None: ...


@job("testing.flaky", tries=3, backoff=[60, 3600])
def flaky(bad: int) -> None:
    DONE.append(current().attempts)
    if current().attempts <= bad:
        raise ConnectionError(f"attempt {current().attempts}")


@job("testing.untold")
def untold() -> None:
    """Its tries are the pool's."""
    DONE.append(current().attempts)
    raise LookupError("always")


@job("testing.at_most_two_exceptions", tries=0, max_exceptions=2, backoff=5)
def at_most_two_exceptions() -> None:
    DONE.append(current().attempts)
    raise OSError


@job("testing.endless", tries=0, backoff=30)
def endless() -> None:
    DONE.append(current().attempts)
    raise TimeoutError


@job("testing.again")
def again() -> None:
    again.dispatch()


@job("testing.decides", tries=2)
def decides(how: str) -> None:
    DONE.append(current().attempts)
    if how == "release" and current().attempts == 1:
        current().release(20)
    elif how == "fail":
        current().fail("by hand")
    elif how == "delete":
        current().delete()
        raise RuntimeError("after all")


@job("testing.tracked", tries=2, track=60, soft_timeout=5, retry_on=ConnectionError)
def tracked(number: int) -> int:
    current().progress(0.5, "half")
    if number < 0 and current().attempts == 1:
        raise ConnectionError
    if number > 9:
        raise ValueError(number)
    return 2 * number


@job("testing.parent")
def parent() -> None:
    DONE.append("parent begins")
    child.later(60, "late")
    child.using(queue="other").dispatch("first")
    child.dispatch("second")
    DONE.append("parent ends")


@job("testing.child")
def child(name: str) -> None:
    DONE.append(name)


@job("testing.hooked")
def hooked(number: int) -> None:
    if number < 0:
        raise ValueError(number)


@hooked.after_succeeded
def succeeded(number: int) -> None:
    DONE.append(("succeeded", number))
    if number > 99:
        raise RuntimeError("in the hook")


@hooked.after_failed
def failed(error: BaseException, number: int) -> None:
    DONE.append(("failed", type(error), number))


@job("testing.once", unique="{key}")
def once(key: str) -> None:
    DONE.append(key)


@job("testing.secret", encrypted=True)
def secret(word: str) -> None:
    DONE.append(word)


@job("testing.asynchronous")
async def asynchronous(number: int) -> None:
    await asyncio.sleep(0)
    if number < 0:
        raise ValueError(number)
    DONE.append((number, current().attempts))


@job("testing.dated")
def dated(day: date) -> None:
    DONE.append(day)


@job("testing.ends")
def ends(error: str) -> None:
    raise {"interrupt": KeyboardInterrupt, "exit": SystemExit}[error]


@job("testing.traced")
def traced() -> None:
    context.add("step", 1)
    DONE.append((context.get("trace"), current().context.data))


@dataclass
class Line:
    price: int


class Bill(Job, name="testing.bill", queue="bills"):
    lines: list[Line]
    to: str = "office"

    def handle(self) -> None:
        DONE.append((self.lines, self.to))
