"""A worker has one tag from its start, and gives back what was reserved late under an old one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.prefetch_process import said_by_a_worker
from tests.support.samples import new_jobs, payload

_JOINED = """
print(membership.tag > 0, slot.tag == membership.tag, membership.is_spent)
"""

# As if it had been away for so long that its tag may be another worker's by now.
_WAS_AWAY = """
old = membership.tag
membership.used_at -= 1000.0
batch.requesting()
membership.renew([])
print(membership.tag != old, membership.is_spent, *(len(store.reserve(["default"], tag, 1).leases) for tag in (old, 1)))
"""

# A reserve under the old tag is committed when its worker has another one. It is not time for the first look, however
# late a crowded machine makes it.
_COMMITTED_LATE = """
old = membership.tag
batch.requesting()
membership.renew([])
[(at, tag)] = membership._late
membership._late[0] = at + 3600.0, tag
store.reserve(["default"], old, 1)
membership.look_again([])
print(store.sizes("default").reserved)
membership._late[0] = at, tag
end = time.monotonic() + 30
while store.sizes("default").reserved and time.monotonic() < end:
    store.wait(["default"], 0.1)
    membership.look_again([])
print(store.sizes("default").ready)
"""

# Of what is asked for ahead nothing is there.
_ASKED_IN_VAIN = """
tag = membership.tag
for _ in range(2):
    is_done(prefetch.next_job(["default"]))
print(prefetch.next_job(["default"]), membership.tag == tag, slot.reserve_sent_at)
"""

_LEAVES_ASKING = """
tag = membership.tag
prefetch.reclaim()
kept = membership.tag == tag
batch.requesting()
store.reserve(["default"], tag, 1)
prefetch.reclaim()
print(kept, slot.reserve_sent_at, store.sizes("default").ready)
"""


def test_a_worker_has_a_tag_of_its_own_from_the_beginning_and_shows_it(store: Any, connection, tmp_path):
    assert "True True False\n" == said_by_a_worker(_JOINED, connection, tmp_path)


def test_a_worker_that_was_away_for_long_retires_no_tag(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a"), payload("b")))

    assert "True False 1 1\n" == said_by_a_worker(_WAS_AWAY, connection, tmp_path)


@pytest.mark.parametrize("connection", ["postgres"], indirect=True)  # no other commits what was given up
def test_what_was_reserved_late_under_an_old_tag_goes_back_when_no_more_can_come(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a")))

    assert "1\n1\n" == said_by_a_worker(_COMMITTED_LATE, connection, tmp_path)


def test_a_worker_that_asked_ahead_in_vain_keeps_its_tag(store: Any, connection, tmp_path):
    store.push("default", new_jobs(payload("a"), payload("b")))

    assert "None True 0.0\n" == said_by_a_worker(_ASKED_IN_VAIN, connection, tmp_path, ahead=2)


def test_a_worker_that_leaves_without_its_answer_gives_back_what_it_asked_for_and_only_then_its_tag(
    store: Any, connection, tmp_path
):
    store.push("default", new_jobs(payload("a")))

    assert "True 0.0 1\n" == said_by_a_worker(_LEAVES_ASKING, connection, tmp_path)
