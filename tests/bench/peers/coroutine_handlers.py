"""What this queue's workers import to run many jobs at once: the jobs as coroutines."""

from __future__ import annotations

from queuepool import job
from tests.bench.peers import jobs

for _name in jobs.JOBS:
    job(_name, tries=0)(jobs.coroutine(_name))
