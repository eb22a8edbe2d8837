"""A mutant of a stop beside orphans, the workers of a killed master, whom a steward must look after."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, Plant

#: jobs that outlive a start, a stop and a lease; so few that workers of the other pool are free to take what nobody has
#: any more
_ORPHANS = replace(
    PEACE, only=("stop_beside_orphans",), workers=4, remote=4, preload=False, rate=10.0, backlog=2, bulk=2,
    naps=0.6, nap=(14.0, 14.0), long=14.0, steps=0.0, refused=0.0, retry_after=1.0, seconds=9.0, drain=40.0,
)  # fmt: skip

OF_STOPS = {
    "stop that does not wait for orphans": Plant(
        "I4 overlap",
        (("master/shutdown.py", "        return self._header.orphans > 0\n", "        return False\n"),),
        _ORPHANS,
    ),
}
