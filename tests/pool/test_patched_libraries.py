"""Modules that let gevent or eventlet replace Python's own waits: the pool's processes wait as before."""

from __future__ import annotations

import sys

import pytest

from tests.support.eventually import eventually

GREEN = """
import time
from queuepool import SoftTimeout, job, on
from queuepool.events import JobTimedOut
from tests.support.poolapp import note

@on(JobTimedOut)
def heard(event): note(event="heard")

@job("greenlets")
def greenlets(count=3):
    found = []
    {spawn}
    note(event="greenlets", found=found)

@job("pushes")
async def pushes():
    await greenlets.adispatch(5)
    note(event="pushed")

@job("soft", soft_timeout=0.3, timeout=20)
def soft():
    try:
        time.sleep(19)
    except SoftTimeout:
        note(event="soft")

@job("hangs", timeout=0.5, tries=1)
def hangs(): time.sleep(60)
"""
#: how each patches, and how a job starts greenlets and waits for them
LIBRARIES = {
    "gevent": (
        "from gevent import joinall, monkey, spawn; monkey.patch_all()",
        "joinall([spawn(found.append, one) for one in range(count)])",
    ),
    "eventlet": (
        "import eventlet; eventlet.monkey_patch()",
        "[one.wait() for one in [eventlet.spawn(found.append, one) for one in range(count)]]",
    ),
}


@pytest.mark.by_turns("library", "preload")
@pytest.mark.parametrize("preload", ["--preload", "--no-preload"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_pool_works_with_modules_that_patch_pythons_own(site, library, preload):
    patch, spawn = LIBRARIES[library]
    # See scripts/setup.
    path = f"import sys; sys.path.insert(0, {sys.prefix + '/green'!r})\n"
    (site.path / "green.py").write_text(path + patch + GREEN.format(spawn=spawn))
    control = f"[connection]\ncontrol_url = {site.connection.url}?db=1\n"  # the steward has a thread for that
    flags = ("--workers", "2", preload, "--modules", "green", "--listeners", "green")
    with site.pool(*flags, config=control) as pool:
        before = pool.workers()
        for name in ("pushes", "soft", "hangs"):
            site.queue.push(name, {})
        eventually(lambda: site.trail(event="heard") and site.trail(event="soft") and site.trail(event="greenlets"))
        eventually(lambda: len(now := pool.workers()) == 2 and now != before)  # after the one that hung
    log = pool.log()

    assert [[0, 1, 2, 3, 4]] == [line["found"] for line in site.trail(event="greenlets")]
    assert [1, 1] == [log.count(f" the {by} have let {library} replace ") for by in ("modules", "listeners")]
    assert "lost sys.stderr" not in log
    assert "STALLED" not in log
