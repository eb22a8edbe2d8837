"""The keys by which pools agree which of them sends the notices of an alert."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from queuepool.stores.factory import Stores
from queuepool.stores.values import AlertClaim
from tests.support.asked_again import asked_again
from tests.support.drivers import PATIENCE
from tests.support.eventually import eventually
from tests.support.samples import new_jobs

ALERT = "wait:default"


@pytest.fixture
def keys(built):
    return built.values


def test_the_first_pool_gets_the_key_and_knows_it_again(keys):
    assert AlertClaim.TAKEN is keys.claim_alert(ALERT, "a:default", 60.0)
    assert AlertClaim.OURS is keys.claim_alert(ALERT, "a:default", 60.0)
    assert AlertClaim.OTHERS is keys.claim_alert(ALERT, "b:default", 60.0)


def test_each_alert_has_a_key_of_its_own(keys):
    keys.claim_alert(ALERT, "a:default", 60.0)

    assert AlertClaim.TAKEN is keys.claim_alert("overdue:default", "b:default", 60.0)
    assert AlertClaim.TAKEN is keys.claim_alert("wait:Default", "b:default", 60.0)
    assert AlertClaim.TAKEN is keys.claim_alert(f"wait:{'x' * 200}1", "b:default", 60.0)
    assert AlertClaim.TAKEN is keys.claim_alert(f"wait:{'x' * 200}2", "b:default", 60.0)


def test_only_its_owner_releases_a_key(keys):
    keys.claim_alert(ALERT, "a:default", 60.0)

    assert not keys.release_alert(ALERT, "b:default")
    assert AlertClaim.OTHERS is keys.claim_alert(ALERT, "b:default", 60.0)
    assert keys.release_alert(ALERT, "a:default")
    assert not keys.release_alert(ALERT, "a:default")
    assert AlertClaim.TAKEN is keys.claim_alert(ALERT, "b:default", 60.0)


def test_a_key_ends_by_itself(keys):
    keys.claim_alert(ALERT, "a:default", 1.0)

    eventually(lambda: keys.claim_alert(ALERT, "b:default", 60.0) is AlertClaim.TAKEN)
    assert AlertClaim.OTHERS is keys.claim_alert(ALERT, "a:default", 60.0)
    assert not keys.release_alert(ALERT, "a:default")


def test_of_many_pools_that_ask_at_once_one_gets_the_key(built):
    built.queue.push("default", new_jobs(b"{}"))  # the tables have been read

    def asked(number: int) -> AlertClaim:
        with closing(Stores(built.settings, reply_timeout=PATIENCE)) as own:
            return asked_again(lambda: own.values.claim_alert(ALERT, f"host{number}:default", 60.0))

    with ThreadPoolExecutor(8) as pools:
        claims = list(pools.map(asked, range(16)))

    assert 1 == claims.count(AlertClaim.TAKEN)
    assert 15 == claims.count(AlertClaim.OTHERS)
