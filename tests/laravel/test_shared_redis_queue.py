"""Laravel 8.83 and queuepool share one queue in Redis: each runs and settles what the other pushed."""

from __future__ import annotations

import base64
import dataclasses
import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from queuepool.errors import BadArguments
from queuepool.jobs.client import Queue
from queuepool.payload.command import command_of
from queuepool.payload.envelope import OBJECT_JOB, Payload, decode
from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.redis_server import PREFIX
from tests.support.samples import new_jobs

REPORT = "App\\Jobs\\Report@build"
MAIL = "App\\Jobs\\SendMail"
RESTART_KEY = f"{PREFIX}laravel_cache:illuminate:queue:restart"
READY = f"{PREFIX}queues:default"


@pytest.fixture
def queue(connection: Any) -> Iterator[Queue]:
    opened = Queue(connection)
    yield opened
    opened.close()


@pytest.fixture
def store(stores: Stores) -> Any:
    return stores.queue


def reserved(store: Any, name: str = "default") -> tuple[Lease, Payload]:
    """The next job, as a worker gets it."""
    [lease] = store.reserve([name], 1, 1).leases
    return lease, decode(lease.receipt)


def runs(peer: Peer, job: str = "") -> list[dict[str, Any]]:
    return [line for line in peer.lines() if "job" in line and line["job"] in (job or line["job"])]


# Pushed there, run here


def test_a_string_job_of_laravel_comes_with_its_data(peer, store):
    identity = peer.run("push-string", REPORT, '{"id": 7, "tags": [], "name": "é/"}')["id"]

    _, found = reserved(store)

    assert (identity, REPORT, "App\\Jobs\\Report", 1) == (
        found.id,
        found.name,
        found.options.display_name,
        found.attempts,
    )
    assert {"id": 7, "tags": [], "name": "é/"} == found.data
    assert () == found.warnings


def test_a_string_job_of_laravel_without_data_has_none(peer, store):
    peer.run("push-string", REPORT)

    assert "" == reserved(store)[1].data


def test_an_object_job_of_laravel_comes_with_its_properties_by_name(peer, store):
    peer.run("push-object", "a@b.c", "vip é")

    _, found = reserved(store)

    assert MAIL == found.name
    assert {"to": "a@b.c", "template": "vip é"} == command_of(found.data).arguments


def test_the_wishes_of_an_object_job_of_laravel_are_understood(peer, store):
    peer.run("push-object", "a", "b", tries=5, timeout=30, backoff="1,5,30")

    _, found = reserved(store)

    terms = found.options
    assert (5, 30.0, (1.0, 5.0, 30.0), ()) == (terms.max_tries, terms.timeout, terms.backoff, found.warnings)


def test_a_job_that_laravel_delayed_is_due_when_laravel_said(peer, store, server):
    before = server.time()[0]
    peer.run("push-string", REPORT, delay=60, queue="default")
    after = server.time()[0]

    store.clock = repr(before + 59.0)
    early = store.reserve(["default"], 1, 1).leases
    store.clock = repr(after + 61.0)

    assert ([], 1) == (early, len(store.reserve(["default"], 1, 1).leases))


def test_a_push_of_laravel_ends_our_wait(peer, store):
    peer.run("push-string", REPORT, queue="high")

    store.wait(["default", "high"], timeout=5.0)

    assert REPORT == reserved(store, "high")[1].name


def test_an_encrypted_job_of_laravel_is_a_bad_argument(store, queue):
    envelope = base64.b64encode(json.dumps({"iv": "aXY=", "value": "dg==", "mac": "6d", "tag": ""}).encode()).decode()
    queue.push(OBJECT_JOB, {"commandName": MAIL, "command": envelope})

    with pytest.raises(BadArguments, match="encrypted"):
        command_of(reserved(store)[1].data)


# Pushed here, run there


def test_a_string_job_of_ours_is_run_by_laravel(peer, queue):
    identity = queue.push(REPORT, {"id": 7, "tags": [1.5, None, "é"]})

    peer.run("work", once=True)

    [run] = runs(peer)
    assert (REPORT.partition("@")[0], {"id": 7, "tags": [1.5, None, "é"]}, 1, "default") == (
        run["job"].partition("@")[0],
        run["data"],
        run["attempts"],
        run["queue"],
    )
    assert identity
    assert 0 == queue.size()


def test_an_object_job_of_ours_is_run_by_laravel(peer, queue):
    queue.push_object(MAIL, {"to": "a@b.c", "template": "vip é"}, queue="mails")

    peer.run("work", once=True, queue="mails")

    assert [{"job": MAIL, "to": "a@b.c", "template": "vip é", "attempts": 1, "queue": "mails"}] == runs(peer)
    assert 0 == queue.size("mails")


