"""A job for schedules: it notes which time it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from queuepool import current, job
from tests.support.eventually import eventually
from tests.support.poolapp import note


@job("tick")
def tick(gate: str = "", **more: Any) -> None:
    due = current().scheduled_for
    note(event="tick", id=current().id, due=due and due.isoformat(), attempt=current().attempts, **more)
    if gate:
        eventually(lambda: Path(gate).exists())


@job("tests.schedules.other", queue="mail")
def other(tag: str) -> None: ...
