"""The keys of Laravel Horizon, by which its dashboard shows what it knows.

Source: Horizon 5.29, Repositories/. All keys are under ``horizon.prefix``; the names of the other methods' sources are
in the Lua files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from queuepool.stores.steps import in_steps

#: seconds for which a master counts as living. Source: RedisMasterSupervisorRepository::names
LIVES = 14
#: bytes that one step sends: more would make the server's other clients wait
STEP_BYTES = 1024 * 1024
#: how the name of each of our masters begins. ``horizon:terminate`` and the like send signals to all masters whose name
#: begins with the host's, as a slug: a slug has no capital letter
MASTERS = "Queuepool-"


class HorizonServer(Protocol):
    """The client of the server that has them; raises ``StoreError``."""

    def command(self, *words: Any) -> Any:
        """Send one command and return its reply."""

    def script(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one of our Lua files and return its reply."""


class Supervised(NamedTuple):
    """A pool, as Horizon knows it: a master with one supervisor.

    ``connection``: Laravel's name for it. ``options``: those of a supervisor that the dashboard and artisan read.
    """

    name: str
    pid: int
    is_paused: bool
    connection: str
    queues: Sequence[str]
    processes: int
    options: Mapping[str, object]

    @property
    def supervisor(self) -> str:
        """The supervisor's name: what comes before the last colon is its master's."""
        return f"{self.name}:pool"


class Gain(NamedTuple):
    """Jobs that were done since the last time, and how long these took in all, in milliseconds."""

    jobs: int
    took: float


class ListedJob(NamedTuple):
    """A job that has ended; times in Unix seconds. ``exception``: empty if it is done."""

    id: str
    name: str
    queue: str
    #: as JSON
    payload: str
    created: float
    #: of its last attempt; 0.0 = it is not known
    began: float
    ended: float
    exception: str = ""
    #: the failed job that a person has retried as this one; empty if it is none
    retry_of: str = ""


class HorizonKeys:
    """Horizon's keys under this prefix; ``client`` leads to them. Raises ``StoreError``."""

    def __init__(self, client: HorizonServer, prefix: str) -> None:
        self.client = client
        self._prefix = prefix

    def show(self, pool: Supervised, jobs: Mapping[str, Gain], queues: Mapping[str, Gain]) -> None:
        """Show the pool for the next seconds, and count what it has done, by names of jobs and of queues."""
        names = [f"master:{pool.name}", f"supervisor:{pool.supervisor}"]
        metrics = [*(f"job:{name}" for name in jobs), *(f"queue:{name}" for name in queues)]
        keys = ["masters", "supervisors", *names, "measured_jobs", "measured_queues", *metrics]
        gains = [word for gain in (*jobs.values(), *queues.values()) for word in (gain.jobs, f"{gain.took:.3f}")]
        args = [pool.name, pool.supervisor, json.dumps(_master(pool)), json.dumps(_supervisor(pool)), len(jobs)]
        self.client.script("horizon_show", [self._prefix + key for key in keys], [*args, *gains])

    def list_jobs(self, jobs: Sequence[ListedJob], connection: str) -> None:
        """List jobs that have ended. ``connection``: Laravel's name for theirs."""
        for step in in_steps(jobs, len(jobs), STEP_BYTES, lambda job: len(job.payload) + len(job.exception)):
            self._list_step(step, connection)

    def _list_step(self, jobs: Sequence[ListedJob], connection: str) -> None:
        lists = ("masters", "recent_jobs", "pending_jobs", "completed_jobs", "failed_jobs", "recent_failed_jobs")
        hashes = (_sendable(name) for job in jobs for name in (job.id, job.retry_of or job.id))
        keys = [self._prefix + key for key in (*lists, *hashes)]
        self.client.script("horizon_jobs", keys, [MASTERS, *(word for job in jobs for word in _words(job, connection))])

    def remove(self, pool: Supervised) -> None:
        """The pool has stopped. Source: RedisMasterSupervisorRepository::forget."""
        for kind, name in (("master", pool.name), ("supervisor", pool.supervisor)):
            self.client.command("DEL", f"{self._prefix}{kind}:{name}")
            self.client.command("ZREM", f"{self._prefix}{kind}s", name)

    def masters(self) -> list[str]:
        """The names of the masters that live: Horizon's and ours."""
        since = int(self.client.command("TIME")[0]) - LIVES
        found = self.client.command("ZRANGEBYSCORE", f"{self._prefix}masters", since, "+inf")
        return [name.decode("utf-8", "replace") for name in found]


def _master(pool: Supervised) -> dict[str, str]:
    """The fields of the master's hash.

    Its environment is none of the application's: the dashboard would list the supervisors that are configured for it.
    Source: MasterSupervisorController::index.
    """
    facts = {"name": pool.name, "environment": "queuepool", "pid": str(pool.pid), "status": _status(pool)}
    return {**facts, "supervisors": json.dumps([pool.supervisor])}


def _supervisor(pool: Supervised) -> dict[str, str]:
    queues = ",".join(pool.queues)
    options = {"name": pool.supervisor, "connection": pool.connection, "queue": queues, **pool.options}
    return {
        "name": pool.supervisor,
        "master": pool.name,
        "pid": str(pool.pid),
        "status": _status(pool),
        "processes": json.dumps({f"{pool.connection}:{queues}": pool.processes}),
        "options": json.dumps(options),
    }


def _words(job: ListedJob, connection: str) -> Iterator[str | int | float]:
    """The arguments of horizon_jobs.lua for this job."""
    own = {"id": job.id, "connection": connection, "queue": job.queue, "name": job.name, "payload": job.payload}
    times = {"created_at": job.created, "updated_at": job.ended, "reserved_at": job.began}
    status, moment = ("failed", "failed_at") if job.exception else ("completed", "completed_at")
    fields = {**own, **times, "status": status, moment: job.ended, "exception": job.exception}
    words = [_sendable(str(word)) for item in fields.items() if item[1] for word in item]
    yield from (_sendable(job.id), job.created, job.ended, int(bool(job.exception)), len(words))
    yield from words


def _sendable(text: str) -> str:
    """The text without what UTF-8 cannot have, which JSON may hold."""
    return text.encode("utf-8", "replace").decode()


def _status(pool: Supervised) -> str:
    return "paused" if pool.is_paused else "running"
