"""How far a pool has come in replacing its workers."""

from __future__ import annotations

from queuepool.board.overview import PoolOverview, ProcessRow
from queuepool.operating.rollouts import Rollout
from tests.support.each import each

BROKEN = "the new code does not become ready: no app"


def worker(number: int, generation: int, state: str) -> ProcessRow:
    return ProcessRow(role="worker", number=number, generation=generation, state=state)


@each(
    ("facts", "processes", "newest", "far"),
    [
        ({}, [worker(1, 2, "idle"), worker(2, 2, "busy")], 2, (True, 2, "")),
        ({}, [worker(1, 2, "idle"), worker(2, 2, "paused"), worker(2, 1, "busy")], 2, (True, 2, "")),
        ({}, [worker(1, 2, "idle"), worker(2, 2, "idle"), worker(2, 1, "idle")], 2, (False, 2, "")),
        ({}, [worker(1, 2, "idle"), worker(2, 2, "starting")], 2, (False, 1, "")),
        ({}, [worker(1, 2, "idle"), worker(1, 2, "draining")], 2, (False, 1, "")),
        ({}, [worker(1, 2, "idle"), worker(2, 2, "dead")], 2, (False, 1, "")),
        ({}, [worker(1, 2, "idle"), worker(2, 2, "idle")], 3, (False, 0, "")),  # nobody has begun yet
        ({"workers": 0}, [], 3, (False, 0, "")),
        ({"workers": 0}, [], 2, (True, 0, "")),
        ({"boot_problem": "no app"}, [worker(1, 1, "idle"), worker(2, 1, "idle")], 2, (False, 0, BROKEN)),
        ({"boot_problem": "no app"}, [worker(1, 2, "idle"), worker(2, 2, "idle")], 3, (False, 0, "")),
        ({"state": "draining"}, [worker(1, 1, "busy")], 2, (False, 0, "it is being stopped")),
    ],
)
def test_the_new_code_works_once_no_other_takes_a_job(facts, processes, newest, far):
    pool = PoolOverview(**{"state": "running", "workers": 2, "generation": 2, "processes": processes, **facts})
    found = Rollout.of(pool, newest)

    assert far == (found.is_done, int(found.words.split()[0]), found.problem)
    assert f" of {pool.workers} workers run the new code" in found.words
