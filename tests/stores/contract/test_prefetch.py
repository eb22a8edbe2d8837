"""A worker's jobs while the steward takes them back, its queues change, or it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from tests.support.prefetch_process import said_by_a_worker
from tests.support.samples import new_jobs, payload

_MORE = pytest.mark.thorough("what a worker does is the same on each database")
either_kind = pytest.mark.parametrize(
    "connection",
    ["redis", "sqlite", pytest.param("postgres", marks=_MORE), pytest.param("mariadb", marks=_MORE)],
    indirect=True,
)

_WANTED_BACK = """
old, asked = membership.tag, time.monotonic()

def want_back(event):
    slot.wanted_back = 0  # the steward has just found the worker at its first turn's job, asking for the next

listeners.add(JobReserving, want_back)
lease = prefetch.next_job(["default"])
if not lease:
    tags = [prefetch.next_job(["default"]) or membership.tag for _ in range(4)]
    print(len({old, *tags}))
    sys.exit()
LostReplies(store, settler, ["default"], 90.0).take(old, asked, [])  # and now it takes what it has found
print(store.sizes("default").ready, store.delete([lease]), store.sizes("default").ready)
"""

# The first of two is done when their queue is not served any more: a reserve can settle only what it serves.
_SERVES_ANOTHER = """
is_done(prefetch.next_job(["first", "default"]))
print(prefetch.next_job(["default"]).queue, store.sizes("first").ready, store.sizes("first").reserved)
"""


# Of four, two are done and two on their way.
_LETS_GO_OF_WHAT_IT_ASKED = """
for _ in range(2):
    is_done(prefetch.next_job(["default"]))
prefetch.let_go()
print(slot.reserve_sent_at, store.sizes("default").ready, store.sizes("default").reserved)
"""

_ASKED_FOR_NO_JOB = """
listeners.add(JobQuarantined, lambda event: print(event.queue))
for _ in range(2):
    is_done(prefetch.next_job(["default"]))
prefetch.let_go()
prefetch.next_job(["default"])
"""


# It may have asked for so many that they found no room on the board.
_ASKS_ANEW = """
size.wanted = 64
for _ in range(64):
    size.took(0.0, 1)
batch.requesting()
prefetch.next_job(["default"])
print(store.sizes("default").reserved)
"""

# Where a large receipt would be written down, beside the board, something else lies.
_NO_ROOM = """
for hand in range(2):
    Path(path, f"board.0.{hand}.0").mkdir()
is_done(prefetch.next_job(["default"]))
try:
    prefetch.next_job(["default"])
except StoreError:
    print(prefetch.next_held())
"""

_LEAVES = """
is_done(prefetch.next_job(["default"]))
prefetch.let_go()
slot_writer.leave()
print(store.sizes("default").total, slot.holds_nothing)
"""

# The steward has settled what was done, while the worker's request to do so is on its way.
_SETTLED_MEANWHILE = """
lease = prefetch.next_job(["default"])
is_done(lease)

def settle(event):
    slot.wanted_back = slot.hand_number
    store.delete([lease])

listeners.add(JobReserving, settle)
listeners.add(LeaseLost, lambda event: print("lost", event.job.id))
prefetch.next_job(["default"])
print(store.sizes("default").total)
"""

_FINDS_NO_JOB = """
listeners.add(JobQuarantined, lambda event: print(event.queue))
prefetch.next_job(["default"])
"""


# A signal ends the wait: what the server does with it afterwards is refused, and what it has done goes back.
_INTERRUPTED = """
def interrupt():
    attention.stop = True

tag = membership.tag
prefetch.next_job(["default"])
prefetch.await_jobs(["default"], 5.0, interrupt)
print(membership.tag != tag, slot.reserve_sent_at, store.sizes("default").ready, store.sizes("default").reserved)
"""

# A job is done and the last one: it is deleted before the next one has come.
_WAITS_AT_ONCE = """
is_done(prefetch.next_job(["default"]))
print(prefetch.has_none_left(["default"]), prefetch.has_none_left(["first", "default"]))

def look():
    print(bool(slot.reserve_sent_at), len(batch.done), slot.hand.is_empty)

