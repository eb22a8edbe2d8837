"""Jobs that would never run: on a queue that no pool of the configuration serves, or because no job is known at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from queuepool.jobs.registry import Registry

#: what a job is pushed to that names no queue: who pushes it may choose another one
_DEFAULT = "default"
#: names of jobs in a warning
_MOST_NAMES = 3
NO_MODULES = "no modules are named, so no job is known: say modules = app.jobs, or --modules app.jobs"


def unserved(registry: Registry, served: Collection[str]) -> list[str]:
    """A warning for each queue that a registered job names and that is not ``served``."""
    jobs: dict[str, list[str]] = defaultdict(list)
    for name in registry.names():
        queue = registry.find(name).options.queue or _DEFAULT
        if queue not in served and queue != _DEFAULT:
            jobs[queue].append(name)
    return [_words(queue, names) for queue, names in jobs.items()]


def _words(queue: str, names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (
        f"no pool of this configuration serves queue {queue}: unless another one does, its jobs wait for ever"
        f" ({', '.join(names[:_MOST_NAMES])}{more}); say queue = default,{queue}"
    )
