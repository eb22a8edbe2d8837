"""The log's first lines: what runs here, on which store, from which files, and which jobs it knows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from queuepool import log
from queuepool.board.about import absolute
from queuepool.board.board import Board, Header, Slot
from queuepool.board.from_workers import JobSchedule, publish_schedules
from queuepool.config import application
from queuepool.config.pool_queues import queue_words
from queuepool.config.settings import PoolSettings
from queuepool.config.urls import masked
from queuepool.jobs.registry import REGISTRY
from queuepool.unix import originals

#: most job names in one line
_MAX = 100
_log = logging.getLogger("queuepool")


def beginning(version: str, pool: PoolSettings, *, workers: int, directory: Path | None, bounds: str = "") -> None:
    """Log where and how the pool starts, before any import: it explains an import that fails."""
    facts = {
        "store": masked(pool.connection.url),
        "queues": queue_words(pool.queues, pool.weights),
        "workers": workers,
        **({"bounds": bounds} if bounds else {}),
        "modules": ",".join(pool.modules) or "none",
        "configuration": absolute(pool.config) or application.source().name or "none",
        "working_directory": absolute(Path()),
        "runtime_directory": absolute(directory) or "none",
        "pid": os.getpid(),
    }
    log.say(f"queuepool {version} starts", facts)


def made(files: Iterable[str]) -> None:
    """Log which files were missing: with a mistake in its path, a pool would silently serve an empty queue."""
    for path in files:
        _log.warning("the file %s was missing: created, with no job in it", path)


def jobs_of_generation(header: Header, slot: Slot, gone: str) -> None:
    """Log the jobs once a generation, in its first worker or its template: the master imports no modules.

    ``gone``: what was removed since the pool's start.
    """
    if slot.number <= 1 and header.announced != slot.generation:
        header.announced = slot.generation
        jobs()
        if gone:
            _log.warning("gone since the start: %s; nothing that runs needs it, but an import may", gone)


def schedules_of_generation(board: Board, slot: Slot) -> None:
    """Pass the schedules that the jobs declare to the steward, unless another worker of the generation has."""
    try:
        publish_schedules(board, slot.generation, job_schedules())
    except OSError as error:
        _log.warning("cannot pass the jobs' schedules to the steward: %s", error)


def job_schedules() -> list[JobSchedule]:
    """The schedules that the jobs in the registry declare."""
    return [
        JobSchedule(one.name, str(one.options.schedule), one.options.queue or "default") for one in REGISTRY.scheduled()
    ]


def jobs() -> None:
    """Log the names in the registry."""
    names = REGISTRY.names()
    shown = [*names[:_MAX], *(["..."] if len(names) > _MAX else [])]
    log.say("jobs found", {"count": len(names), "names": ",".join(shown) or "none"})
    replaced_names("modules")


def replaced_names(by: str) -> None:
    """Warn if a process's ``modules`` or ``listeners`` have let gevent or eventlet replace names of Python's."""
    names, libraries = originals.replaced(), originals.replacing()
    if names and libraries:
        _log.warning(
            "the %s have let %s replace %s: the pool itself keeps to Python's own; a worker still runs one job at a"
            " time, and what a job leaves running stands still between jobs",
            by, " and ".join(libraries), ", ".join(names),
        )  # fmt: skip
