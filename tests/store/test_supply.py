"""A worker that asks directly in the moment in which the steward takes back what waits behind its last job."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from queuepool.settings import ConnectionSettings

# In a process of its own, as its alarm is the process's.
_WORKER = """
import sys, time
from pathlib import Path
from queuepool.board import Board, Role
from queuepool.build import Stores
from queuepool.chores.unheard import Unheard
from queuepool.desk import Desk
from queuepool.events import JobReserving
from queuepool.listeners import Listeners
from queuepool.membership import Membership
from queuepool.outage import Outage
from queuepool.pace import Pace
from queuepool.settings import ConnectionSettings, PoolSettings
from queuepool.settle import Settler
from queuepool.signals import Alarm, Attention
from queuepool.supply import Supply

path, url, prefix = sys.argv[1:]
connection = ConnectionSettings(url=url, prefix=prefix, embedded=url.startswith("sqlite"))
stores, listeners, attention = Stores(connection), Listeners(), Attention()
store, outage = stores.queue, Outage(attention, listeners, telling=False)
settler = Settler(store, outage, listeners, "main")
board = Board.create(Path(path) / "board", capacity=1)
slot = board.slots[0]
slot.begin(Role.WORKER, 1, 1)
desk = Desk(slot, "default", Alarm(board.new_trace(slot)), attention, stall=30.0)
membership = Membership(connection, ["default"], store, settler, outage, slot)
membership.join()
supply = Supply(PoolSettings(connection=connection), store, settler, desk, outage, listeners, Pace(1), membership)
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


def test_what_a_direct_reserve_brought_meanwhile_is_its_workers_whatever_the_steward_takes(
    store: Any, connection: ConnectionSettings, tmp_path
):
    store.push("default", [b'{"uuid":"a","id":"a","job":"do","data":[],"attempts":0}'])

    # None was given back, and it is the worker's own to delete.
    assert "0 [True] 0\n" == said_by_a_worker(connection, tmp_path)


def test_a_worker_of_which_nothing_more_is_wanted_back_keeps_its_tag(store: Any, connection, tmp_path):
    assert "2\n" == said_by_a_worker(connection, tmp_path)


def said_by_a_worker(connection: ConnectionSettings, tmp_path) -> str:
    command = [sys.executable, "-c", _WORKER, str(tmp_path), connection.url, connection.prefix]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
