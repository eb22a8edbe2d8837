"""What a worker holds, in the moment in which the steward takes it back, its queues change, or it leaves."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from samples import payload

from queuepool.settings import ConnectionSettings

# In a process of its own, as its alarm is the process's.
_SUPPLY = """
import sys, time
from pathlib import Path
from queuepool.board import Board, Role
from queuepool.build import Stores
from queuepool.chores.unheard import Unheard
from queuepool.desk import Desk
from queuepool.errors import StoreError
from queuepool.events import JobQuarantined, JobReserving
from queuepool.listeners import Listeners
from queuepool.membership import Membership
from queuepool.outage import Outage
from queuepool.pace import Pace
from queuepool.settings import ConnectionSettings, PoolSettings
from queuepool.settle import Settler
from queuepool.signals import Alarm, Attention
from queuepool.supply import Supply

path, url, prefix, ahead = sys.argv[1:]
connection = ConnectionSettings(url=url, prefix=prefix, embedded=url.startswith("sqlite"))
stores, listeners, attention = Stores(connection), Listeners(), Attention()
store, outage = stores.queue, Outage(attention, listeners, telling=False)
settler = Settler(store, outage, listeners, "main")
board = Board.create(Path(path) / "board", capacity=1)
slot = board.slots[0]
slot.begin(Role.WORKER, 1, 1)
desk = Desk(slot, "default", Alarm(board.new_trace(slot)), attention, stall=30.0)
membership = Membership(connection, ["first", "default"], store, settler, outage, slot)
membership.join()
pool, pace = PoolSettings(connection=connection), Pace(int(ahead))
supply = Supply(pool, store, settler, desk, outage, listeners, pace, membership)
"""

_WANTED_BACK = """
old, asked = membership.tag, time.monotonic()

def want_back(event):
    slot.wanted_back = 0  # the steward has just found the worker at its first turn's job, asking for the next

listeners.add(JobReserving, want_back)
lease = supply.next_job(["default"])
if not lease:
    tags = [supply.next_job(["default"]) or membership.tag for _ in range(4)]
    print(len({old, *tags}))
    sys.exit()
Unheard(store, settler, ["default"], 90.0).take(old, asked, [])  # and now it takes what it has found
print(store.sizes("default").ready, store.delete([lease]), store.sizes("default").ready)
"""

# The first of two is done when their queue is not served any more: a reserve can settle only what it serves.
_SERVES_ANOTHER = """
supply.is_done(supply.next_job(["first", "default"]))
desk.succeeded()
print(supply.next_job(["default"]).queue, store.sizes("first").ready, store.sizes("first").reserved)
"""

_JOINED = """
print(membership.tag > 0, slot.tag == membership.tag, membership.is_spent)
"""

# As if it had been away for so long that its tag may be another worker's by now.
_WAS_AWAY = """
old = membership.tag
membership.used_at -= 1000.0
desk.asking()
membership.renew([])
print(membership.tag != old, membership.is_spent, *(len(store.reserve(["default"], tag, 1).leases) for tag in (old, 1)))
"""

_LEAVES_ASKING = """
tag = membership.tag
supply.reclaim()
kept = membership.tag == tag
desk.asking()
store.reserve(["default"], tag, 1)
supply.reclaim()
print(kept, slot.asked, store.sizes("default").ready)
"""

# Of four, two are done and two on their way.
_LETS_GO_OF_WHAT_IT_ASKED = """
for _ in range(2):
    supply.is_done(supply.next_job(["default"]))
    desk.succeeded()
supply.let_go()
print(slot.asked, store.sizes("default").ready, store.sizes("default").reserved)
"""

_ASKED_FOR_NO_JOB = """
listeners.add(JobQuarantined, lambda event: print(event.queue))
for _ in range(2):
    supply.is_done(supply.next_job(["default"]))
    desk.succeeded()
supply.let_go()
supply.next_job(["default"])
"""

# Of what is asked for ahead nothing is there.
_ASKED_IN_VAIN = """
tag = membership.tag
for _ in range(2):
    supply.is_done(supply.next_job(["default"]))
    desk.succeeded()
print(supply.next_job(["default"]), membership.tag == tag, slot.asked)
"""

# A reserve under the old tag is committed when its worker has another one.
_COMMITTED_LATE = """
old = membership.tag
desk.asking()
membership.renew([])
store.reserve(["default"], old, 1)
membership.look_again([])
print(store.sizes("default").reserved)
end = time.monotonic() + 2 * store.commits_late
while store.sizes("default").reserved and time.monotonic() < end:
    membership.look_again([])
print(store.sizes("default").ready)
"""

# It may have asked for so many that they found no room on the board.
_ASKS_ANEW = """
pace.wanted = 64
for _ in range(64):
    pace.took(0.0, 1)
