"""Jobs move to another connection: each is in one place, and comes once, at whatever moment something goes wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from queuepool.config.values import ON_THEIR_WAY
from queuepool.payload.envelope import decode
from queuepool.search.filters import Filter
from queuepool.search.look import Look
from queuepool.search.transfer import Route, Transfer
from queuepool.stores.arrivals import Arrival
from queuepool.stores.contract import NewJob
from queuepool.stores.factory import Stores
from queuepool.stores.records import Returned
from queuepool.stores.redis.scripts import script
from tests.chaos.plant import Plant
from tests.support import warm
from tests.support.eventually import eventually
from tests.support.late_proxy import LateProxy
from tests.support.lossy_proxy import LossyProxy
from tests.support.moves import PLACES, WORDS, Places, on_their_way, places_of, ready, whereabouts
from tests.support.redis_server import PREFIX
from tests.support.samples import new_jobs, payload

pytestmark = [pytest.mark.every_store("places"), pytest.mark.by_turns("step")]
REDIS_TO_SQLITE = pytest.mark.parametrize("places", ["redis to sqlite"], indirect=True)
SQLITE_TO_REDIS = pytest.mark.parametrize("places", ["sqlite to redis"], indirect=True)


@pytest.fixture(params=PLACES)
def places(request: pytest.FixtureRequest) -> Iterator[Places]:
    with places_of(request) as found:
        yield found


TRANSFER = "search/transfer.py"
KILLED = "__import__('os').kill(__import__('os').getpid(), 9)"
#: each step of a move, behind which the mover is killed: what stands there, and how far it is to the right
STEPS = {
    "put on its way": ("answers = self._pace(partial(self._send, step, parcels))\n", 16),
    "pushed": (
        "arrival = self._target.arrivals.admit(one.route.queue, new, job.at, one.key, until)\n", 12,
    ),
    "dropped from its way": (
        "gone = self._pace(partial(self._source.queue.drop, ON_THEIR_WAY, [job for job, _ in came]))\n", 8,
    ),
    "forgotten": ("self._target.arrivals.forget([one.key for _, one in over])\n", 12),
}  # fmt: skip


def killed_behind(line: str, indent: int) -> Plant:
    return Plant("", ((TRANSFER, line, f"{line}{' ' * indent}{KILLED}\n"),))


@pytest.mark.parametrize("step", STEPS)
def test_killed_behind_any_step_each_job_is_in_one_place_and_comes_once(places, tmp_path, step):
    ids = places.near.bulk([("do", {"number": number}) for number in range(60)])
    later = places.near.push("do", delay=600)

    assert -9 == places.moved_by(killed_behind(*STEPS[step]), tmp_path / "with a kill")
    delayed = places.near.sizes().delayed + places.near.sizes(ON_THEIR_WAY).delayed
    assert sorted(ids) == [one for one in whereabouts(places) if one != later]
    assert delayed + places.far.sizes("distant").delayed
    assert places.near.size() < 61
    places.move()
    assert (sorted(ids), [], 0) == (sorted(ready(places.far, "distant")), on_their_way(places.near), places.near.size())
    assert 1 == places.far.sizes("distant").delayed


#: the steps of the way back
BACK = {
    "refused": ("arrival, why = self._target.arrivals.refuse(one.key), str(error)\n", 12),
    "sent back": ("gone += self._pace(partial(self._send_back, refused))\n", 8),
}
REFUSES = """CREATE TRIGGER refuses BEFORE INSERT ON jobs WHEN length(new.payload) > 5000
    BEGIN SELECT RAISE(ABORT, 'it is too long'); END"""


@pytest.mark.thorough(
    "a mover below takes on what one that was killed after a refusal has left; the next test sends one back"
)
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
    assert Arrival.CAME is arrivals.admit("distant", NewJob(parcels[0].payload), None, parcels[0].key, until)
    done = places.move()

    assert f"2 jobs moved from default to distant on connection far: {ON_THEIR_WAY} 2\n" == done.stdout
    assert ["came", "waits"] == ready(places.far, "distant")
    assert (1, []) == (places.near.size(ON_THEIR_WAY), on_their_way(places.near))


def test_a_job_that_was_refused_there_goes_back_also_by_another_mover(places):
    parcel = places.parcel("refused")
    places.leave(parcel)
    assert Arrival.REFUSED is places.far.stores.arrivals.refuse(parcel.key)

    assert "it was refused before" in places.move(check=False).stderr
    assert (["refused"], [], []) == (
        ready(places.near, "default"), on_their_way(places.near), ready(places.far, "distant"),
    )  # fmt: skip


def test_a_parcel_with_the_number_of_another_one_does_not_pass_for_it(places):
    parcel = places.parcel("job")
    places.leave(parcel._replace(payload=payload("forged")), parcel)
    places.move()

    assert (["forged", "job"], []) == (ready(places.far, "distant"), on_their_way(places.near))


def test_two_movers_at_once_move_each_job_once(places):
    ids = places.near.bulk([("do", {"number": number}) for number in range(200)])
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
def test_a_push_whose_answer_is_lost_has_come(places, redis_socket, server, tmp_path):
    server.script_load(script("admit")[0])
    places.leave(places.parcel("sent"))
    look, route = Look(places.near.stores, Filter()), Route("default", places.place, "far", "distant")
    with (
        LossyProxy(redis_socket, tmp_path) as network,
        closing(Stores(replace(places.far.settings, url=f"unix://{network.path}"))) as there,
    ):
        transfer = Transfer(look, there, route)
        [left_over] = transfer.left_over()
        network.lose_the_next_reply(script("admit")[1].encode())
        assert [Returned.DONE] == transfer.take_on(left_over)

    assert (["sent"], []) == (ready(places.far, "distant"), on_their_way(places.near))
    assert (1, {}) == (transfer.came, transfer.refused)


@SQLITE_TO_REDIS
def test_a_job_that_goes_back_keeps_its_attempts_and_what_others_wrote_into_its_row(places, server):
    server.set(f"{PREFIX}queues:distant", "of another type")
    job = places.near.push("do", delay=600)
    client = places.near.stores.client
    for line in ("ALTER TABLE jobs ADD COLUMN tenant TEXT", "UPDATE jobs SET tenant = 'acme', attempts = 2"):
        client.ask(lambda connection, line=line: connection.exec_driver_sql(line))
    due = "SELECT queue, tenant, attempts, available_at FROM jobs"
    before = client.ask(lambda connection: connection.exec_driver_sql(due).all())
    done = places.move(check=False)

    assert 1 == done.returncode
    assert "1 job left in default, which the other store does not take: WRONGTYPE" in done.stderr
    assert before == client.ask(lambda connection: connection.exec_driver_sql(due).all())
    assert [job] == [decode(raw, 0).id for raw in places.near.stores.queue.first("default", 9, "delayed")]


@SQLITE_TO_REDIS
def test_what_a_full_store_does_not_take_stays_on_its_way_until_it_has_room(places, server):
    job, _ = places.near.push("do"), places.place
    server.config_set("maxmemory", 1)
    try:
        full = places.move(check=False)
    finally:
        server.config_set("maxmemory", 0)

    assert 1 == full.returncode
    assert f"note: jobs that are on their way are in queue {ON_THEIR_WAY}" in full.stderr
    assert ([job], []) == (on_their_way(places.near), ready(places.far, "distant"))
    places.move()
    assert ([], [job]) == (on_their_way(places.near), ready(places.far, "distant"))
