"""Jobs meet Python's garbage collector as Python sets it, though commands collect rarely while they import."""

from __future__ import annotations

import gc

import pytest

from tests.support.eventually import eventually

pytestmark = pytest.mark.real_start

MODULE = """
import gc
from queuepool import job
from tests.support.poolapp import note
at_import = list(gc.get_threshold())

@job("look")
def look(): note(at_import=at_import, in_a_job=list(gc.get_threshold()), enabled=gc.isenabled())
"""


@pytest.fixture
def pushed(site):
    (site.path / "own.py").write_text(MODULE)
    site.queue.push("look")
    return site


def in_a_pool(site, *flags: str) -> None:
    with site.pool("--workers", "1", *flags):
        eventually(lambda: site.trail())


WAYS = {
    "a pool": in_a_pool,
    "a pool that preloads": lambda site, *flags: in_a_pool(site, "--preload", *flags),
    "a worker without a master": lambda site, *flags: site.work(*flags),
}


@pytest.mark.by_turns("run")
@pytest.mark.parametrize("run", WAYS.values(), ids=WAYS)
def test_jobs_and_their_modules_have_the_usual_thresholds(pushed, run):
    usual = list(gc.get_threshold())
    run(pushed, "--modules", "tests.support.poolapp,own")

    [found] = pushed.trail()
    assert (usual, usual, True) == (found["at_import"], found["in_a_job"], found["enabled"])
