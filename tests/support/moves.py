"""A queue here and a queue of another connection, between which jobs are moved."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from queuepool.config.values import ON_THEIR_WAY
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.search.transfer import Parcel, Route
from queuepool.stores.contract import ShelfJob
from queuepool.stores.factory import is_redis
from tests.chaos.plant import Plant
from tests.support import warm
from tests.support.commands import ROOT, Done
from tests.support.drivers import connection_of, opened, site_on
from tests.support.pools import Site
from tests.support.samples import new_jobs, payload

#: for a parametrised fixture: the drivers here and there
PLACES = ["redis to sqlite", "sqlite to redis", "redis to postgres", "mariadb to redis"]
WORDS = ("move", "default", "distant", "--connection", "far", "-c", "two.ini")


@dataclass(frozen=True)
class Places:
    """A queue ``default`` here, and a queue ``distant`` there."""

    site: Site
    far: Queue

    @property
    def near(self) -> Queue:
        return self.site.queue

    def write(self, near: Mapping[str, str] = MappingProxyType({}), **far: str) -> None:
        """The configuration of both, with further keys."""
        given = {"near": (self.site.connection, near), "far": (self.far.settings, far)}
        served = "[pool:near]\nconnection = near\nqueue = default\n[pool:far]\nconnection = far\nqueue = distant\n"
        texts = [served]
        for name, (one, more) in given.items():
            known = {"url": one.url, **({"prefix": one.prefix} if is_redis(one.url) else {}), **more}
            texts.append(f"[connection:{name}]\n" + "".join(f"{key} = {value}\n" for key, value in known.items()))
        file = self.site.path / "two.ini"
        file.write_text("".join(texts))
        file.chmod(0o600)  # it may hold keys

    def move(self, *words: str, **how: Any) -> Done:
        return self.site.run(*WORDS, "--yes", *words, **how)

    def moved_by(self, plant: Plant, folder: Path) -> int:
        """Move with this fault in the package; returns the exit code."""
        env = {**self.site.env(), "PYTHONPATH": f"{plant.write(folder)}:{ROOT}"}
        command = [sys.executable, "-m", "queuepool", *WORDS, "--yes"]
        return warm.run(command, env=env, cwd=self.site.path, capture_output=True, real=True).returncode

    def parcel(self, identity: str, **route: str) -> Parcel:
        """A parcel of this way, or of another one."""
        known = {"origin": "default", "place": self.place, "connection": "far", "queue": "distant"}
        found = Route(**{**known, **route})
        return Parcel(secrets.token_hex(16), found, self.far.stores.queue.now(), payload(identity))

    @property
    def place(self) -> str:
        return self.far.stores.arrivals.place()

    def leave(self, *parcels: Parcel) -> None:
        """On their way."""
        self.near.stores.queue.push(ON_THEIR_WAY, new_jobs(*(one.packed() for one in parcels)))


@contextmanager
def places_of(request: pytest.FixtureRequest) -> Iterator[Places]:
    """On the drivers of the fixture's parameter."""
    near, far = request.param.split(" to ")
    there = connection_of(far, request)
    with site_on(near, request) as site, opened(there), closing(Queue(there)) as queue:
        found = Places(site, queue)
        found.write()
        yield found


def ready(queue: Queue, name: str) -> list[str]:
    return [decode(raw, 0).id for raw in queue.stores.queue.first(name, 10_000)]


def on_their_way(queue: Queue) -> list[str]:
    walk, jobs = queue.stores.queue.walk(ON_THEIR_WAY, ("ready", "delayed")), list[ShelfJob]()
    while page := walk.page(1000):
        jobs += page
    parcels = (Parcel.unpacked(job.payload) for job in jobs)
    return [decode(one.payload, 0).id for one in parcels if one]


def whereabouts(places: Places) -> list[str]:
    """Every job that a worker may run, here or there, or that is on its way and has not come; each once."""
    there = ready(places.far, "distant")
    way = [job for job in on_their_way(places.near) if job not in there]
    return sorted([*ready(places.near, "default"), *way, *there])
