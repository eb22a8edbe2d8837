"""Jobs with middleware; each notes what it sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

from queuepool import Job, current, job, step
from queuepool.jobs.current_job import Current
from tests.support import poolapp


def note(**facts: object) -> None:
    poolapp.note(name=current().name, order=current().arguments["order"], attempt=current().attempts, **facts)


seen_by: ContextVar[str] = ContextVar("seen_by", default="nothing")


def outer(job: Current) -> Iterator[None]:
    note(event="outer")
    try:
        yield
    except KeyError as error:
        note(event="outer caught", error=str(error))
        raise ValueError("translated") from error
    note(event="outer left")


def catches(job: Current) -> Iterator[None]:
    try:
        yield
    except OSError:
        note(event="caught")


def gate(job: Current) -> Iterator[None]:
    order = job.arguments["order"]
    if order == "later" and not _comes_again(job):
        note(event="put off")
        job.postpone(0)
        return
    if order == "never":
        job.fail("the gate is closed")
        return
    if order == "skip":
        job.skip("the gate says so")
        return
    yield


def _comes_again(job: Current) -> bool:
    """Whether it was put off twice: its attempts do not tell."""
    _put_off[job.id] += 1
    return _put_off[job.id] > 2


#: by the ids of jobs
_put_off: Counter[str] = Counter()


async def aouter(job: Current) -> AsyncIterator[None]:
    seen_by.set("aouter")
    note(event="aouter")
    try:
        yield
    finally:
        note(event="aouter left")


def is_paid(order: str) -> object:
    return "it is paid" if order == "paid" else None


async def ais_paid(order: str) -> bool:
    return order == "paid"


def run(order: str) -> None:
    note(event="ran")
    if order == "key":
        raise KeyError("lost")
    if order == "os":
        raise OSError("away")


@job("plain", around=[outer, gate, catches], skip_if=is_paid)
def plain(order: str = "one") -> None:
    run(order)


@plain.after_succeeded
def told(order: str = "one") -> None:
    note(event="succeeded")


@job("async", around=[outer, aouter, gate, catches], skip_if=ais_paid)
async def runs_async(order: str = "one") -> None:
    note(event=f"sees {seen_by.get()}")
    run(order)


class Pays(Job, name="class", around=[outer, gate, catches], skip_if=is_paid):
    order: str = "one"

    def handle(self) -> None:
        run(self.order)


@job("puts itself off")
def puts_itself_off() -> None:
    got = step("first", step_of_it)
    poolapp.note(event="ran", got=got, attempt=current().attempts)
    if not _comes_again(current()):
        current().postpone(0)


def step_of_it() -> int:
    poolapp.note(event="step")
    return 5
