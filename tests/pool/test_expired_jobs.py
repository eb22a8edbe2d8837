"""``expires``: a job that comes too late to begin is dropped with an event, and is no failure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from queuepool.jobs.door import Terms, lock_of
from queuepool.jobs.following import JobId
from queuepool.payload.envelope import Envelope, decode, encode, wanted_again
from queuepool.payload.options import EXPIRES, late_by
from queuepool.payload.signing import Signer
from tests.support.drivers import DATABASES, site_on
from tests.support.pools import Site

APP = """
from queuepool import current, job, on
from queuepool.events import JobSkipped
from tests.support.poolapp import note

@job("short", expires="1m", track=600, unique="{tag}")
def short(tag, fails=False):
    note(event="ran", tag=tag, attempt=current().attempts)
    if fails:
        raise ValueError("as asked")

@job("any time")
def any_time(tag):
    note(event="ran", tag=tag)

@on(JobSkipped)
def skipped(event):
    note(event="skipped", job=event.job.name, why=event.reason)
"""

pytestmark = pytest.mark.every_store("expiring")


@pytest.fixture(params=["redis", *DATABASES])
def expiring(request: pytest.FixtureRequest, tmp_path) -> Iterator[Site]:
    (tmp_path / "short.py").write_text(APP)
    with site_on(request.param, request) as found:
        yield found


def push(site: Site, name: str, *, expires: float = 0.001, **data: Any) -> JobId:
    """Push the job as its dispatch does; by default nobody can begin it in time."""
    lock = lock_of(name, str(data), 86400, site.queue.settings)
    terms = Terms("default", track=600, options={EXPIRES: expires}, lock=lock)
    return JobId(site.queue.pusher.push([(name, data)], terms)[0], site.queue)


def run(site: Site) -> str:
    return site.work("--modules", "short").stderr


def test_a_job_that_is_late_is_dropped_and_one_that_is_not_runs(expiring):
    dispatch = ["push", *expiring.where, "--modules", "short", "short", "--data"]
    expiring.run(*dispatch, '{"tag": "now"}')
    expiring.run(*dispatch, '{"tag": "later"}', "--delay", "3600")
    late = push(expiring, "short", tag="late")
    push(expiring, "any time", tag="of a job that says nothing of it")
    log = run(expiring)

    assert {"now", "of a job that says nothing of it"} == {one["tag"] for one in expiring.trail(event="ran")}
    [skipped] = expiring.trail(event="skipped")
    assert ("short", True) == (skipped["job"], "before it could begin" in skipped["why"])
    assert ("cancelled", skipped["why"]) == (late.job().state, late.job().error)
    assert "job skipped" in log
    assert 0 == expiring.queue.stores.failed.count()
    assert push(expiring, "short", tag="late"), "its lock is released"
    assert 1 == expiring.queue.sizes().delayed


def test_a_job_that_has_begun_is_tried_again_whenever_that_is_also_by_hand(site: Site) -> None:
    """Its errors would be lost with it; ``tries`` and ``retryUntil`` say for how long it is tried."""
    (site.path / "short.py").write_text(APP)
    data = {"tag": "begun", "fails": True}
    raw = encode("short", data, Envelope(options={EXPIRES: 0.001}, created_at=time.time() - 9))[1]
    site.queue.push_raw(raw.replace(b'"attempts":0}', b'"attempts":1}'))
    run(site)
    assert [2] == [one["attempt"] for one in site.trail(event="ran")]

    site.run("retry", *site.where, "all")
    run(site)
    assert [2, 1] == [one["attempt"] for one in site.trail(event="ran")]
    assert [] == site.trail(event="skipped")


def test_a_signed_job_that_is_retried_by_hand_is_wanted_again() -> None:
    signer = Signer((("key", "0123456789abcdef"),), required=True)
    about: dict[str, Any] = {"options": {EXPIRES: 60}, "created_at": 1000.0, "delay": 40}
    raw = encode("short", {"n": 1.10}, Envelope(sign=lambda fields: signer.sign("default", fields), **about))[1]
    again = wanted_again(raw.decode()).encode()

    first, second = (signer.verify(one, "default").fields for one in (raw, again))
    assert [0.0, 0.5, 0.0] == [late_by(first, 1100), late_by(first, 1100.5), late_by(second, 9999)]
    assert again.endswith(b'"attempts":0}')
    assert decode(again).data == {"n": 1.1}
    assert [0.0] * 3 == [late_by({EXPIRES: odd}, 9.0) for odd in ("1", True, None)]
    for plain in ('{"data":"qpExpires"}', 'no JSON "qpExpires"', '{"\ud800": "qpExpires"}', ""):
        assert plain == wanted_again(plain)
