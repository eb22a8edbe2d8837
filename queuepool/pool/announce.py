"""What a log begins with: what runs here, on which store, from which files, and which jobs it knows."""

from __future__ import annotations

import os
from pathlib import Path

from queuepool import log
from queuepool.board.about import absolute
from queuepool.board.board import Header, Slot
from queuepool.config.settings import PoolSettings
from queuepool.config.urls import masked
from queuepool.jobs.registry import REGISTRY

#: names of jobs in a line
_MOST = 100


def beginning(version: str, pool: PoolSettings, *, workers: int, directory: Path | None) -> None:
    """Before anything is imported: when an import fails, this is what one wants to know."""
    facts = {
        "store": masked(pool.connection.url),
        "queues": ",".join(pool.queues),
        "workers": workers,
        "modules": ",".join(pool.modules) or "none",
        "configuration": absolute(pool.config) or "none",
        "working_directory": absolute(Path()),
        "runtime_directory": absolute(directory) or "none",
        "pid": os.getpid(),
    }
    log.say(f"queuepool {version} starts", facts)


def jobs_of_generation(header: Header, slot: Slot) -> None:
    """Its first worker, or its template, says which jobs the modules have: the master imports none of them."""
    if slot.number <= 1 and header.announced != slot.generation:
        header.announced = slot.generation
        jobs()


def jobs() -> None:
    """The names in the registry."""
    names = REGISTRY.names()
    shown = [*names[:_MOST], *(["..."] if len(names) > _MOST else [])]
    log.say("jobs found", {"count": len(names), "names": ",".join(shown) or "none"})
