"""``fake``: everything that is dispatched is recorded, nothing reaches a store, and what is wrong is refused."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from queuepool import connect, on
from queuepool.errors import BadPayload, ConfigError, NotSendable, QueuepoolError, StoreDown
from queuepool.events import JobQueued
from queuepool.jobs.client import Queue
from queuepool.testing import drain, fake, run_now
from tests.support.each import each
from tests.testing.jobs import Bill, Line, anything, dated, hooked, on_queue, once, positional, secret, welcome


def test_a_push_reaches_the_configured_store_again_after_the_block():
    with fake():
        welcome.dispatch("ada")

    with pytest.raises(StoreDown):
        welcome.dispatch("ada")


def test_each_way_of_dispatching_is_recorded(queue):
    with fake() as pushed:
        ids = [
            welcome.dispatch("ada"),
            welcome.later("5m", "bob"),
            welcome.using(queue="high", delay=60).dispatch("eve"),
            *welcome.bulk([{"to": "a"}, ["b", "rich"]]),
            Bill([]).dispatch(),
            Bill([]).later(timedelta(seconds=9)),
            *Bill.bulk([Bill([]), Bill([])]),
            queue.push("shop.other", {"a": 1}),
            queue.later(7, "shop.other"),
            *queue.bulk([("shop.other", [1])], queue="many"),
            connect("sqlite:////nowhere/queue.db").push_object("App\\Jobs\\Send", {"id": 3}, queue="php"),
        ]

    assert ids == [job.id for job in pushed]
    assert len(set(ids)) == len(pushed) == 13
    assert [(job.name, job.args, job.kwargs, job.queue, job.delay) for job in pushed] == [
        ("testing.welcome", [], {"to": "ada"}, "mail", 0.0),
        ("testing.welcome", [], {"to": "bob"}, "mail", 300.0),
        ("testing.welcome", [], {"to": "eve"}, "high", 60.0),
        ("testing.welcome", [], {"to": "a"}, "mail", 0.0),
        ("testing.welcome", ["b", "rich"], {}, "mail", 0.0),
        ("testing.bill", [], {"lines": [], "to": "office"}, "bills", 0.0),
        ("testing.bill", [], {"lines": [], "to": "office"}, "bills", 9.0),
        ("testing.bill", [], {"lines": [], "to": "office"}, "bills", 0.0),
        ("testing.bill", [], {"lines": [], "to": "office"}, "bills", 0.0),
        ("shop.other", [], {"a": 1}, "default", 0.0),
        ("shop.other", [], {}, "default", 7.0),
        ("shop.other", [1], {}, "many", 0.0),
        ("App\\Jobs\\Send", [], {"id": 3}, "php", 0.0),
    ]


def test_raw_bytes_are_recorded_as_they_are(queue):
    with fake() as pushed:
        queue.push_raw(b"garbage", delay=2)
        queue.push_raw(b'{"id": "7", "job": "shop.other", "data": [1]}')

    assert [(job.raw, job.name, job.id, job.args) for job in pushed] == [
        (b"garbage", "", "", []),
        (b'{"id": "7", "job": "shop.other", "data": [1]}', "shop.other", "7", []),
    ]


def test_arguments_are_the_objects_that_were_given():
    day, lines = date(2026, 11, 23), [Line(3)]
    with fake() as pushed:
        dated.dispatch(day)
        Bill(lines, to="x").dispatch()
        positional.dispatch(1, 2, 3)

    assert pushed[0].kwargs["day"] is day
    assert pushed[1].kwargs["lines"] is lines
    assert pushed[2].args == [1, 2, 3]
    assert pushed[2].arguments == {"number": 1, "more": (2, 3)}


def test_arguments_are_also_there_by_name_with_their_defaults():
    with fake() as pushed:
        welcome.bulk([["ada"]])

    assert pushed[0].arguments == {"to": "ada", "template": "plain"}


def test_options_identity_and_encryption_are_recorded(queue):
    keyed = Queue(replace(queue.settings, app_key=32 * b"k"))
    with fake() as pushed:
        keyed.push("a", options={"tries": 3, "timeout": 9}, encrypted=True, unique_id="seven")
        keyed.push_object("App\\A", {}, encrypted=True, unique_id="eight")
        once.dispatch("k")

    assert [(job.options, job.encrypted, job.unique_id) for job in pushed] == [
        ({"maxTries": 3, "timeout": 9}, True, "seven"),
        ({}, True, "eight"),
        ({}, False, "k"),
    ]


def test_a_unique_job_is_pushed_once_while_it_waits():
    with fake() as pushed:
        assert once.dispatch("k") != ""
        assert once.dispatch("k") == ""
        assert once.dispatch("other") != ""
        pushed.assert_count(2, once)

    with fake():
        assert once.dispatch("k") != "", "a lock of an earlier test"


def test_queues_of_before_and_pushes_of_other_threads_are_recorded(queue):
    with fake() as pushed:
        thread = threading.Thread(target=lambda: queue.push("shop.other"))
        thread.start()
        thread.join()

    pushed.assert_pushed("shop.other")


def test_the_queue_can_be_looked_at(queue):
    with fake():
        welcome.bulk([{"to": "a"}, {"to": "b"}])

        assert queue.size("mail") == 2
        assert queue.clear("mail") == 2


def test_listeners_are_called():
    queued = []
    on(JobQueued)(queued.append)
    with fake():
        identity = welcome.dispatch("ada")

    assert identity in [event.id for event in queued]


@each(
    ("dispatch", "error"),
    [
        (lambda queue: welcome.dispatch(), TypeError),
        (lambda queue: welcome.dispatch("a", colour="red"), TypeError),
        (lambda queue: welcome.bulk([{"to": "a"}, {}]), TypeError),
        (lambda queue: welcome.dispatch(object()), NotSendable),
        (lambda queue: queue.push("a", float("nan")), NotSendable),
        (lambda queue: queue.push("", {}), BadPayload),
        (lambda queue: welcome.later("soon", "a"), ValueError),
        (lambda queue: welcome.using(queue="a,b"), ConfigError),
        (lambda queue: queue.push("a", options={"retries": 3}), ValueError),
        (lambda queue: secret.dispatch("no key"), ConfigError),
        (lambda queue: queue.push_object("App\\A", {"x": object()}), ValueError),
    ],
)
def test_what_a_dispatch_refuses_it_still_refuses(dispatch, error, queue):
    with fake() as pushed:
        with pytest.raises(error):
            dispatch(queue)

        pushed.assert_nothing_pushed()


@pytest.mark.parametrize(
    ("outer", "inner", "words"),
    [
        (fake, fake, "fake() within fake(), which a fixture may have put in force: use that one"),
        (fake, run_now, "run_now() within fake(), which a fixture may have put in force: use that one"),
        (run_now, fake, "fake() within run_now(), which a fixture may have put in force: use that one"),
    ],
)
@pytest.mark.bad_input("B117")
def test_a_fake_inside_of_another_is_refused_in_one_line(outer, inner, words):
    with outer():
        with pytest.raises(QueuepoolError) as refused, inner():
            pass
        welcome.dispatch("ada")  # the outer one is still in force

    assert str(refused.value) == words


class TestAssertions:
    def test_a_job_is_found_by_each_way_of_naming_it(self):
        with fake() as pushed:
            welcome.dispatch("ada", template="rich")
            Bill([Line(3)], to="x").dispatch()

        pushed.assert_pushed(welcome)
        pushed.assert_pushed(welcome, "ada", "rich")
        pushed.assert_pushed("testing.welcome", template="rich", to="ada")
        pushed.assert_pushed(Bill)
        pushed.assert_pushed(Bill, [Line(3)], to="x")
        pushed.assert_pushed(Bill([Line(3)], to="x"), times=1)
        assert [job.name for job in pushed.of(Bill)] == ["testing.bill"]

    def test_calls_are_compared_however_they_are_written(self):
        with fake() as pushed:
            welcome.dispatch(to="ada")
            positional.dispatch(1, 2)

        pushed.assert_pushed(welcome, "ada", queue="mail", delay=0)
        pushed.assert_pushed(welcome, "ada", "plain")
        pushed.assert_not_pushed(welcome, "ada", "rich")
        pushed.assert_pushed(positional, 1, 2)
        pushed.assert_not_pushed(positional, 1)

    def test_any_names_and_a_tuple_of_data_are_arguments_too(self, queue):
        with fake() as pushed:
            anything.dispatch(a=1, b=2)
            queue.push("shop.other", (1, 2))

        pushed.assert_pushed(anything, b=2, a=1)
        pushed.assert_not_pushed(anything, a=1)
        pushed.assert_pushed("shop.other", 1, 2)
        assert pushed[0].arguments == {"a": 1, "b": 2}

    def test_a_delay_is_compared_in_any_form(self):
        with fake() as pushed:
            welcome.later(datetime.now(UTC) + timedelta(minutes=5), "ada")

        pushed.assert_pushed(welcome, "ada", delay="5m")
        pushed.assert_pushed(welcome, delay=datetime.now(UTC) + timedelta(minutes=5))
        pushed.assert_not_pushed(welcome, delay=290)

    def test_one_that_fails_says_what_was_pushed(self):
        with fake() as pushed:
            welcome.later(60, "ada")
            once.dispatch("k")
            welcome.dispatch("x" * 500)

        with pytest.raises(AssertionError) as never:
            pushed.assert_pushed(welcome, "bob", queue="mail")
        first, *rest = str(never.value).splitlines()
        assert first == "testing.welcome('bob') queue=mail was never pushed"
        assert rest[:3] == [
            "pushed (3):",
            "  testing.welcome(to='ada') queue=mail delay=60",
            "  testing.once(key='k') queue=default unique_id=k",
        ]
        assert len(rest[3]) < 200

    @pytest.mark.parametrize(
        ("check", "words"),
        [
            (
                lambda pushed: pushed.assert_pushed(welcome, "a", times=2),
                "testing.welcome('a') was pushed 1 time, not 2",
            ),
            (lambda pushed: pushed.assert_not_pushed(welcome), "testing.welcome was pushed"),
            (lambda pushed: pushed.assert_nothing_pushed(), "jobs were pushed"),
            (lambda pushed: pushed.assert_count(2), "the number of pushes is 1, not 2"),
            (lambda pushed: pushed.assert_count(0, welcome), "the number of pushes of testing.welcome is 1, not 0"),
        ],
    )
    def test_each_says_what_is_wrong(self, check, words):
        with fake() as pushed:
            welcome.dispatch("a")

        with pytest.raises(AssertionError) as failed:
            check(pushed)
        assert str(failed.value) == f"{words}\npushed (1):\n  testing.welcome(to='a') queue=mail"

    def test_with_nothing_pushed_they_say_so(self):
        with fake() as pushed, pytest.raises(AssertionError, match="never pushed\nnothing was pushed"):
            pushed.assert_pushed(welcome)

    @pytest.mark.parametrize(
        ("check", "error", "words"),
        [
            (lambda pushed: pushed.assert_pushed(len), TypeError, "is not a job"),
            (
                lambda pushed: pushed.assert_pushed(welcome, template="rich"),
                TypeError,
                "testing.welcome: missing a required",
            ),
            (lambda pushed: pushed.assert_pushed(on_queue, queue="a"), TypeError, "has an argument 'queue' itself"),
            (lambda pushed: pushed.assert_pushed(Bill([]), "x"), TypeError, "are in the object already"),
            (lambda pushed: pushed.assert_pushed(welcome, times=0), ValueError, "assert_not_pushed"),
            (lambda pushed: pushed.assert_pushed(welcome, delay="soon"), ValueError, "soon"),
        ],
    )
    @pytest.mark.bad_input("B118")
    def test_what_can_be_no_push_of_the_job_is_refused(self, check, error, words):
        with fake() as pushed, pytest.raises(error, match=words):
            check(pushed)

    def test_a_push_by_name_with_arguments_that_do_not_fit_is_compared_as_it_is(self, queue):
        with fake() as pushed:
            queue.push("testing.welcome", ["ada", "rich", "red"])

        pushed.assert_not_pushed(welcome, "ada")
        assert pushed[0].arguments == {}


def test_what_was_recorded_can_be_run(done):
    with fake() as pushed:
        hooked.dispatch(1)
        hooked.later(60, 2)
        welcome.dispatch("ada")

        assert [job.name for job in drain("default", "mail").done] == ["testing.hooked", "testing.welcome"]
        assert done == [("succeeded", 1), ("ada", "plain")]
        assert len(pushed) == 3