prefetch.await_jobs(["default"], 0.01, look)
print(slot.reserve_sent_at, len(batch.done), slot.hand.is_empty, store.sizes("default").total)
"""

# The steward has retired its tag meanwhile.
_RETIRED_WHILE_IT_WAITED = """
tag = membership.tag
is_done(prefetch.next_job(["default"]))
Stores(connection).queue.retire(tag)
prefetch.await_jobs(["default"], 5.0, lambda: None)
print(membership.tag != tag, len(batch.done), prefetch.next_job(["default"]), store.sizes("default").total)
"""


@either_kind
def test_what_a_direct_reserve_brought_meanwhile_is_its_workers_whatever_the_steward_takes(
    store: Any, connection: ConnectionSettings, tmp_path
):
    store.push("default", new_jobs(b'{"uuid":"a","id":"a","job":"do","data":[],"attempts":0}'))

    # None was given back, and it is the worker's own to delete.
    assert "0 [True] 0\n" == said_by_a_worker(_WANTED_BACK, connection, tmp_path)


@either_kind
def test_a_worker_of_which_nothing_more_is_wanted_back_keeps_its_tag(store: Any, connection, tmp_path):
    assert "2\n" == said_by_a_worker(_WANTED_BACK, connection, tmp_path)


@either_kind
def test_what_is_held_of_a_queue_that_is_served_no_more_is_settled_or_goes_back(store: Any, connection, tmp_path):
    store.push("first", new_jobs(payload("a"), payload("b")))
    store.push("default", new_jobs(payload("c")))

    assert "default 1 0\n" == said_by_a_worker(_SERVES_ANOTHER, connection, tmp_path, ahead=2)


@either_kind
def test_a_worker_that_has_let_go_of_what_is_done_leaves_nothing_to_be_settled(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a")))

    assert "0 True\n" == said_by_a_worker(_LEAVES, connection, tmp_path)


@either_kind
def test_what_was_put_back_of_what_was_asked_for_is_known(store: Any, connection, tmp_path):
    store.push("default", new_jobs(*(payload(name) for name in "abcd")))

    assert "0.0 2 0\n" == said_by_a_worker(_LETS_GO_OF_WHAT_IT_ASKED, connection, tmp_path, ahead=2)


@pytest.mark.parametrize("connection", ["redis"], indirect=True)  # no other is asked ahead
def test_what_was_asked_for_and_is_no_job_is_told_also_when_the_rest_goes_back(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a"), payload("b"), b"nonsense"))

    assert "default\n" == said_by_a_worker(_ASKED_FOR_NO_JOB, connection, tmp_path, ahead=2)


@either_kind
def test_a_worker_that_has_not_heard_of_what_it_asked_for_asks_for_one_job(store: Any, connection, tmp_path):
    store.push("default", new_jobs(*(payload(name) for name in "abc")))

    assert "1\n" == said_by_a_worker(_ASKS_ANEW, connection, tmp_path, ahead=0)


@either_kind
def test_a_job_that_cannot_be_written_down_is_not_begun(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a"), payload("b", data="x" * 200_000)))

    assert "None\n" == said_by_a_worker(_NO_ROOM, connection, tmp_path)


@either_kind
def test_what_the_steward_has_settled_meanwhile_is_told_as_lost_by_nobody(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a")))

    assert "0\n" == said_by_a_worker(_SETTLED_MEANWHILE, connection, tmp_path)


@pytest.mark.parametrize("connection", ["redis"], indirect=True)  # in a database the worker judges what it reads
def test_what_is_no_job_is_told_when_it_was_asked_for_directly(store: Any, connection, tmp_path):
    store.push("default", new_jobs(b"nonsense"))

    assert "default\n" == said_by_a_worker(_FINDS_NO_JOB, connection, tmp_path)


only_redis = pytest.mark.parametrize("connection", ["redis"], indirect=True)  # no other reserves while it waits


@only_redis
def test_a_worker_that_leaves_its_wait_gives_back_what_it_may_have_got_and_takes_another_tag(
    store: Any, connection, tmp_path
):
    assert "True 0.0 0 0\n" == said_by_a_worker(_INTERRUPTED, connection, tmp_path)


@only_redis
def test_what_is_done_is_deleted_when_the_wait_begins(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a")))

    said = "True False\nTrue 1 False\n0.0 0 True 0\n"
    assert said == said_by_a_worker(_WAITS_AT_ONCE, connection, tmp_path)


@only_redis
def test_a_worker_whose_tag_was_retired_waits_no_longer_and_deletes_what_is_done_under_another(
    store: Any, connection, tmp_path
):
    store.push("default", new_jobs(payload("a")))

    assert "True 1 None 0\n" == said_by_a_worker(_RETIRED_WHILE_IT_WAITED, connection, tmp_path)
