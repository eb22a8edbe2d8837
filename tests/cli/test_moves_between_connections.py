"""Jobs move to another connection: each is in one place, and comes once, at whatever moment something goes wrong."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from queuepool.config.values import ON_THEIR_WAY
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.search.transfer import Parcel, Route, place_of
from queuepool.stores.arrivals import Arrival
from queuepool.stores.contract import NewJob, ShelfJob
from queuepool.stores.factory import is_redis
from queuepool.stores.redis.client import script
from tests.chaos.plant import Plant
from tests.support import warm
from tests.support.commands import ROOT, Done
from tests.support.drivers import connection_of, opened, site_on
from tests.support.eventually import eventually
from tests.support.late_proxy import LateProxy
from tests.support.many_failed import failed_in_thousands
from tests.support.pools import Site
from tests.support.samples import new_jobs, payload

pytestmark = pytest.mark.every_store("places")
WORDS = ("move", "default", "distant", "--connection", "far", "-c", "two.ini")
REDIS_TO_SQLITE = pytest.mark.parametrize("places", ["redis to sqlite"], indirect=True)
SQLITE_TO_REDIS = pytest.mark.parametrize("places", ["sqlite to redis"], indirect=True)


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
        far = replace(self.far.settings, name="far")
        known = {"origin": "default", "place": place_of(far), "connection": "far", "queue": "distant"}
        found = Route(**{**known, **route})
        return Parcel(secrets.token_hex(16), found, self.far.stores.queue.now(), payload(identity))

    def leave(self, *parcels: Parcel) -> None:
        """On their way."""
        self.near.stores.queue.push(ON_THEIR_WAY, new_jobs(*(one.packed() for one in parcels)))


@pytest.fixture(params=["redis to sqlite", "sqlite to redis", "redis to postgres", "mariadb to redis"])
def places(request: pytest.FixtureRequest) -> Iterator[Places]:
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


def test_a_parcel_is_read_as_it_was_written_and_nothing_else_is():
    route = Route("default", "1f:cache_locks", "far", "distant")
    parcel = Parcel("7f" * 16, route, 60.5, '{"a":"é"}'.encode())
    wrong = (parcel._replace(number="7"), parcel._replace(payload=b"\xff"), parcel._replace(payload=b'"\0"'))

    assert parcel == Parcel.unpacked(parcel.packed())
    assert [None] * 5 == [Parcel.unpacked(raw) for raw in (b"", payload(), *(one.packed() for one in wrong))]


def test_ready_delayed_and_failed_jobs_move_and_begin_anew(places):
    ids = [places.near.push("do", {"number": number}) for number in range(30)]
    followed = places.near.push("do", track=60)
    later = places.near.push("do", delay=600)
    [failure] = failed_in_thousands(places.near, 1)
    done = places.move("--state", "ready,delayed,failed")

    assert "33 jobs moved from default to distant on connection far: default 33\n" == done.stdout
    assert [*ids, followed, failure] == ready(places.far, "distant")
    assert (0, 0, 0) == (places.near.size(), places.near.stores.failed.count(), places.near.size(ON_THEIR_WAY))
    [waits] = [job for job in places.far.stores.queue.walk("distant", ("delayed",)).page(99) if job.at]
    assert later == decode(waits.payload).id
    assert 590 < waits.at - places.far.stores.queue.now() < 602
    assert ("cancelled", "queued") == (places.near.job(followed).state, places.far.job(followed).state)
    leases = places.far.stores.queue.reserve(["distant"], places.far.stores.queue.join(), 99).leases
    assert {1} == {decode(lease.receipt, lease.attempts).attempts for lease in leases}
    assert [] == [*places.far.stores.values.held()]


# Killed, or cut off

TRANSFER = "search/transfer.py"
KILLED = "__import__('os').kill(__import__('os').getpid(), 9)"
#: each step of a move, behind which the mover is killed: what stands there, and how far it is to the right
STEPS = {
    "put on its way": ("answers = self._pace(partial(self._send, step, parcels))\n", 16),
    "pushed": (
        "arrival = self._target.arrivals.admit(one.route.queue, new, job.at, one.number, until)\n", 12,
    ),
    "dropped from its way": (
        "gone = self._pace(partial(self._source.queue.drop, ON_THEIR_WAY, [job for job, _ in came]))\n", 8,
    ),
    "forgotten": ("self._target.arrivals.forget([one.number for _, one in over])\n", 12),
}  # fmt: skip


def killed_behind(line: str, indent: int) -> Plant:
    return Plant("", ((TRANSFER, line, f"{line}{' ' * indent}{KILLED}\n"),))


@pytest.mark.parametrize("step", STEPS)
def test_killed_behind_any_step_each_job_is_in_one_place_and_comes_once(places, tmp_path, step):
    ids = places.near.bulk([("do", {"number": number}) for number in range(120)])
    later = places.near.push("do", delay=600)

    assert -9 == places.moved_by(killed_behind(*STEPS[step]), tmp_path / "with a kill")
    delayed = places.near.sizes().delayed + places.near.sizes(ON_THEIR_WAY).delayed
    assert sorted(ids) == [one for one in whereabouts(places) if one != later]
    assert delayed + places.far.sizes("distant").delayed
    assert places.near.size() < 121
    places.move()
    assert (sorted(ids), [], 0) == (sorted(ready(places.far, "distant")), on_their_way(places.near), places.near.size())
    assert 1 == places.far.sizes("distant").delayed


#: the steps of the way back
BACK = {
    "refused": ("arrival, why = self._target.arrivals.refuse(one.number), str(error)\n", 12),
    "sent back": ("gone += self._pace(partial(self._send_back, refused))\n", 8),
}
REFUSES = """CREATE TRIGGER refuses BEFORE INSERT ON jobs WHEN length(new.payload) > 5000
    BEGIN SELECT RAISE(ABORT, 'it is too long'); END"""


@REDIS_TO_SQLITE
@pytest.mark.parametrize("step", BACK)
def test_killed_on_the_way_back_it_is_in_one_place_too(places, tmp_path, step):
    places.far.stores.client.ask(lambda connection: connection.exec_driver_sql(REFUSES))
    long = places.near.push("do", {"text": "x" * 6000})

    assert -9 == places.moved_by(killed_behind(*BACK[step]), tmp_path / "with a kill")
    assert [long] == whereabouts(places)
    assert 1 == places.move(check=False).returncode
    assert ([long], [], []) == (
        ready(places.near, "default"), on_their_way(places.near), ready(places.far, "distant"),
    )  # fmt: skip


@REDIS_TO_SQLITE
def test_what_the_other_store_refuses_goes_back_and_holds_up_no_other(places):
    places.far.stores.client.ask(lambda connection: connection.exec_driver_sql(REFUSES))
    first, long, last = (places.near.push("do", {"text": "x" * size}) for size in (1, 6000, 1))
    done = places.move(check=False)

    assert 1 == done.returncode
    assert "2 jobs moved from default to distant on connection far: default 2\n" == done.stdout
    assert "1 job left in default, which the other store does not take: it is too long" in done.stderr
    assert ([first, last], [long]) == (ready(places.far, "distant"), ready(places.near, "default"))
    assert [] == on_their_way(places.near)


def test_a_job_that_has_come_already_does_not_come_again(places):
    parcels = [places.parcel(identity) for identity in ("came", "waits")]
    places.leave(*parcels)
    places.near.stores.queue.push(ON_THEIR_WAY, new_jobs(b'{"of": "others"}'))
    arrivals, until = places.far.stores.arrivals, places.far.stores.queue.now() + 60.0
    assert Arrival.CAME is arrivals.admit("distant", NewJob(parcels[0].payload), None, parcels[0].number, until)
    done = places.move()

    assert f"2 jobs moved from default to distant on connection far: {ON_THEIR_WAY} 2\n" == done.stdout
    assert ["came", "waits"] == ready(places.far, "distant")
    assert (1, []) == (places.near.size(ON_THEIR_WAY), on_their_way(places.near))


def test_a_job_that_was_refused_there_goes_back_also_by_another_mover(places):
    parcel = places.parcel("refused")
    places.leave(parcel)
    assert Arrival.REFUSED is places.far.stores.arrivals.refuse(parcel.number)

    assert "it was refused before" in places.move(check=False).stderr
    assert (["refused"], [], []) == (
        ready(places.near, "default"), on_their_way(places.near), ready(places.far, "distant"),
    )  # fmt: skip


def test_two_movers_at_once_move_each_job_once(places):
    ids = places.near.bulk([("do", {"number": number}) for number in range(400)])
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command = [sys.executable, "-m", "queuepool", *WORDS, "--yes"]
    movers = [warm.start(command, env=places.site.env(), cwd=places.site.path, **quiet) for _ in range(2)]

    assert [0, 0] == [mover.wait(60) for mover in movers]
    assert (sorted(ids), 0) == (sorted(ready(places.far, "distant")), places.near.size())
    assert [] == on_their_way(places.near)


@SQLITE_TO_REDIS
def test_a_push_that_is_carried_out_long_after_its_sender_gave_it_up_pushes_nothing(
    places, redis_socket, server, tmp_path
):
    server.script_load(script("admit")[0])
    job = places.near.push("do")
    with LateProxy(redis_socket, tmp_path) as network:
        direct = places.far.settings.url
        places.write(url=f"unix://{network.path}")
        network.hold_the_next(script("admit")[1].encode())
        done = places.move(check=False)
        places.write(url=direct)

        assert 1 == done.returncode
        assert "1 job left in default, which the other store does not take: " in done.stderr
        eventually(lambda: network.held)
        assert b"refused" in network.deliver()
    assert ([job], [], []) == (
        ready(places.near, "default"), on_their_way(places.near), ready(places.far, "distant"),
    )  # fmt: skip


@SQLITE_TO_REDIS
def test_what_a_full_store_does_not_take_stays_on_its_way_until_it_has_room(places, server):
    job = places.near.push("do")
    server.config_set("maxmemory", 1)
    try:
        full = places.move(check=False)
    finally:
        server.config_set("maxmemory", 0)

    assert 1 == full.returncode
    assert f"jobs that are on their way are in queue {ON_THEIR_WAY}" in full.stderr
    assert ([job], []) == (on_their_way(places.near), ready(places.far, "distant"))
    places.move()
    assert ([], [job]) == (on_their_way(places.near), ready(places.far, "distant"))


# What is left


def test_jobs_that_hold_unique_locks_stay(places):
    goes = places.near.push("do")
    stays = places.near.push("do", unique_id="7")
    done = places.move()

    assert ([stays], [goes]) == (ready(places.near, "default"), ready(places.far, "distant"))
    assert "note: 1 job left: a unique lock is held" in done.stderr
    assert not places.near.push("do", unique_id="7")


def test_what_cannot_be_a_job_stays(places):
    goes = places.near.push("do")
    places.near.push_raw(b"no job")
    done = places.move()

    assert (1, [goes]) == (places.near.size(), ready(places.far, "distant"))
    assert "note: 1 job left: a worker would set it aside: json" in done.stderr


def test_a_signed_job_is_signed_for_its_queue_there_and_one_that_is_not_stays(places):
    key = {"signing_keys": "k:" + "s" * 32}
    places.write({**key, "signing": "accept"}, **key, signing="require")
    terms: dict[str, Any] = {"signing_keys": (("k", "s" * 32),)}
    unsigned = places.near.push("do")
    with closing(Queue(replace(places.site.connection, signing="accept", **terms))) as signing:
        signed = signing.push("do")
    done = places.move()

    assert ([unsigned], [signed]) == (ready(places.near, "default"), ready(places.far, "distant"))
    assert "note: 1 job left: a worker would set it aside: unsigned" in done.stderr
    assert b'"qp"' in places.far.stores.queue.first("distant", 1)[0]


def test_parcels_of_other_moves_and_of_long_ago_stay_and_are_counted(places):
    others = [places.parcel("other store", place="elsewhere"), places.parcel("other queue", queue="slow")]
    old = places.parcel("old")._replace(at=1.0)
    places.leave(*others, old)
    done = places.move()

    assert "0 jobs moved" in done.stdout
    assert f"note: 2 jobs of other moves in queue {ON_THEIR_WAY}: queuepool move 'default' " in done.stderr
    assert f"note: 1 job of long ago in queue {ON_THEIR_WAY}" in done.stderr
    assert (3, []) == (places.near.size(ON_THEIR_WAY), ready(places.far, "distant"))


# Before it acts


def test_nothing_comes_before_it_was_asked(places):
    places.leave(places.parcel("waits"))
    places.near.push("do")
    done = places.site.run(*WORDS, check=False, stdin=subprocess.DEVNULL)

    assert 2 == done.returncode
    asked = f"this would move 2 jobs from default to distant on connection far: default 1, {ON_THEIR_WAY} 1"
    assert asked in " ".join(done.stderr.split())
    assert (["waits"], []) == (on_their_way(places.near), ready(places.far, "distant"))


def test_no_other_command_takes_what_is_on_its_way(places):
    places.leave(places.parcel("far"))
    refused = [
        ("move", ON_THEIR_WAY, "default"), ("move", "default", ON_THEIR_WAY), ("clear", ON_THEIR_WAY, "--yes"),
        ("drop", ON_THEIR_WAY, "--yes"), ("push", "do", "--queue", ON_THEIR_WAY), ("work", "--queue", ON_THEIR_WAY),
    ]  # fmt: skip
    codes = [places.site.run(*words, "-c", "two.ini", check=False).returncode for words in refused]
    dropped = places.site.run("drop", "--search", "far", "--yes", "-c", "two.ini", check=False)

    assert [2] * 6 == codes
    assert 0 == dropped.returncode
    assert ["far"] == on_their_way(places.near)


def test_failed_jobs_of_another_store_are_refused(places):
    places.write({"failed_url": "sqlite:///failed.db"})
    done = places.move("--state", "failed", check=False)

    assert (2, True) == (done.returncode, "retry them, then move them" in done.stderr)
