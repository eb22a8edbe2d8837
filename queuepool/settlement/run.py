"""What is known of an attempt besides its verdict, for those that follow the job."""

from __future__ import annotations

from typing import NamedTuple


class Run(NamedTuple):
    """What is known of an attempt that has begun."""

    #: Unix seconds
    began: float | None = None
    progress: float | None = None
    note: str = ""
    #: the value that the handler returned, as JSON; empty if there is none to keep
    result: str = ""
    #: why the result is not kept
    result_problem: str = ""
    #: why the job was skipped
    cancelled: str = ""


NOT_RUN = Run()