desk.asking()
supply.next_job(["default"])
print(store.sizes("default").reserved)
"""

# Where a large receipt would be written down, beside the board, something else lies.
_NO_ROOM = """
for hand in range(2):
    Path(path, f"board.0.{hand}.0").mkdir()
supply.is_done(supply.next_job(["default"]))
desk.succeeded()
try:
    supply.next_job(["default"])
except StoreError:
    print(supply.next_held())
"""

_LEAVES = """
supply.is_done(supply.next_job(["default"]))
desk.succeeded()
supply.let_go()
desk.leave()
print(store.sizes("default").total, slot.holds_nothing)
"""


def test_what_a_direct_reserve_brought_meanwhile_is_its_workers_whatever_the_steward_takes(
    store: Any, connection: ConnectionSettings, tmp_path
):
    store.push("default", [b'{"uuid":"a","id":"a","job":"do","data":[],"attempts":0}'])

    # None was given back, and it is the worker's own to delete.
    assert "0 [True] 0\n" == said_by_a_worker(_WANTED_BACK, connection, tmp_path)


def test_a_worker_of_which_nothing_more_is_wanted_back_keeps_its_tag(store: Any, connection, tmp_path):
    assert "2\n" == said_by_a_worker(_WANTED_BACK, connection, tmp_path)


def test_what_is_held_of_a_queue_that_is_served_no_more_is_settled_or_goes_back(store: Any, connection, tmp_path):
    store.push("first", [payload("a"), payload("b")])
    store.push("default", [payload("c")])

    assert "default 1 0\n" == said_by_a_worker(_SERVES_ANOTHER, connection, tmp_path, ahead=2)


def test_a_worker_that_has_let_go_of_what_is_done_leaves_nothing_to_be_settled(store: Any, connection, tmp_path):
    store.push("default", [payload("a")])

    assert "0 True\n" == said_by_a_worker(_LEAVES, connection, tmp_path)


def test_a_worker_has_a_tag_of_its_own_from_the_beginning_and_shows_it(store: Any, connection, tmp_path):
    assert "True True False\n" == said_by_a_worker(_JOINED, connection, tmp_path)


def test_a_worker_that_was_away_for_long_retires_no_tag(store: Any, connection, tmp_path):
    store.push("default", [payload("a"), payload("b")])

    assert "True False 1 1\n" == said_by_a_worker(_WAS_AWAY, connection, tmp_path)


def test_a_worker_that_leaves_without_its_answer_gives_back_what_it_asked_for_and_only_then_its_tag(
    store: Any, connection, tmp_path
):
    store.push("default", [payload("a")])

    assert "True 0.0 1\n" == said_by_a_worker(_LEAVES_ASKING, connection, tmp_path)


def test_what_was_put_back_of_what_was_asked_for_is_known(store: Any, connection, tmp_path):
    store.push("default", [payload(name) for name in "abcd"])

    assert "0.0 2 0\n" == said_by_a_worker(_LETS_GO_OF_WHAT_IT_ASKED, connection, tmp_path, ahead=2)


@pytest.mark.parametrize("connection", ["redis"], indirect=True)  # no other is asked ahead
def test_what_was_asked_for_and_is_no_job_is_told_also_when_the_rest_goes_back(store: Any, connection, tmp_path):
    store.push("default", [payload("a"), payload("b"), b"nonsense"])

    assert "default\n" == said_by_a_worker(_ASKED_FOR_NO_JOB, connection, tmp_path, ahead=2)


def test_a_worker_that_asked_ahead_in_vain_keeps_its_tag(store: Any, connection, tmp_path):
    store.push("default", [payload("a"), payload("b")])

    assert "None True 0.0\n" == said_by_a_worker(_ASKED_IN_VAIN, connection, tmp_path, ahead=2)


@pytest.mark.parametrize("connection", ["postgres"], indirect=True)  # no other commits what was given up
def test_what_was_reserved_late_under_an_old_tag_goes_back_when_no_more_can_come(store: Any, connection, tmp_path):
    store.push("default", [payload("a")])

    assert "1\n1\n" == said_by_a_worker(_COMMITTED_LATE, connection, tmp_path)


def test_a_worker_that_has_not_heard_of_what_it_asked_for_asks_for_one_job(store: Any, connection, tmp_path):
    store.push("default", [payload(name) for name in "abc"])

    assert "1\n" == said_by_a_worker(_ASKS_ANEW, connection, tmp_path, ahead=0)


def test_a_job_that_cannot_be_written_down_is_not_begun(store: Any, connection, tmp_path):
    store.push("default", [payload("a"), payload("b", data="x" * 200_000)])

    assert "None\n" == said_by_a_worker(_NO_ROOM, connection, tmp_path)


def said_by_a_worker(does: str, connection: ConnectionSettings, tmp_path, ahead: int = 1) -> str:
    command = [sys.executable, "-c", _SUPPLY + does, str(tmp_path), connection.url, connection.prefix, str(ahead)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
