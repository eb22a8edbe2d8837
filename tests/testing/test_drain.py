"""``drain``: what waits in the configured queue, or in that of a ``fake``, is run in this process."""

from __future__ import annotations

import asyncio

import pytest

from queuepool import configure
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError, QueuepoolError, StoreDown, UnknownJob
from queuepool.testing import drain, fake
from tests.testing.jobs import again, asynchronous, decides, flaky, parent, welcome

pytestmark = pytest.mark.every_store("configured")


@pytest.fixture(params=["sqlite", "redis"])
def configured(request, tmp_path):
    """A queue of the test's own."""
    url = f"sqlite:///{tmp_path}/queue.db" if request.param == "sqlite" else request.getfixturevalue("redis_url")
    queue = configure(ConnectionSettings(url=url, embedded=True))
    yield queue
    queue.clear()
    queue.close()


def test_what_waits_is_run_until_the_queue_is_empty(configured, done):
    parent.dispatch()
    welcome.dispatch("ada")

    assert [one.name for one in drain().done] == ["testing.parent", "testing.child"]
    assert done == ["parent begins", "parent ends", "second"]
    assert (configured.size(), configured.size("other"), configured.size("mail")) == (1, 1, 1)


def test_several_queues_are_served_in_their_order(configured, done):
    parent.dispatch()
    welcome.dispatch("ada")

    assert [one.queue for one in drain("mail", "other", "default").done] == ["mail", "default", "other", "default"]


def test_a_delayed_job_stays_unless_it_is_asked_for(configured, done):
    welcome.later("1h", "ada")
    welcome.later("1m", "bob")
    assert drain("mail").attempts == []

    assert len(drain("mail", delayed=True).done) == 2
    assert [to for to, _ in done] == ["bob", "ada"]
    assert configured.size("mail") == 0


def test_a_job_that_a_backoff_delays_stays_too(configured, done):
    flaky.dispatch(1)

    ran = drain()
    assert ([len(ran.released), ran.released[0].delay], done) == ([1, 60.0], [1])
    assert configured.sizes().delayed == 1


def test_time_is_skipped_for_a_job_that_is_tried_again(configured, done):
    flaky.dispatch(2)

    assert [one.outcome for one in drain(delayed=True).attempts] == ["released", "released", "done"]
    assert configured.size() == 0


def test_the_clock_is_the_stores_own_again(configured, done):
    welcome.later("1h", "ada")
    drain("mail", delayed=True)
    welcome.later("1h", "bob")

    assert drain("mail").attempts == []


def test_the_error_of_a_failed_job_is_raised_when_all_have_run(configured, done):
    configured.push("testing.unknown")
    configured.push("testing.welcome", {"to": "ada"})

    with pytest.raises(UnknownJob):
        drain()
    assert done == [("ada", "plain")]


def test_on_request_errors_are_in_the_result_alone(configured):
    configured.push("testing.unknown")
    decides.dispatch("fail")

    assert [one.name for one in drain(raises=False).failed] == ["testing.unknown", "testing.decides"]
    assert len(configured.stores.failed.page()) == 2


def test_bytes_that_are_no_job_are_counted_as_failed(configured, done):
    configured.push_raw(b"garbage")
    configured.push_raw(b"[]")
    configured.push("testing.welcome", {"to": "ada"})

    ran = drain(raises=False)
    assert [one.outcome for one in ran.failed] == ["quarantined", "quarantined"]
    assert done == [("ada", "plain")]


def test_async_jobs_run_in_an_async_test(configured, done):
    async def test() -> None:
        asynchronous.dispatch(1)
        drain()

    asyncio.run(test())
    assert done == [(1, 1)]


def test_a_fakes_own_queue_is_drained(done):
    with fake():
        welcome.dispatch("ada")
        drain("mail")

    assert done == [("ada", "plain")]


def test_in_a_fake_the_time_stays_where_a_drain_has_left_it(done):
    with fake():
        parent.later("1h")
        drain(delayed=True)

        assert [one.name for one in drain("other").done] == ["testing.child"]


def test_the_clock_of_a_fake_ends_with_it(done):
    with fake():
        welcome.later("1h", "ada")
        drain("mail", delayed=True)
    with fake():
        welcome.later("1s", "bob")

        assert drain("mail").attempts == []


def test_a_store_that_is_away_is_named_at_once():
    with pytest.raises(StoreDown):
        drain()


@pytest.mark.bad_input("B119")
def test_jobs_without_an_end_are_named_and_nothing_is_lost(configured):
    again.dispatch()

    with pytest.raises(QueuepoolError, match=r"after 5 attempts .*testing.again"):
        drain(most=5)
    assert configured.sizes().ready == 1


@pytest.mark.bad_input("B119")
def test_a_name_that_no_queue_has_is_refused():
    with pytest.raises(ConfigError, match="queue"):
        drain("a,b")
