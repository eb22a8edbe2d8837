"""DBOS: a workflow that enqueues a workflow for each number, and waits for what they return.

``python -m tests.bench.peers.with_dbos SIZE ROUNDS``, in one process, as its documentation has it; prints the seconds
of each round.
"""

from __future__ import annotations

import os
import sys
import time

from dbos import DBOS, DBOSConfig, WorkflowHandle

_QUEUE = "numbers"


@DBOS.workflow()
def number(n: int) -> int:
    return n


@DBOS.workflow()
def total(size: int) -> int:
    handles: list[WorkflowHandle[int]] = [DBOS.enqueue_workflow(_QUEUE, number, n) for n in range(size)]
    return sum(handle.get_result() for handle in handles)


def main(size: int, rounds: int) -> None:
    config: DBOSConfig = {"name": "joins", "system_database_url": os.environ["POSTGRES"], "log_level": "ERROR"}
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(_QUEUE, polling_interval_sec=0.01)
    for _ in range(rounds):
        began = time.monotonic()
        assert DBOS.start_workflow(total, size).get_result() == sum(range(size))
        print(time.monotonic() - began, flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
