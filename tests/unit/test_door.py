"""What no worker serves or no store holds is refused by every call that pushes, with the name of the job."""

from __future__ import annotations

import asyncio
from dataclasses import InitVar, dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from queuepool import Job, connect, context, current, job, register_type
from queuepool.errors import BadPayload, NotSendable
from queuepool.jobs.job_options import seconds_until
from queuepool.payload.php_values import PhpDataRefused
from queuepool.settlement.verdict import Release
from queuepool.testing import as_current, drain
from tests.support.each import each
from tests.support.samples import fresh

NAME, PHP = f"{__name__}.send", "App\\Jobs\\Sync"


@job
def send(it: Any = None) -> None: ...


class Sent(Job):
    it: Any = None

    def handle(self) -> None: ...


#: every call that takes a queue, by what its errors begin with
BY_QUEUE = [
    (NAME, lambda q, **about: q.push(NAME, **about)),
    (NAME, lambda q, **about: q.push(NAME, unique_id="1", **about)),
    (NAME, lambda q, **about: q.bulk([(NAME, None)], **about)),
    (NAME, lambda q, **about: q.later(about.get("delay", 1), NAME, queue=about.get("queue", "default"))),
    (NAME, lambda q, **about: asyncio.run(q.apush(NAME, **about))),
    (NAME, lambda q, **about: asyncio.run(q.abulk([(NAME, None)], **about))),
    (NAME, lambda q, **about: asyncio.run(q.alater(about.get("delay", 1), NAME, queue=about.get("queue", "a")))),
    (PHP, lambda q, **about: q.push_object(PHP, {}, **about)),
    (PHP, lambda q, **about: asyncio.run(q.apush_object(PHP, {}, **about))),
]  # fmt: skip


@each(("name", "push"), BY_QUEUE)
@each("where", ["default:delayed", "q:reserved", "", "a,b", "c\nd", "x" * 10_000, "schnörkel", None, ["default"]])
def test_a_queue_that_no_pool_can_serve_is_refused_by_every_push(queue, name, push, where):
    with pytest.raises(ValueError, match=f"^{name}: ".replace("\\", r"\\")):
        push(queue, queue=where)
    with pytest.raises(ValueError, match="queue"):
        queue.push_raw(b"{}", queue=where)
    assert [] == queue.stores.queue.queues()


def test_the_key_of_another_queue_is_not_cleared_as_a_queue(queue):
    send.later(60)

    with pytest.raises(ValueError, match="is the name of a key of another queue"):
        queue.clear("default:delayed")
    assert 1 == queue.size()


@each(("name", "push"), BY_QUEUE)
@each(
    "delay", [timedelta(days=36_500), 1e9, True, "soon", float("nan"), b"5", datetime.max.replace(tzinfo=UTC), 10**400]
)
def test_a_delay_that_no_store_holds_is_refused_by_every_push(queue, name, push, delay):
    with pytest.raises(ValueError, match=f"^{name}: ".replace("\\", r"\\")):
        push(queue, delay=delay)
    assert 0 == queue.size()


@each("about", [{"track": True}, {"track": "ever"}, {"options": {"tries": -1}}, {"options": {"trise": 1}}])
def test_other_terms_are_refused_with_the_name_of_the_job(queue, about):
    with pytest.raises(ValueError, match=f"^{NAME}: "):
        queue.push(NAME, **about)


@each(("name", "push"), [BY_QUEUE[1], BY_QUEUE[7]])
@each(
    ("about", "why"),
    [
        ({"unique_id": "a\0b"}, "cannot hold NUL"),
        ({"unique_id": "\ud800"}, "a lone surrogate"),
        ({"unique_id": "1", "unique_for": 0}, "unique_for must be above 0"),
        ({"unique_id": "1", "unique_for": True}, "is not a delay"),
    ],
)
def test_a_lock_that_no_store_holds_is_refused(queue, name, push, about, why):
    def pushed() -> object:
        return queue.push_object(name, {}, **about) if name == PHP else queue.push(name, **about)

    with pytest.raises(ValueError, match=f"^{name}: .*{why}".replace("\\J", r"\\J").replace("\\S", r"\\S")):
        pushed()
    assert 0 == queue.size()


def test_an_identity_is_as_long_as_a_database_holds_on_each_of_them_and_of_any_length_in_redis(queue, sqlite_url):
    assert queue.push(NAME, unique_id="x" * 300)
    with pytest.raises(
        ValueError, match=rf"^{NAME}: the key of its unique lock has 3\d\d characters, a database holds 255"
    ):
        connect(sqlite_url).push(NAME, unique_id="x" * 300)


@each("name", ["", "a b", "\\App\\Jobs\\Sync", "App\\", "a\nb", "1a", None])
def test_an_object_of_what_is_no_class_is_refused(queue, name):
    with pytest.raises(ValueError, match="PHP class"):
        queue.push_object(name, {})
    assert queue.push_object("Größe\\Ändern", {})


@each("name", [5, None, b"x", "", "a\nb"])
def test_a_name_that_no_job_can_have_is_refused(queue, name):
    for push in (queue.push, lambda name: queue.bulk([(name, None)])):
        with pytest.raises(BadPayload, match="is not a job name"):
            push(name)
    with pytest.raises(TypeError, match="push_raw takes bytes, not str"):
        queue.push_raw("{}")
    assert 0 == queue.size()


