"""Dispatches that a user's type checker accepts, and some that it must refuse where a comment says so."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from queuepool import (
    Flow,
    Job,
    Member,
    chain,
    connect,
    context,
    current,
    cursor,
    group,
    job,
    result,
    results,
    step,
)


@job("mail", queue="mails", tries=3, backoff=[1, 5])
def mail(to: str, times: int = 1) -> bool:
    current().release(1.5)
    return bool(to) and times > 0


@job("pay", encrypted=True)
def pay(amount: int) -> None:
    context.add("step", 2)
    with context.scope(trace_id=str(current().context.data.get("trace_id"))):
        mail.dispatch("a@b.c")


@job()
async def fetch(url: str) -> None: ...


@mail.after_failed
def mail_failed(error: BaseException, to: str, times: int = 1) -> None: ...


class Import(Job, queue="imports", timeout=5.0):
    path: str
    lines: int = 0

    def handle(self) -> None: ...


sent: bool = mail("a@b.c")
identity: str = mail.dispatch("a@b.c", times=2)
mail.using(queue="high", delay=60).dispatch("a@b.c")
mail.later(5, "a@b.c")
fetch.dispatch(url="https://example.org")
Import("/a", lines=3).using(delay=1).dispatch()
Import.bulk([Import("/a"), Import("/b")])
ids: Sequence[str] = connect("redis://localhost").bulk([("mail", {"to": "a"})])
followed: str = mail.dispatch("a@b.c").wait(timeout=5).state


async def dispatch_all() -> Sequence[str]:
    one: str = await mail.adispatch("a@b.c", times=2)
    two: str = await mail.using(after_commit=object()).adispatch(to=one)
    await mail.alater("5m", two)
    await Import("/a").adispatch()
    await connect().apush("mail", {"to": "a"}, queue="mails", unique_id="1")
    await mail.adispatch(7)  # refused: arg-type
    await mail.using(delay=1).adispatch()  # refused: call-arg
    await connect().apush("mail", queues="mails")  # refused: call-arg
    return await Import.abulk([Import("/a"), Import("/b")])


mail.dispatch(7)  # refused: arg-type
mail.dispatch("a@b.c", twice=True)  # refused: call-arg
mail.using(delay=1).dispatch()  # refused: call-arg
mail.later(5, 7)  # refused: arg-type
Import(path=7)  # refused: arg-type
Import()  # refused: call-arg


def priced(order: int, *, note: str = "") -> Decimal:
    return Decimal(order)


async def shipped(row: int) -> Sequence[str]:
    return [str(row)]


def rows_after(after: int | None) -> Sequence[Path]:
    return []


async def fetched_after(after: int | None) -> Sequence[Path]:
    return []


async def steps() -> None:
    price: Decimal = step("price", priced, 7, note="x")
    again: Decimal = step("price", priced, 7, key=price)
    names: Sequence[str] = await step("ship", shipped, 7)
    more: Sequence[str] = await step("ship", shipped, 7, key=names)
    for row in cursor("rows", lambda after: rows_after(after), key=lambda row: row.name):
        print(row.parent, again, more)
    async for row in cursor("rows", fetched_after):
        print(row.parent)
    wrong: int = step("price", priced, 7)  # refused: assignment
    step("price", priced, "7")  # refused: call-overload
    print(wrong, step("price", priced, 7).parent)  # refused: attr-defined


@job("resize")
def resize(path: str) -> str:
    return path


@job("measure")
async def measure(path: str) -> int:
    return len(path)


@job("publish")
def publish(order: int, photos: list[str]) -> None: ...


flow = Flow("album", stop="nothing", on_failure=mail.call("a@b.c"), deadline="2h")
photos = [flow.add(resize.using(queue="photos").call(path)) for path in ("a", "b")]
size: Member[int] = flow.add(measure.call(result(photos[0])))
page = flow.add(publish.call(result(size), photos=results(photos)), after=size)
flow.add(Import("/a").call(), after=[page], on="any")
flow_id: str = flow.dispatch()
ended: bool = flow.dispatch().wait(5).is_over
chain(resize.call("a"), measure.call, group([resize.call("b")], then=lambda paths: publish.call(7, paths))).dispatch()

flow.add(publish.call(7, results([size])))  # refused: list-item
flow.add(publish.call(result(photos[0]), []))  # refused: arg-type
flow.add(resize.call())  # refused: call-arg
flow.add(resize.call("a"), on="error")  # refused: arg-type
group([resize.call("b")], then=lambda paths: publish.call(paths, []))  # refused: arg-type
