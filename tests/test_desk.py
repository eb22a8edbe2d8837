"""What a worker's slot says of its job, for the master and the steward."""

from __future__ import annotations

import time

import pytest

from queuepool.board import Board, Killed, Role
from queuepool.children import overdue
from queuepool.desk import Desk
from queuepool.payload import decode
from queuepool.signals import Alarm, Attention
from queuepool.stores.base import Lease
from queuepool.verdict import Policy

RECEIPT = b'{"uuid":"a","id":"a","job":"do","data":[],"attempts":1}'


@pytest.fixture
def desk(tmp_path):
    board = Board.create(tmp_path / "board", capacity=1)
    board.slots[0].begin(Role.WORKER, 1, 1)
    with (tmp_path / "trace").open("wb", buffering=0) as trace:
        alarm = Alarm(trace)
        yield Desk(board.slots[0], "default", alarm, Attention(), stall=30.0)
        alarm.disarm()


def killed_at(desk, seconds):
    return overdue(desk.slot, time.monotonic() + seconds, grace=1000.0)


def test_a_running_jobs_lease_is_held_and_a_finished_ones_costs_nobody_a_life(desk):
    desk.holds([Lease("default", RECEIPT)], lease_end=time.monotonic() + 90.0)
    desk.begins(decode(RECEIPT), "default", Policy(), timeout=0.0, known=True)
    assert Killed.LEASE == killed_at(desk, 90.0)

    desk.ended()  # its release may be carried out, and go unheard: then the lease is found gone

    assert None is killed_at(desk, 90.0)
    assert not desk.slot.hand.is_empty