def test_laravel_finds_the_protected_and_private_properties_of_an_object_job_of_ours(peer, queue):
    held = {"account": 7, "since": "today", "token": "é"}
    queue.push_object("App\\Jobs\\Sync", held, protected=["since"], private=["token"])
    queue.push_object("App\\Jobs\\Sync", held)

    peer.run("work", stop_when_empty=True)

    assert [[7, "today", "é"], [7, "the start", "none"]] == [run["held"] for run in runs(peer)]


def test_laravel_goes_by_the_options_of_an_object_job_of_ours(peer, queue):
    mail = {"to": "a@b.c", "template": "vip", "failTimes": 9}
    queue.push_object(MAIL, mail, options={"tries": 2, "backoff": [0, 5], "retryUntil": None})

    peer.run("work", stop_when_empty=True, tries=5)

    assert [1, 2] == [run["attempts"] for run in runs(peer)]
    assert 1 == len([line for line in peer.lines() if "failed_row" in line])


@pytest.mark.thorough("one is run there in the tests above")
def test_many_jobs_of_ours_are_run_by_laravel_in_their_order(peer, queue):
    queue.bulk([(REPORT, {"id": number}) for number in range(20)])

    peer.run("work", stop_when_empty=True)

    assert list(range(20)) == [run["data"]["id"] for run in runs(peer)]


def test_a_delayed_job_of_ours_is_run_by_laravel_when_it_is_due(peer, queue, server):
    queue.push(REPORT, {"id": 7}, delay=600)
    peer.run("work", once=True)
    early = runs(peer)

    [raw] = server.zrange(f"{READY}:delayed", 0, -1)
    server.zincrby(f"{READY}:delayed", -601, raw)  # Laravel compares with the whole second
    peer.run("work", once=True)

    assert ([], 1) == (early, len(runs(peer)))


def test_our_wish_for_one_try_is_laravels_law(peer, queue):
    queue.push(REPORT, {"fail_times": 9}, options={"maxTries": 1})

    peer.run("work", once=True, tries=5)

    [failed] = [line for line in peer.lines() if "failed_row" in line]
    assert "told to fail" in failed["failed_row"]["exception"]
    assert 0 == queue.size()


# From hand to hand


@pytest.mark.thorough("test_a_job_that_goes_to_and_fro_counts_every_attempt")
def test_an_attempt_that_failed_there_is_finished_here_as_the_second(peer, queue, store):
    queue.push(REPORT, {"fail_times": 1, "id": 7}, options={"maxTries": 3})
    peer.run("work", once=True)

    lease, found = reserved(store)

    assert (2, {"fail_times": 1, "id": 7}) == (found.attempts, found.data)
    assert [True] == store.delete([lease])
    assert {"size": 0} == peer.run("size")


@pytest.mark.thorough("test_a_job_that_goes_to_and_fro_counts_every_attempt")
def test_an_attempt_that_failed_here_is_finished_there_as_the_second(peer, queue, store):
    queue.push(REPORT, {"id": 7, "empty": []}, options={"maxTries": 3})
    lease, found = reserved(store)

    store.release(lease, 0.0, found.id, "exceptions")
    peer.run("work", once=True)

    assert [({"id": 7, "empty": []}, 2)] == [(run["data"], run["attempts"]) for run in runs(peer)]
    assert 0 == queue.size()


@pytest.mark.fault("F65")
def test_a_job_that_goes_to_and_fro_counts_every_attempt(peer, queue, store):
    queue.push(REPORT, {"release_times": 9}, options={"maxTries": 9})
    for _ in range(3):
        peer.run("work", once=True)
        lease, found = reserved(store)
        store.release(lease, 0.0, found.id)

    assert [1, 3, 5] == [run["attempts"] for run in runs(peer)]
    assert 7 == reserved(store)[1].attempts


def test_a_job_that_laravel_released_for_later_is_staged_here(peer, queue, store, server):
    queue.push(REPORT, {"id": 7})
    peer.run("release-one", delay=60)

    store.clock = repr(server.time()[0] + 62.0)

    assert 1 == store.stage(["default"]).moved
    assert 2 == reserved(store)[1].attempts


def test_a_job_that_laravel_reserved_and_left_is_run_here_when_its_lease_has_ended(peer, queue, store, server):
    queue.push(REPORT, {"id": 7})
    before = server.time()[0]
    peer.run("reserve-hold", retry_after=60)

    store.clock = repr(before + 59.0)
    early = store.stage(["default"]).moved
    store.clock = repr(server.time()[0] + 62.0)

    assert (0, 1) == (early, store.stage(["default"]).moved)
    assert 2 == reserved(store)[1].attempts


