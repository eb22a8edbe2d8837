"""What a no-op costs where the code has jobs with limits, and where it has none: in instructions, by valgrind."""

from __future__ import annotations

import os

from tests.bench.instructions import of_job
from tests.bench.rig import redis_rig
from tests.bench.words import say


def instructions() -> None:
    """Three lines: no limits in the code; limits in that of another job; and such a job has run before."""
    os.environ["TRAIL"] = os.devnull
    with redis_rig() as rig:
        none = of_job(rig, "no-op", "--quiet")
    with redis_rig("tests.bench.limits.jobs") as rig:
        beside = of_job(rig, "no-op", "--quiet")
        after = of_job(rig, "no-op", "--quiet", first=["held"])
    say(f"  limits in the code of another job: {beside / none - 1:+.2%}; after such a job: {after / none - 1:+.2%}")