# In a job


@each("delay", ["5m", timedelta(minutes=5), 300])
def test_a_job_is_released_for_what_later_takes(delay):
    with as_current() as running:
        running.release(delay)

    assert Release(300.0) == running.verdict


@each("delay", [None, "soon", b"5m", True, float("inf"), float("nan"), 10**15])
def test_a_release_for_any_other_time_is_the_error_of_its_handler(queue, delay):
    @job(fresh(), tries=2)
    def again() -> None:
        current().release(delay)

    again.dispatch()
    ran = drain(raises=False).attempts

    assert ["released", "failed"] == [one.outcome for one in ran]
    assert {ValueError} == {type(one.error) for one in ran}


@each("name", [1, None, "\ud800"])
def test_a_context_that_no_payload_holds_is_refused_where_it_is_added(queue, name):
    with pytest.raises(PhpDataRefused):
        context.add(name, "x")
    assert send.dispatch()


# Values


@dataclass
class Line:
    price: Decimal


@dataclass
class Scaled:
    price: Decimal
    by: InitVar[int]


class Money:
    """The producer never reads one: it may have no database to look it up in."""


def never(cents: object) -> Money:
    raise AssertionError(cents)


register_type(Money, to_json=lambda money: 5, from_json=never)

CALLS = [
    lambda one, it: one.dispatch(it),
    lambda one, it: one.dispatch(it=it),
    lambda one, it: one.bulk([{"it": 1} if one is send else [it], {"it": it}]),
    lambda one, it: one.using(delay=5).dispatch(it),
    lambda one, it: asyncio.run(one.adispatch(it)),
]


@each("call", CALLS)
@each(
    ("it", "why"),
    [
        ({1: 2, "1": 3}, "two keys of a dict become one in JSON"),
        ([{"a": {None: 1, "null": 2}}], "two keys of a dict become one in JSON"),
        (Line({True: 1, "true": 2}), "two keys of a dict become one in JSON"),  # type: ignore[arg-type]
        (timedelta.max, ".*no exact number of seconds"),
    ],
)
def test_what_a_worker_would_set_aside_is_refused_at_the_dispatch(queue, call, it, why):
    with pytest.raises(NotSendable, match=f"^argument 'it' of {NAME}: {why}|^argument 0 of"):
        call(send, it)
    assert 0 == queue.clear()


def test_keys_of_other_types_go_as_long_as_they_differ(queue):
    send.dispatch({1: 2, 2.5: 3, "3": 4, None: {True: False, 1.5: 2}})

    assert b'{"1":2,"2.5":3,"3":4,"null":{"true":false,"1.5":2}}' in queue.sizes().oldest


@each("call", CALLS)
@each(
    ("hint", "it", "why"),
    [
        (date | int, True, "argument 'it' is true or false, not date or int"),
        (datetime, "soon", "argument 'it' is a string, not an ISO date and time"),
        (timedelta, 1e15, "argument 'it' is a number, not a number of seconds"),
        (list[Line], [{"price": "x"}], r"argument 'it'\[0\].price is a string, not a decimal number"),
        (Line, {}, r"argument 'it' is an object, not one for Line \(missing a required argument: 'price'\)"),
        (Scaled, Scaled(Decimal(1), 5), "argument 'it' is an object, not one for Scaled"),
        (tuple[int, date], [1], "argument 'it' is a list, not one of 2 items"),
    ],
)
def test_what_its_annotation_does_not_take_is_refused_at_the_dispatch(queue, call, hint, it, why):
    def typed(it: Any = None) -> None: ...

    typed.__annotations__["it"] = hint
    one = job(fresh())(typed)

    with pytest.raises(TypeError, match=f"^{one.name}: {why}"):
        call(one, it)
    assert 0 == queue.clear()


def test_the_values_of_a_job_class_and_of_a_push_by_name_are_looked_at_too(queue):
    class Bill(Job, name=fresh()):
        at: date

        def handle(self) -> None: ...

    with pytest.raises(TypeError, match=f"^{Bill.job_name}: argument 'at' is a string, not an ISO date"):
        Bill("soon").dispatch()  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="argument 'at' is a string, not an ISO date"):
        Bill.bulk([Bill(date(2026, 1, 1)), Bill("soon")])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="argument 'it' is a string, not an ISO date"):
        queue.push(f"{__name__}.dated", {"it": "soon"})
    assert 0 == queue.size()


@job
def dated(it: date) -> None: ...


def test_the_door_calls_no_code_of_the_applications(queue):
    def typed(it: Any, all_of_it: Any) -> None: ...

    typed.__annotations__.update(it=Money, all_of_it=dict[str, list[Money]])
    job(fresh())(typed).dispatch(Money(), {"a": [Money()]})

    assert 1 == queue.size()


def test_ten_years_are_the_longest_delay():
    assert 315_360_000.0 == seconds_until(timedelta(days=3650)) == seconds_until("3650d")
    with pytest.raises(ValueError, match=r"is too long: the maximum is ten years \(87600h\)"):
        seconds_until(timedelta(days=3651))
