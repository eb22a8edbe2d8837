"""Jobs with limits, in a module of their own: other benches' pools know none."""

from __future__ import annotations

import time

from queuepool import Concurrency, job
from tests.bench.app import note


@job("held", limits=[Concurrency("bench", 1000)])
def held(at: float) -> None:
    """Always finds a place."""
    note(at)


@job("single", limits=[Concurrency("single", 1)])
def single(at: float) -> None:
    note(at)


@job("shared", limits=[Concurrency("tenants", 4, fair="{tenant}")])
def shared(tenant: int) -> None:
    note(float(tenant))
    time.sleep(0.01)
