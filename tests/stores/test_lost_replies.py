"""Jobs of a reserve without a reply go back, also if the request is carried out after the worker was settled."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import takewhile

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import TagRetired
from queuepool.events import Event, JobGivenBack
from queuepool.events.listeners import Listeners
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.steward.leases import LostReplies
from queuepool.stores.contract import UNDER_WAY, QueueStore
from queuepool.stores.redis.scripts import script
from queuepool.unix.signals import WorkerSignals
from tests.support.drivers import opened
from tests.support.samples import new_jobs

TAG, OTHER = 7, 8
JOBS = [b'{"uuid":"%s","id":"%s","attempts":0}' % (name, name) for name in (b"a", b"b")]


@pytest.fixture
def store(stores):
    return stores.queue


@pytest.fixture
def told():
    """The events that are told."""
    return []


def chore(store: QueueStore, told: list[Event]) -> LostReplies:
    listeners = Listeners()
    listeners.add(JobGivenBack, told.append)
    settler = Settler(
        store, Outage(WorkerSignals(), listeners, announces=False), listeners, ConnectionSettings(name="main")
    )
    return LostReplies(store, settler, ["default"], retry_after=90.0)


@pytest.fixture
def lost_replies(store, told):
    return chore(store, told)


@pytest.fixture
def table(postgres_url) -> Iterator[QueueStore]:
    """A store whose server may commit what its client has given up."""
    with opened(ConnectionSettings(url=postgres_url)) as stores:
        yield stores.queue


@pytest.mark.fault("F53")
def test_what_was_reserved_before_the_burial_is_given_back_at_once_and_what_is_known_is_not(store, lost_replies):
    store.push("default", new_jobs(*JOBS))
    asked = time.monotonic()
    (known,) = store.reserve(["default"], TAG, 1).leases
    store.reserve(["default"], TAG, 1)

    lost_replies.take(TAG, asked, [known])

    assert (1, 1) == (store.sizes("default").ready, store.sizes("default").reserved)
    assert JOBS[1] == store.sizes("default").oldest


def test_a_hand_that_nobody_heard_of_goes_back_in_its_order(store, lost_replies):
    jobs = [b'{"uuid":"%d","id":"%d","attempts":0}' % (number, number) for number in range(64, 0, -1)]
    store.push("default", new_jobs(*jobs))
    asked = time.monotonic()
    store.reserve(["default"], TAG, len(jobs))

    lost_replies.take(TAG, asked, [])

    again = store.reserve(["default"], OTHER, len(jobs)).leases
    assert [json.loads(job)["id"] for job in jobs] == [json.loads(lease.receipt)["id"] for lease in again]


@pytest.mark.fault("F53")
def test_a_late_request_reserves_nothing_after_the_burial(store, lost_replies):
    lost_replies.take(TAG, time.monotonic(), [])
    store.push("default", new_jobs(*JOBS))

    with pytest.raises(TagRetired):
        store.reserve(["default"], TAG, 1)
    assert (2, 0) == (store.sizes("default").ready, store.sizes("default").reserved)


@pytest.mark.fault("F53")
def test_the_tag_is_retired_before_it_is_looked_for(store, lost_replies, server):
    """Or what is carried out in between would be missed."""
    names = {script(name)[1]: name for name in ("retire", "reclaim")}
    with server.monitor() as heard:
        lost_replies.take(TAG, time.monotonic(), [])
        store.client.command("ECHO", "over")
        said = list(takewhile(lambda words: words[0] != "ECHO", (one["command"].split() for one in heard.listen())))

    assert ["retire", "reclaim"] == [names[words[1]] for words in said if words[0] == "EVALSHA" and words[1] in names]


@pytest.mark.fault("F53")
def test_what_is_committed_after_the_burial_is_given_back_when_nothing_can_be_committed_any_more(table, told):
    lost_replies, now = chore(table, told), time.monotonic()
    lost_replies.take(TAG, now, [])
    table.push("default", new_jobs(*JOBS))
    table.reserve(["default"], TAG, 1)

    lost_replies.look_again(now)
    assert 1 == table.sizes("default").reserved
    lost_replies.look_again(time.monotonic() + table.commits_late)

    assert (2, 0) == (table.sizes("default").ready, table.sizes("default").reserved)
    assert JOBS[0] == table.sizes("default").oldest
    assert ["a"] == [event.job.id for event in told]


@pytest.mark.fault("F53")
def test_a_second_look_spares_what_is_known_and_what_is_of_others(table, told):
    lost_replies = chore(table, told)
    table.push("default", new_jobs(*JOBS))
    (known,) = table.reserve(["default"], TAG, 1).leases
    lost_replies.take(TAG, time.monotonic(), [known])
    table.reserve(["default"], OTHER, 1)

    lost_replies.look_again(time.monotonic() + table.commits_late)

    assert (0, 2) == (table.sizes("default").ready, table.sizes("default").reserved)


def test_a_tag_that_may_be_another_workers_by_now_is_left_alone(store, lost_replies):
    store.push("default", new_jobs(*JOBS))
    store.reserve(["default"], TAG, 1)

    lost_replies.take(TAG, time.monotonic() - 90.0 - UNDER_WAY, [])

    assert 1 == store.sizes("default").reserved
    assert 1 == len(store.reserve(["default"], TAG, 1).leases)


@pytest.mark.fault("F53")
def test_a_look_that_is_held_up_itself_still_finds_what_was_reserved(store, lost_replies, monkeypatch):
    store.push("default", new_jobs(*JOBS[:1]))
    asked = time.monotonic()
    store.reserve(["default"], TAG, 1)
    carried_out = 30.0
    monkeypatch.setattr(store, "clock", str(store.now() + carried_out))

    lost_replies.take(TAG, asked, [])

    assert 1 == store.sizes("default").ready