def test_a_job_that_we_reserved_and_left_is_run_there_when_its_lease_has_ended(peer, queue, stores, connection):
    short = Stores(dataclasses.replace(connection, retry_after=1.0))
    queue.push(REPORT, {"id": 7}, options={"maxTries": 2})
    reserved(short.queue)
    short.close()

    eventually(lambda: peer.run("work", once=True) and runs(peer))

    assert [2] == [run["attempts"] for run in runs(peer)]


def test_a_job_that_laravel_holds_is_not_given_to_us(peer, queue, store):
    queue.push(REPORT)
    peer.run("reserve-hold")

    assert [] == store.reserve(["default"], 1, 1).leases


def test_a_job_that_we_hold_is_not_given_to_laravel(peer, queue, store):
    queue.push(REPORT)
    reserved(store)

    assert None is peer.run("reserve-hold")["id"]


def test_what_laravel_reserved_is_not_reclaimed_as_ours(peer, queue, store):
    queue.push(REPORT)
    peer.run("reserve-hold")

    assert not any(store.reclaim(["default"], tag, 10.0, known=()) for tag in range(1, 20))
    assert 1 == store.sizes("default").reserved


def test_a_job_given_back_is_popped_by_laravel_as_a_first_attempt(peer, queue, store):
    identity = queue.push(REPORT, {"id": 7})
    raw = store.sizes("default").oldest
    lease, _ = reserved(store)

    store.give_back([lease])

    held = peer.run("reserve-hold")
    assert (identity, 1, raw.decode()) == (held["id"], held["attempts"], held["raw"])


@pytest.mark.fault("F61")
def test_what_laravels_pop_would_lose_is_set_aside_before_it_comes_there(peer, store, stores):
    store.push("default", new_jobs(b"not json"))
    store.reserve(["default"], 1, 1)

    assert None is peer.run("reserve-hold")["id"]
    assert [b"not json"] == [entry.payload for entry in stores.records.quarantined("default")]


def test_a_retried_job_is_run_by_laravel_as_a_first_attempt(peer, queue, store, stores):
    queue.push(REPORT, {"id": 7})
    lease, found = reserved(store)
    record = {"id": found.id, "name": found.name, "queue": "default", "connection": "default", "attempts": 1}
    store.fail(lease, found.id, {**record, "payload": lease.receipt.decode(), "exception": "x"})

    stores.failed.retry(stores.failed.get(found.id))
    peer.run("work", once=True)

    assert [1] == [run["attempts"] for run in runs(peer)]


def test_the_sizes_agree(peer, queue, store):
    queue.bulk([(REPORT, number) for number in range(3)])
    queue.push(REPORT, delay=60)
    reserved(store)
    peer.run("reserve-hold")

    assert {"size": 4} == peer.run("size")
    assert (1, 1, 2) == (queue.sizes().ready, queue.sizes().delayed, queue.sizes().reserved)


def test_the_tokens_are_right_after_laravel_popped(peer, queue, store, server):
    queue.bulk([(REPORT, number) for number in range(4)])
    peer.run("reserve-hold")
    peer.run("release-one")

    reserved(store)

    assert (2, 2) == (server.llen(READY), server.llen(f"{READY}:notify"))


# Restart


@pytest.fixture
def control(connection: Any) -> Iterator[Any]:
    stores = Stores(dataclasses.replace(connection, restart_key=RESTART_KEY))
    yield stores.control
    stores.close()


def test_a_restart_of_laravels_is_seen_here(peer, control):
    before = control.read(["default"]).restart

    written = peer.run("restart")

    assert ([RESTART_KEY], None) == (written["keys"], before)
    assert str(written["value"]) == control.read(["default"]).restart


def test_a_restart_of_ours_makes_laravels_worker_leave_in_order(peer, control, queue):
    with peer.staying("work", sleep=0.05) as worker:
        queue.push(REPORT, {"id": 7})
        eventually(lambda: runs(peer))

        control.restart()

        assert ('{"status":0}\n', 0) == (worker.communicate(timeout=60)[0], worker.returncode)


@pytest.mark.fault("F65")
def test_a_worker_of_laravels_that_a_job_timed_out_leaves_it_to_us(peer, queue, store, server):
    queue.push(REPORT, {"sleep": 20}, options={"maxTries": 3, "timeout": 1})
    # Laravel's --once sets no alarm.
    assert {"status": 128 + signal.SIGKILL} == peer.run("work", max_jobs=1)

    store.clock = repr(server.time()[0] + 92.0)

    assert 2 == reserved(store)[1].attempts
