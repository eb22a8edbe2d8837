"""Jobs come from another store once each, whatever is sent again, is refused, or comes late."""

from __future__ import annotations

import json
import re
import secrets
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from queuepool.errors import StoreDown
from queuepool.payload.envelope import decode
from queuepool.settlement.states import pushed
from queuepool.stores.arrivals import Arrival
from queuepool.stores.contract import NewJob
from queuepool.stores.factory import Stores, is_redis
from tests.support.asked_again import asked_again
from tests.support.drivers import PATIENCE
from tests.support.samples import payload

pytestmark = pytest.mark.every_store("connection")


@pytest.fixture
def number() -> str:
    return secrets.token_hex(16)


def admit(built: Stores, number: str, job: NewJob | None = None, due: float | None = None) -> Arrival:
    until = built.queue.now() + 60.0
    return built.arrivals.admit("default", job or NewJob(payload("a")), due, number, until)


def waiting(built: Stores) -> list[str]:
    return [decode(job.payload, 0).id for job in built.queue.walk("default", ("ready", "delayed")).page(99)]


def test_each_place_has_an_id_of_its_own(built, connection):
    known = built.arrivals.place()
    other = {"prefix": f"{connection.prefix}other:"} if is_redis(connection.url) else {"jobs_table": "other_jobs"}
    with closing(Stores(connection)) as same, closing(Stores(replace(connection, **other))) as another:
        assert (known, True) == (same.arrivals.place(), known != another.arrivals.place())

    built.arrivals.sweep()
    assert known == built.arrivals.place()
    assert re.match("[0-9a-f]{32}", known)


def test_a_job_comes_once_however_often_it_is_sent(built, number):
    answers = [admit(built, number) for _ in range(3)]
    other = admit(built, secrets.token_hex(16), NewJob(payload("b")))

    assert [Arrival.CAME] * 4 == [*answers, other]
    assert ["a", "b"] == waiting(built)


def test_a_job_that_was_refused_does_not_come_and_one_that_has_come_is_not_refused(built, number):
    refused = [built.arrivals.refuse(number), admit(built, number), built.arrivals.refuse(number)]
    another = secrets.token_hex(16)
    came = [admit(built, another, NewJob(payload("b"))), built.arrivals.refuse(another)]

    assert ([Arrival.REFUSED] * 3, [Arrival.CAME] * 2) == (refused, came)
    assert ["b"] == waiting(built)


def test_a_request_that_comes_late_does_nothing(built, number):
    with pytest.raises(StoreDown):
        built.arrivals.admit("default", NewJob(payload("a")), None, number, built.queue.now() - 1.0)

    assert [] == waiting(built)
    assert Arrival.CAME is admit(built, number)
    with pytest.raises(StoreDown):
        built.arrivals.admit("default", NewJob(payload("b")), None, secrets.token_hex(16), built.queue.now() - 1.0)
    assert ["a"] == waiting(built)


def test_a_delayed_job_keeps_its_time_and_a_tracked_one_has_its_state(built, number):
    due = float(int(built.queue.now()) + 600)
    state = pushed("a", "app.ok", "default", 600.0)
    admit(built, number, NewJob(payload("a"), state), due)
    admit(built, secrets.token_hex(16), NewJob(payload("b")), due - 1200)

    [delayed] = [job for job in built.queue.walk("default", ("delayed",)).page(9) if job.shelf == "delayed"]
    assert delayed.at is not None
    assert ("a", True) == (decode(delayed.payload, 0).id, due <= delayed.at <= due + 2)
    assert 1 == built.queue.sizes("default").ready
    assert "delayed" == json.loads(built.values.state("a") or b"{}")["state"]
    back = NewJob(payload("a"), pushed("a", "app.ok", "default", 0.0))  # it was moved away, and comes again
    assert Arrival.CAME is admit(built, secrets.token_hex(16), back)
    assert "queued" == json.loads(built.values.state("a") or b"{}")["state"]


def test_what_is_forgotten_is_still_known_while_a_request_may_be_under_way(built, number):
    admit(built, number)
    built.arrivals.forget([number])
    built.arrivals.forget([])
    built.arrivals.sweep()

    assert Arrival.CAME is admit(built, number)
    assert ["a"] == waiting(built)


def test_it_is_no_lock_of_a_job(built, number):
    admit(built, number)

    assert ([], []) == ([*built.values.held()], built.values.all_keys())


def test_of_several_that_send_it_at_once_one_pushes_it(built, connection, number):
    answers = list[Arrival]()

    def send() -> None:
        with closing(Stores(connection, reply_timeout=PATIENCE)) as own:
            for _ in range(20):
                answers.append(asked_again(lambda: admit(own, number)))

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ({Arrival.CAME}, 60) == ({*answers}, len(answers))
    assert ["a"] == waiting(built)
