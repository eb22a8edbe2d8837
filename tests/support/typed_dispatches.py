"""Dispatches that a user's type checker accepts, and some that it must refuse where a comment says so."""

from queuepool import Job, connect, current, job


@job("mail", queue="mails", tries=3, backoff=[1, 5])
def mail(to: str, times: int = 1) -> bool:
    current().release(1.5)
    return bool(to) and times > 0


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
ids: list[str] = connect("redis://localhost").bulk([("mail", {"to": "a"})])

mail.dispatch(7)  # refused: arg-type
mail.dispatch("a@b.c", twice=True)  # refused: call-arg
mail.using(delay=1).dispatch()  # refused: call-arg
mail.later(5, 7)  # refused: arg-type
Import(path=7)  # refused: arg-type
Import()  # refused: call-arg
