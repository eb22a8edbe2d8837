"""A mutant of a stop beside orphans, the workers of a killed master, whom a steward must look after."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, Plant

#: jobs that outlive a start, a stop and a lease; another pool takes those that nobody has any more
_ORPHANS = replace(
    PEACE, only=("stop_beside_orphans",), workers=2, remote=2, preload=False, rate=10.0, backlog=2, bulk=2,
    naps=1.0, nap=(8.0, 8.0), long=8.0, steps=0.0, refused=0.0, retry_after=1.0, seconds=6.0, drain=25.0,
)  # fmt: skip

OF_STOPS = {
    "stop that does not wait for orphans": Plant(
        "I4 overlap",
        (("master/shutdown.py", "        return self._header.orphans > 0\n", "        return False\n"),),
        _ORPHANS,
    ),
}
