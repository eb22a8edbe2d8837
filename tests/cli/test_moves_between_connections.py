"""Jobs move to another connection: which of them, what they are there, and what is asked before."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from queuepool.config.values import ON_THEIR_WAY
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import OBJECT_JOB, decode
from queuepool.payload.php_values import build_command
from queuepool.search.transfer import Parcel, Route
from tests.support.many_failed import failed_in_thousands
from tests.support.moves import PLACES, WORDS, Places, on_their_way, places_of, ready
from tests.support.samples import payload

pytestmark = pytest.mark.every_store("places")


@pytest.fixture(params=PLACES)
def places(request: pytest.FixtureRequest) -> Iterator[Places]:
    with places_of(request) as found:
        yield found


def test_a_parcel_is_read_as_it_was_written_and_nothing_else_is():
    route = Route("default", "1f:cache_locks", "far", "distant")
    parcel = Parcel("7f" * 16, route, 60.5, '{"a":"é"}'.encode())
    wrong = [
        parcel._replace(number="7"), parcel._replace(payload=b"\xff"), parcel._replace(payload=b'"\0"'),
        *(parcel._replace(route=route._replace(**{name: "$(a)"})) for name in ("origin", "connection", "queue")),
    ]  # fmt: skip

    assert parcel == Parcel.unpacked(parcel.packed())
    assert [None] * 8 == [Parcel.unpacked(raw) for raw in (b"", payload(), *(one.packed() for one in wrong))]


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
    [line] = places.far.stores.journal.last(9)
    assert ("move", "jobs from default on connection near to distant", 33) == (line.verb, line.subject, line.count)


def test_a_step_of_a_chain_and_a_batch_keeps_every_byte(places):
    step = build_command("App\\Jobs\\Step", {"number": 1, "batchId": "b", "chained": ['O:1:"A":0:{}']})
    data = {"commandName": "App\\Jobs\\Step", "command": step}
    raw = payload("step", job=OBJECT_JOB, displayName="App\\Jobs\\Step", data=data, hostile=[{}, [], 1e22, "é/"])
    places.near.push_raw(raw)
    places.move()

    assert [raw] == places.far.stores.queue.first("distant", 9)


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
    others = [places.parcel("other queue", queue="slow"), places.parcel("another store", place="it was emptied")]
    old = places.parcel("old")._replace(at=1.0)
    places.leave(*others, old)
    done = places.move()

    assert "0 jobs moved" in done.stdout
    note = f"note: 1 job in queue {ON_THEIR_WAY}: "
    assert f"{note}queuepool move default slow --connection far takes them on" in done.stderr
    assert f"{note}they were to come to the store that connection far led to before" in done.stderr
    assert f"note: 1 job of long ago in queue {ON_THEIR_WAY}" in done.stderr
    assert (3, []) == (places.near.size(ON_THEIR_WAY), ready(places.far, "distant"))


def test_what_is_never_brought_can_be_taken_back(places):
    lost = [places.parcel("another store", place="it was emptied"), places.parcel("old")._replace(at=1.0)]
    places.leave(*lost, places.parcel("other queue", queue="slow"), places.parcel("of now"))
    stays = places.near.push("do")
    asked = places.site.run(*WORDS, "--take-back", check=False, stdin=subprocess.DEVNULL)
    done = places.move("--take-back")

    again = "to default, where those that have come elsewhere are run again"
    assert (2, True) == (asked.returncode, f"this would take back 2 jobs {again}" in " ".join(asked.stderr.split()))
    assert f"2 jobs taken back {again}: {ON_THEIR_WAY} 2\n" == done.stdout
    assert {stays, "another store", "old"} == {*ready(places.near, "default")}
    assert (["other queue", "of now"], []) == (on_their_way(places.near), ready(places.far, "distant"))


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
