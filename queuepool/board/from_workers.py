"""What workers write beside the board, for the steward: the schedules that jobs declare, and the modules' files.

Each generation of workers has its own file of schedules, which is written once. The newest generation that has become
ready counts: a schedule that a deploy removes is gone with the first worker of the new code, and a worker that still
boots with the old code does not bring it back.

The files of the application's modules are for ``reload``.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from queuepool.board.board import Board, Role, Slot
from queuepool.board.boot_report import replace_text, text_in
from queuepool.board.states import State

_AT_WORK = (State.IDLE, State.BUSY, State.PAUSED, State.DRAINING)
#: where packages are installed, which do not change while a program is being edited
_INSTALLED = ("site-packages", "dist-packages")


class JobSchedule(NamedTuple):
    """A job with the rule and queue that it declares; the schedule has the job's name."""

    job: str
    rule: str
    queue: str


def publish_schedules(board: Board, generation: int, schedules: Sequence[JobSchedule]) -> None:
    """Write the schedules of this generation, unless another worker has. Raises ``OSError``."""
    path = _schedules_of(board, generation)
    if not schedules or path.exists():
        return
    replace_text(path, json.dumps(schedules))


def published_schedules(board: Board) -> list[JobSchedule]:
    """The schedules of the newest generation at work; none if its jobs declare none."""
    workers = [slot.generation for slot in board.of(Role.WORKER) if slot.state in _AT_WORK and not slot.dead]
    text = text_in(_schedules_of(board, max(workers))) if workers else ""
    with suppress(ValueError, TypeError):  # overwritten by a job
        return [JobSchedule(*map(str, one)) for one in json.loads(text or "[]")]
    return []


def _schedules_of(board: Board, generation: int) -> Path:
    return board.path.with_name(f"{board.path.name}.schedules{generation}")


def publish_files(board: Board, slot: Slot, began: Mapping[str, float]) -> None:
    """Write which files this process has imported, each with the Unix time of its import. Raises ``OSError``."""
    # One per line: if the reader truncates a long text, that costs one file, not all.
    text = "\n".join(f"{since} {file}" for file, since in began.items())
    replace_text(_files_of(board, str(slot.index)), text)


def published_files(board: Board) -> dict[str, float]:
    """The files that workers have imported, each with the Unix time of its newest import."""
    found: dict[str, float] = {}
    for path in board.path.parent.glob(_files_of(board, "*").name):
        for line in text_in(path).splitlines():
            since, _, file = line.partition(" ")
            with suppress(ValueError):  # overwritten by a job
                found[file] = max(float(since), found.get(file, 0.0))
    return found


def imported() -> Iterator[str]:
    """The files of this process's modules, except installed packages, Python's own and ours."""
    library = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
    for name, module in sys.modules.copy().items():  # a job's thread may import
        file = getattr(module, "__dict__", {}).get("__file__")  # not by getattr: a lazy module would import more
        if not isinstance(file, str) or name.partition(".")[0] == "queuepool":
            continue
        path = os.path.abspath(file)
        if not path.startswith(library) and not set(_INSTALLED) & set(Path(path).parts):
            yield path


def _files_of(board: Board, number: str) -> Path:
    return board.path.with_name(f"{board.path.name}.modules{number}")
