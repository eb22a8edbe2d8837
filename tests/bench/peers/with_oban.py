"""Oban for Python, on PostgreSQL. It needs Python 3.12."""

from __future__ import annotations

from collections.abc import Sequence

from oban import Oban as Client
from oban import job as oban_job
from oban.schema import install

from tests.bench.peers.coroutines import Coroutines
from tests.bench.peers.jobs import EVERY, coroutine
from tests.bench.peers.peer import BIN, POSTGRES, POSTGRES_NOOPS, batches, database


def _worker(name: str) -> type:
    """Workers find it again by its module and its name."""
    function = coroutine(name)
    function.__module__ = __name__
    return oban_job(queue="default")(function)


WORKERS = {name: _worker(name) for name in EVERY}


class Oban(Coroutines):
    keeps = True
    _client: Client | None = None

    def __init__(self, name: str, at_once: int, *fields: str) -> None:
        self.name = name
        self.settings = f"`oban start --queues default:{at_once}`, uvloop, a process for each worker"
        self.fields = frozenset(fields)
        self._queue = f"default:{at_once}"

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for batch in batches(numbers):
            self._runner.run(self._push(job, batch))

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        self._client = client = self._client or await _client()
        await client.enqueue_many([WORKERS[job].new(n=n) for n in numbers])

    def commands(self, workers: int) -> list[list[str]]:
        """The modules are named, as it would look for some in all files below."""
        words = [f"{BIN}/oban", "start", "--dsn", database(), "--queues", self._queue]
        quiet = ["--cron-modules", __name__, "--log-level", "WARNING"]
        return [[*words, *quiet, "--node", f"node-{number}"] for number in range(workers)]


async def _client() -> Client:
    pool = await Client.create_pool(database())
    await install(pool)
    return Client(pool=pool)


PEERS = [Oban("Oban", 100, POSTGRES, POSTGRES_NOOPS), Oban("Oban, 20 at once", 20, POSTGRES_NOOPS)]
