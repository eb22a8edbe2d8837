"""Where incidents are played: two hosts with the pools of a shop, web on Redis and billing on PostgreSQL."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.bench.rig import PATIENCE
from tests.chaos.server import Server
from tests.chaos.stores.redis_hosts import RedisOnAHost
from tests.incidents.console import Told
from tests.incidents.web_host import WebHost
from tests.support.brands import Postgres
from tests.support.databases import running
from tests.support.eventually import eventually

#: seconds in which something must come about on a busy machine
_PATIENCE = 180.0


class Scene:
    """The operator sits at ``web1``. What else happens there is not part of an answer, and nobody counts it."""

    def __init__(self, web1: WebHost, web2: WebHost, redis: Server, postgres: str) -> None:
        self.web1, self.web2 = web1, web2
        self.redis = redis
        self._postgres = postgres

    def push(self, name: str, arguments: Iterable[dict[str, object]], *, queue: str, track: float = 0) -> list[str]:
        """What producers push; returns the ids."""
        with self._store_of(queue) as store:
            return [str(one) for one in store.bulk([(name, each) for each in arguments], queue=queue, track=track)]

    def clear(self, queue: str) -> None:
        """Drop what an incident has left in it."""
        with self._store_of(queue) as store:
            store.clear(queue)

    def works_off(self, queue: str) -> None:
        """Wait until the queue is empty."""
        with self._store_of(queue) as store:
            eventually(lambda: store.size(queue) == 0, within=_PATIENCE)

    def does(self, line: str, host: WebHost | None = None) -> Told:
        """What somebody else does, or did long ago; must succeed."""
        told = (host or self.web1).console.types(line)
        assert told.code == 0, f"{line}: {told.code}\n{told.text}"
        return told

    def waits_for(self, line: str, *words: str, without: Sequence[str] = (), host: WebHost | None = None) -> None:
        """Wait until this command would show all these words, and none of the others."""
        last = ""

        def shows() -> bool:
            nonlocal last
            told = (host or self.web1).console.types(line)
            last = told.text
            return not told.lacks(words) and list(without) == told.lacks(without)

        try:
            eventually(shows, within=_PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{line} does not show {words} without {without}:\n{last}") from error

    def deploys(self, old: str, new: str) -> None:
        """Put other code on both hosts, and bring it into the workers."""
        for host in (self.web1, self.web2):
            text = host.shop.read_text()
            assert old in text
            host.shop.write_text(text.replace(old, new))
        self.does("queuepool reload --wait --everywhere")

    def _store_of(self, queue: str) -> closing[Queue]:
        """Opened anew each time: an incident may have broken a connection."""
        url = self._postgres if queue == "invoices" else self.redis.url
        return closing(Queue(ConnectionSettings(url=url, timeout=PATIENCE)))


@contextmanager
def scene() -> Iterator[Scene]:
    """The hosts with their pools at work; needs root, as namespaces do."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="queuepool-incidents-")))
        store = RedisOnAHost(folder / "redis", secrets.token_hex(8))
        stack.callback(store.end)
        store.start()
        postgres = stack.enter_context(stack.enter_context(running(Postgres)).database())
        hosts = []
        for name, (url, network) in zip(("web1", "web2"), store.places(), strict=True):
            hosts.append(WebHost(name, folder, network, url, postgres))
            stack.callback(hosts[-1].end)
        made = Scene(*hosts, store.server, postgres)
        made.does("queuepool migrate")
        for host in hosts:
            host.start()
        yield made
