"""Hostile modules and poor environments: the pool starts, or says in a line what is missing."""

from __future__ import annotations

import signal

import pytest
from eventually import eventually

#: by entry: what a module of the user's does when it is imported
HOSTILE = {
    "B084 prints ten megabytes": "print('x' * 10_000_000, flush=True)",
    "B084 starts a thread": "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
    "B084 ignores signals": "import signal\nfor s in (15, 2, 3, 10, 12): signal.signal(s, signal.SIG_IGN)",
    "B084 blocks signals": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    "B084 ignores the alarm": "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)",
    "B084 closes its streams": "import os; os.close(0); os.close(1)",
    "B084 forks": "import os; os.fork()",
}


@pytest.mark.parametrize("entry", HOSTILE)
def test_bad_input_module(site, entry):
    """Jobs run once, within their time, and a stop is obeyed."""
    (site.path / "hostile.py").write_text(HOSTILE[entry])
    ids = {site.push("ok") for _ in range(5)}
    site.push("hang_in_c", timeout=0.3)
    with site.pool("--workers", "1", "--modules", "poolapp,hostile", wait=False) as pool:
        eventually(site.queue.stores.failed.page)
        eventually(lambda: 0 == site.queue.size())
        pool.signal(signal.SIGTERM)
        pool.wait(within=5)

    assert sorted(ids) == sorted(line["id"] for line in site.trail(event="end"))
    assert "JobTimedOut" in site.queue.stores.failed.page()[0].exception
    assert "signal 14" in site.queue.stores.failed.page()[0].exception
