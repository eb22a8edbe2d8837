"""Warnings of jobs that would never run: no pool serves their queue, or no module registers them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from queuepool.jobs.registry import Registry
from queuepool.unix.escape import first_of

#: the queue of jobs that name none; a dispatch may choose another
DEFAULT = "default"
#: most job names in one warning
_MAX_NAMES = 3
NO_MODULES = "no modules are named, so no job is known: say modules = app.jobs, or --modules app.jobs"


def unserved(registry: Registry, served: Collection[str], present: Sequence[str], place: str = "") -> list[str]:
    """A warning for each queue that a registered job names and that is not ``served``.

    ``present``: the queues of the pool to which it can be added, which is named by ``place``.
    """
    jobs: dict[str, list[str]] = defaultdict(list)
    for name in registry.names():
        queue = registry.find(name).options.queue or DEFAULT
        if queue not in served and queue != DEFAULT:
            jobs[queue].append(name)
    together = ",".join(dict.fromkeys((*present, *jobs)))
    return [f"{_words(queue, names)}; say queue = {together}{place}" for queue, names in jobs.items()]


def unregistered(registry: Registry, wanted: Mapping[str, str]) -> list[tuple[str, str]]:
    """The name and a warning for each schedule, by name with its job, whose job no module registers."""
    return [(name, _unknown(registry, job)) for name, job in wanted.items() if registry.known(job) is None]


def _unknown(registry: Registry, job: str) -> str:
    if job in registry.without_handle:
        return f"its job {job} has no handle(): each will fail where these modules run"
    return f"no module registers its job {job}: each will fail as unknown where these modules run"


def _words(queue: str, names: list[str]) -> str:
    return (
        f"no pool of this configuration serves queue {queue}: unless another one does, its jobs wait for ever"
        f" ({first_of(names, _MAX_NAMES)})"
    )
