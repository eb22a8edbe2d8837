"""An application's jobs, for mypy and for a pool of the installed wheel. A comment stands where mypy must object."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from queuepool import Job, current, job
from queuepool.jobs.following import JobId


@job(tries=3, timeout=30, backoff=[1, 5])
def write(path: str, text: str = "done") -> int:
    return Path(path).write_text(text)


class Write(Job):
    path: str

    def handle(self) -> None:
        Path(self.path).write_text(f"attempt {current().attempts}")


def dispatch(path: str) -> None:
    assert_type(write(path), int)
    assert_type(write.dispatch(path), JobId)
    assert_type(write.using(delay=1).dispatch(path, text="later"), JobId)
    Write(path).dispatch()
    Write()  # type: ignore[call-arg]
    write.dispatch()  # type: ignore[call-arg]
    write.dispatch(7)  # type: ignore[arg-type]
    write.using(colour="red")  # type: ignore[call-arg]
