"""How long a job waits for its next try: exponential backoff with jitter, ``Retry``, a delay for an exception."""

from __future__ import annotations

import re

from tests.support.eventually import eventually
from tests.support.pools import Site

APP = """
import os, signal
from queuepool import Retry, exponential, job

class RateLimited(Exception): pass
class HardLimited(RateLimited): pass

RAISED = {
    "limited": RateLimited, "harder": HardLimited, "slow": TimeoutError, "other": ValueError,
    "asked": lambda: Retry("busy", after="30s"), "asked again": lambda: Retry(),
}

def run(error):
    raise RAISED[error]()

SPREAD = exponential(100, 1600, jitter=True)
job("plain", tries=9, backoff=exponential("1m", "1h"))(run)
job("spread", tries=9, backoff=SPREAD)(run)
job("once", tries=1)(run)
job("picky", tries=9, backoff=7, retry_on={RateLimited: "5m", TimeoutError: None})(run)
job("spread_after", tries=9, retry_on={RateLimited: SPREAD})(run)
job("final", tries=9, fail_on=Exception)(run)

@job("killed", tries=9, backoff=SPREAD)
def killed():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def released(log: str) -> dict[tuple[str, str], float]:
    """The delays in the log, by the job's name and what it raised."""
    lines = re.findall(r"job released .*?job=(\S+) .*?delay=(\S+) exception=(\w+)", log)
    return {(name, error): float(delay) for name, delay, error in lines}


def test_a_job_waits_as_what_it_raised_asks(site: Site) -> None:
    (site.path / "delays.py").write_text(APP)
    for name, error in (
        ("plain", "other"), ("plain", "asked"), ("plain", "asked again"), ("once", "asked"), ("picky", "limited"),
        ("picky", "harder"), ("picky", "slow"), ("picky", "other"), ("picky", "asked"), ("final", "asked"),
    ):  # fmt: skip
        site.queue.push(name, {"error": error}, queue=name if error != "asked again" else "again")
    queues = "plain,again,once,picky,final"
    log = site.work("--modules", "delays", "--queue", queues).stderr

    assert {
        ("plain", "ValueError"): 60.0,
        ("picky", "RateLimited"): 300.0,
        ("picky", "HardLimited"): 300.0,
        ("picky", "TimeoutError"): 7.0,
        ("picky", "Retry"): 30.0,
        ("final", "Retry"): 30.0,
    } == {key: delay for key, delay in released(log).items() if key != ("plain", "Retry")}
    assert ["30.0", "60.0"] == sorted(re.findall(r"job=plain .*?delay=(\S+) exception=Retry", log))
    failed = {row.name: row.exception for row in site.queue.stores.failed.page()}
    assert {"once", "picky"} == failed.keys()
    assert "Retry: busy" in failed["once"]
    assert "ValueError" in failed["picky"]


def test_jobs_that_fail_together_come_back_one_by_one_also_after_the_death_of_a_worker(site: Site) -> None:
    (site.path / "delays.py").write_text(APP)
    for _ in range(20):
        site.queue.push("spread", {"error": "other"})
        site.queue.push("spread_after", {"error": "limited"})
    log = site.work("--modules", "delays").stderr
    for name, error in (("spread", "ValueError"), ("spread_after", "RateLimited")):
        delays = [float(one) for one in re.findall(rf"job={name} .*?delay=(\S+) exception={error}", log)]
        assert 20 == len(delays)
        assert 10 < len(set(delays))
        assert all(50 <= delay <= 100 for delay in delays)

    site.queue.push("killed")
    with site.pool("--workers", "1", "--modules", "delays") as pool:
        eventually(lambda: "job released" in pool.log())
    assert 50 <= released(pool.log())["killed", "WorkerDied"] < 100
