"""In a ``TestCase`` of Django's, which never commits: on each database, with the queue in it or elsewhere."""

from __future__ import annotations

import pytest

pytest.importorskip("django")

from tests.support.django_project import DATABASE, Project, project_in, settings_on

pytestmark = pytest.mark.every_store("anywhere")

TESTS = """
from unittest import mock

from django.db import transaction
from django.test import TestCase, TransactionTestCase
from queuepool.errors import QueuepoolError
from queuepool.testing import drain, fake, run_now
from shop.jobs import asend, counted, send
from shop.models import Order


def order(name="a"):
    return Order.objects.create(name=name).pk


@transaction.atomic
def buy(fails=False):
    send.dispatch(order())
    if fails:
        raise ValueError


class Faked(TestCase):
    def test_a_dispatch_of_the_test_is_recorded_at_once(self):
        with fake() as pushed:
            send.dispatch(1)
            pushed.assert_pushed(send, 1, times=1)

    def test_one_in_a_transaction_is_recorded_when_that_is_left(self):
        with fake() as pushed:
            with transaction.atomic():
                buy()
                pushed.assert_nothing_pushed()
                assert [job.name for job in pushed.waiting] == ["shop.jobs.send"]
                with self.assertRaisesRegex(AssertionError, "(?s)nothing was pushed.waiting for a commit.*[(]1[)]:"):
                    pushed.assert_pushed(send)
            pushed.assert_pushed(send, times=1)
            assert pushed.waiting == []

    def test_one_that_is_rolled_back_never_is(self):
        with fake() as pushed:
            with self.assertRaises(ValueError):
                buy(fails=True)
        pushed.assert_nothing_pushed()
        assert pushed.waiting == []

    def test_captured_callbacks_push_nothing_twice(self):
        with fake() as pushed, self.captureOnCommitCallbacks(execute=True):
            buy()
            pushed.assert_count(1)
        pushed.assert_count(1)

    def test_it_is_known_after_the_block(self):
        with fake() as pushed:
            buy()
        pushed.assert_pushed(send, times=1)

    def test_it_is_drained(self):
        with fake():
            buy()
            with transaction.atomic():
                send.dispatch(order())
                assert len(drain().done) == 1
            assert len(drain().done) == 1

    def test_a_commit_after_the_block_pushes_nothing(self):
        with transaction.atomic():
            with fake() as pushed:
                buy()
        with fake() as other:
            assert drain().attempts == []
        other.assert_nothing_pushed()
        assert len(pushed.waiting) == 1


class RunNow(TestCase):
    def test_a_dispatch_of_the_test_runs_at_once(self):
        with run_now() as ran:
            send.dispatch(order())
            assert len(ran.done) == 1

    def test_one_in_a_transaction_runs_when_that_is_left(self):
        with run_now() as ran:
            with transaction.atomic():
                buy()
                assert ran.attempts == []
            assert len(ran.done) == 1

    def test_nothing_looks_at_it(self):
        with mock.patch.object(Order.objects, "get", side_effect=[ConnectionError]) as get:
            with self.assertRaises(ConnectionError), run_now():
                buy()
        assert get.call_count == 1

    def test_the_transaction_of_the_test_survives_it(self):
        pk = order()
        with run_now(raises=False) as ran, self.captureOnCommitCallbacks(execute=True):
            send.dispatch(pk)
        assert [job.error for job in ran.attempts] == [None]
        assert Order.objects.count() == 1

    def test_what_a_job_dispatches_in_its_transaction_runs_too(self):
        with run_now() as ran:
            again.dispatch()
        assert [job.name for job in ran.done] == ["shop.tests.again", "shop.jobs.send"]

    def test_a_result(self):
        order()
        with run_now():
            assert counted.dispatch().wait(timeout=0).result == 1


class WithoutFake(TestCase):
    def test_drain_says_that_nothing_can_come(self):
        buy()
        with self.assertRaisesRegex(QueuepoolError, "within fake"):
            drain()


class Committing(TransactionTestCase):
    def test_a_commit_is_a_commit(self):
        with fake() as pushed:
            with transaction.atomic():
                buy()
                pushed.assert_nothing_pushed()
            pushed.assert_count(1)
            assert len(drain().done) == 1

    def test_in_a_coroutine(self):
        with run_now() as ran:
            asend.dispatch(order())
        assert len(ran.done) == 1


from queuepool import job

@job
def again():
    buy()
"""
COUNT = TESTS.count("def test_")


@pytest.fixture(params=["memory", "file", "postgres", "mariadb", "redis"])
def anywhere(request, tmp_path) -> Project:
    """The database of the tests, and with it the queue; or a queue in Redis."""
    settings = settings_on(request.param, request)
    if request.param == "file":
        settings["DATABASES"] = {"default": DATABASE | {"TEST": {"NAME": "test.sqlite3"}}}
    made = project_in(tmp_path, **settings)
    (tmp_path / "shop/tests.py").write_text(TESTS)
    return made


def test_what_is_dispatched_in_a_test_case_is_seen_and_its_transaction_survives(anywhere):
    done = anywhere.manage("test", "--noinput", check=False)

    assert f"Ran {COUNT} tests" in done.stderr
    assert done.returncode == 0, done.stderr[-6000:]
