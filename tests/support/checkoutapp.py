"""The checkout of docs/steps.md, whose worker is killed once, at one line of it or of what runs its steps."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from queuepool import cursor, job, jobs, step, worker
from tests.support.poolapp import note

#: whose lines count: this file, and if more is asked for what runs steps
MORE = (
    *(f"{jobs.__path__[0]}/{name}.py" for name in ("steps", "attempt_steps", "steps_in_flight")),
    f"{worker.__path__[0]}/step_keeper.py",
)


def pay(order: int) -> dict[str, Any]:
    note(event="asked to pay", order=order)
    return {"id": f"ch_{order}", "cents": 4200}


def ship(order: int, row: int) -> None:
    note(event="shipped", order=order, row=row)


def mail(order: int, cents: int) -> None:
    note(event="mailed", order=order, cents=cents)


def rows_after(after: int | None) -> list[int]:
    return [row for row in (1, 2, 3) if after is None or row > after]


@job("checkout", tries=1)
def checkout(order: int, *, more: bool = False) -> None:
    """The worker is killed at the line with the number of the order."""
    with killed_at(order, (__file__, *(MORE if more else ()))):
        bought(order)
    note(event="end", order=order)


@job("quick")
def quick() -> None:
    """A worker that has finished a job has not died young, so the next one starts at once."""


def bought(order: int) -> None:
    charge = step("charge", pay, order)
    for row in cursor("rows", rows_after, key=lambda row: row):
        ship(order, row)
    step("mail", mail, order, charge["cents"])


@contextmanager
def killed_at(line: int, files: tuple[str, ...]) -> Iterator[None]:
    """Kill this process before the line with this number, counted over what is run of these files; but only once."""
    left = line

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        left -= event == "line"
        if event == "line" and left == 0 and not Path(f"killed-{line}").exists():
            Path(f"killed-{line}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)
