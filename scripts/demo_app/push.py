"""Push the demo's jobs from Python, and note each one's id."""

from __future__ import annotations

import sys
import time

import jobs
from diary import note

from queuepool import connect

#: seconds until the delayed job is due
DELAY = 1.5


def pushed(words: str, *ids: str, **facts: object) -> None:
    for one in ids:
        note("pushed", id=one, **facts)
    sys.stdout.write(f"{len(ids)} x {words}\n")


pushed("jobs.hang: hangs in C code, timeout 1 s", jobs.hang.dispatch())
pushed("jobs.nap: sleeps for three seconds", jobs.nap.dispatch(3.0))
pushed("jobs.greet: a plain one", *jobs.greet.bulk([{"name": f"guest {n}"} for n in range(1, 7)]))
pushed("jobs.add: an async one", jobs.add.dispatch(20, right=22))
pushed("jobs.flaky: fails twice, then succeeds", jobs.flaky.dispatch())
due = time.time() + DELAY
pushed(f"jobs.greet, due in {DELAY} s", jobs.greet.later(DELAY, "late guest"), due=due)
pushed("jobs.crash: segfaults", jobs.crash.dispatch())
queue = connect()
pushed("no.such.job: a name that nobody has registered", queue.push("no.such.job", {"to": "nobody"}))
queue.push_raw(b'{"this": "is no job')
sys.stdout.write("1 x bytes that are no job at all\n")
