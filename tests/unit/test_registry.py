"""``@job`` and ``Job``: what is registered, what a dispatch pushes, and what a payload's data calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import queuepool
from queuepool import Job, connect, current, job
from queuepool.config.loader import load
from queuepool.errors import (
    BadArguments,
    BadPayload,
    ConfigError,
    JobError,
    JobFailedByHand,
    QueuepoolError,
    UnknownJob,
)
from queuepool.events import JobQueued
from queuepool.events.listeners import LISTENERS
from queuepool.jobs import connecting
from queuepool.jobs.client import Queue
from queuepool.jobs.current_job import Current, set_current
from queuepool.jobs.job_options import Options, seconds_until
from queuepool.jobs.registry import REGISTRY, Handler, Registry, bound
from queuepool.payload.command import command_of
from queuepool.payload.envelope import OBJECT_JOB, decode
from queuepool.payload.php_unserialize import PhpDataRefused
from queuepool.settlement.verdict import Delete, Fail, Release
from tests.support.each import each
from tests.support.samples import fresh, payload


def pushed(queue: Queue, name: str = "default") -> dict[str, Any]:
    """The oldest ready payload."""
    return json.loads(queue.sizes(name).oldest or b"null")


def handler(function: Any) -> Handler:
    """A function, registered under a fresh name."""
    return REGISTRY.find(job(fresh())(function).name)


# Registering


def test_a_job_may_have_any_name():
    name = f"App\\Jobs\\{fresh()}"

    @job(name)
    def send() -> None: ...

    assert name in REGISTRY.names()


def test_a_job_is_still_the_plain_function():
    @job(fresh())
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert (4, "Twice as much.", "double") == (double(2), double.__doc__, double.__name__)


def test_two_jobs_may_not_have_one_name():
    name = fresh()
    job(name)(lambda: None)

    with pytest.raises(ConfigError, match=name):
        job(name)(lambda: None)


@each("name", ["", " ", "\n"])
def test_a_job_needs_a_name(name):
    with pytest.raises(ConfigError):
        Registry().add(Handler(name, lambda: None, Options()))  # type: ignore[arg-type,return-value]


def test_what_nobody_registered_is_unknown_and_says_what_to_do():
    with pytest.raises(UnknownJob, match="register it") as unknown:
        Registry().find("os.system")

    assert isinstance(unknown.value, JobError)


def test_a_name_must_match_to_the_letter():
    registry = Registry()
    registry.add(Handler("app.mail", lambda: None, Options()))  # type: ignore[arg-type,return-value]

    for name in ("app.Mail", "app.mail ", "app.mail@handle", "mail", ""):
        with pytest.raises(UnknownJob):
            registry.find(name)


def test_the_options_of_a_job_are_its_handlers():
    @job(fresh(), queue="mails", tries=3, timeout=30, backoff=[1, 5], max_exceptions=2, fail_on_timeout=True)
    def send() -> None: ...

    expected = Options(queue="mails", tries=3, timeout=30, backoff=(1.0, 5.0), max_exceptions=2, fail_on_timeout=True)
    assert expected == send.options == REGISTRY.find(send.name).options


# Binding


def mail(to: str, template: str = "welcome", *, bcc: str = "") -> tuple[str, str, str]:
    return to, template, bcc


@each(
    ("data", "result"),
    [
        ({"to": "a"}, ("a", "welcome", "")),
        ({"to": "a", "template": "vip", "bcc": "b"}, ("a", "vip", "b")),
        (["a", "vip"], ("a", "vip", "")),
        ("a", ("a", "welcome", "")),
        (7, (7, "welcome", "")),
        (False, (False, "welcome", "")),
    ],
)
def test_data_calls_by_name_by_position_or_with_itself(data, result):
    assert result == bound(handler(mail), data).run()


@each("data", [None, "", {}, []])
def test_empty_data_calls_with_nothing(data):
    assert "called" == bound(handler(lambda: "called"), data).run()


@each("data", [{}, {"cc": 1}, {"to": 1, "cc": 2}, [], [1, 2, 3], None, {"": 1, "to": 1}])
def test_data_that_does_not_fit_is_a_bad_argument_before_the_handler_runs(data):
    with pytest.raises(BadArguments):
        bound(handler(mail), data)


def test_a_type_error_of_the_handler_itself_is_its_own():
    def broken() -> None:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        bound(handler(broken), None).run()


def test_a_handler_may_take_whatever_comes():
    def anything(*args: object, **kwargs: object) -> object:
        return args, kwargs

    assert ((1, 2), {}) == bound(handler(anything), [1, 2]).run()
    assert ((), {"a": 1, "b": 2}) == bound(handler(anything), {"a": 1, "b": 2}).run()


@each("name", ["self", "args", "kwargs", "name", "data"])
def test_a_handler_that_takes_any_name_takes_this_one(name):
    assert {name: 1} == bound(handler(lambda **kwargs: kwargs), {name: 1}).run()


def test_a_class_is_made_of_its_fields_and_handled():
    class Import(Job, name=fresh()):
        path: str
        lines: int = 0

        def handle(self) -> object:
            return self.path, self.lines

    task = bound(REGISTRY.find(Import.job_name), {"path": "/a"})

    assert ("/a", 0) == task.run()


@each("data", [{}, {"path": 1, "more": 2}, [1, 2, 3]])
def test_data_that_does_not_fit_a_class_is_a_bad_argument(data):
    class Import(Job, name=fresh()):
        path: str

        def handle(self) -> None: ...

    with pytest.raises(BadArguments):
        bound(REGISTRY.find(Import.job_name), data)


def test_the_hooks_of_a_function_get_its_arguments():
    calls: list[object] = []

    @job(fresh())
    def send(to: str) -> None: ...

    send.after_succeeded(lambda to: calls.append(("done", to)))
    send.after_failed(lambda error, to: calls.append((str(error), to)))
    task = bound(REGISTRY.find(send.name), {"to": "a"})
    assert task.after_succeeded
    task.after_succeeded()
    task.after_failed(ValueError("why"))

    assert [("done", "a"), ("why", "a")] == calls


def test_a_job_without_hooks_needs_none():
    task = bound(handler(mail), {"to": "a"})

    assert (None, None) == (task.after_succeeded, task.after_failed(ValueError()))


def test_the_hooks_of_a_class_are_its_methods():
    class Import(Job, name=fresh()):
        path: str

        def handle(self) -> None: ...

        def after_succeeded(self) -> object:
            return "done", self.path

        def after_failed(self, error: BaseException) -> object:
            return str(error), self.path

    task = bound(REGISTRY.find(Import.job_name), {"path": "/a"})

    assert [("done", "/a"), ("why", "/a")] == [task.after_succeeded(), task.after_failed(ValueError("why"))]


# Dispatching


def test_a_dispatch_pushes_the_arguments_by_name(queue):
    @job(fresh(), tries=3, timeout=30, backoff=[1, 5, 30], tags=["mail", "größe:1"])
    def send(to: str, template: str = "welcome", *, bcc: str = "") -> None: ...

    identity = send.dispatch("a@b.c", bcc="d")

    found = pushed(queue)
    assert (identity, identity, send.name, send.name) == (
        found["id"],
        found["uuid"],
        found["job"],
        found["displayName"],
    )
    assert {"to": "a@b.c", "bcc": "d"} == found["data"]
    assert ["mail", "größe:1"] == found["tags"]
    assert (3, 30, "1,5,30", 0) == (found["maxTries"], found["timeout"], found["backoff"], found["attempts"])


def test_what_was_dispatched_runs_as_it_was_called(queue):
    @job(fresh())
    def add(first: int, /, *others: int) -> int:
        return first + sum(others)

    add.dispatch(1, 2, 3)
    found = decode(queue.sizes().oldest or b"")

    assert 6 == bound(REGISTRY.find(found.name), found.data).run()


def test_keywords_of_any_name_are_dispatched_by_name(queue):
    @job(fresh())
    def note(**words: int) -> None: ...

    note.dispatch(a=1, b=2)

    assert {"a": 1, "b": 2} == pushed(queue)["data"]


def test_what_a_list_cannot_say_is_refused_where_it_is_dispatched(queue):
    @job(fresh())
    def add(*numbers: int, scale: int = 1) -> None: ...

    with pytest.raises(TypeError):
        add.dispatch(1, 2, scale=3)
    assert 0 == queue.size()


def test_arguments_that_do_not_fit_are_refused_where_they_are_dispatched(queue):
    @job(fresh())
    def send(to: str) -> None: ...

    with pytest.raises(TypeError):
        send.dispatch()  # type: ignore[call-arg]
    with pytest.raises(BadPayload):
        send.dispatch(object())  # type: ignore[arg-type]
    assert 0 == queue.size()


def test_a_job_goes_to_its_own_queue_or_to_the_chosen_one(queue):
    @job(fresh(), queue="mails")
    def send() -> None: ...

    send.dispatch()
    send.using(queue="high").dispatch()

    assert (1, 1, 0) == (queue.size("mails"), queue.size("high"), queue.size())


@each("delay", [60, timedelta(minutes=1)])
def test_a_job_dispatched_for_later_is_delayed(queue, delay):
    @job(fresh())
    def send(to: str) -> None: ...

    queue.clear()
    send.later(delay, "a")
    send.using(delay=delay).dispatch(to="a")

    assert (0, 2) == (queue.sizes().ready, queue.sizes().delayed)


def test_many_calls_are_pushed_at_once_in_their_order(queue):
    @job(fresh())
    def send(to: str) -> None: ...

    identities = send.bulk([{"to": number} for number in range(1_500)])

    assert 1_500 == len(set(identities)) == queue.size()
    assert (identities[0], {"to": 0}) == (pushed(queue)["id"], pushed(queue)["data"])


def test_a_class_is_dispatched_with_its_fields(queue):
    class Import(Job, name=fresh(), queue="imports", tries=2):
        path: str
        lines: list[int]

        def handle(self) -> None: ...

    identity = Import("/a", [1]).dispatch()

    found = pushed(queue, "imports")
    assert (identity, Import.job_name, 2, {"path": "/a", "lines": [1]}) == (
        found["id"],
        found["job"],
        found["maxTries"],
        found["data"],
    )


def test_a_class_may_be_dispatched_for_later_elsewhere_and_in_bulk(queue):
    class Import(Job, name=fresh(), queue="imports"):
        path: str

        def handle(self) -> None: ...

    Import("/a").later(60)
    Import("/b").using(queue="high", delay=60).dispatch()
    Import.bulk([Import("/c"), Import("/d")])

    assert (1, 2, 1) == (queue.sizes("imports").delayed, queue.sizes("imports").ready, queue.sizes("high").delayed)


# The queue itself


def test_a_push_returns_the_id_under_which_the_job_runs(queue):
    assert queue.push("Report@build", {"id": 7}) == decode(queue.sizes().oldest or b"").id


def test_a_pushs_options_are_in_its_payload(queue):
    queue.push("ok", options={"maxTries": 9, "retryUntil": 99})

    assert (9, 99) == (pushed(queue)["maxTries"], pushed(queue)["retryUntil"])


def test_a_delay_is_in_the_payload_in_whole_seconds(queue, server):
    queue.later(59.7, "ok")

    [raw] = server.zrange("laravel_database_queues:default:delayed", 0, -1)
    assert 60 == json.loads(raw)["delay"]


def test_a_bulk_push_keeps_names_and_order(queue):
    identities = queue.bulk([("a", 1), ("b", None)], queue="high")

    assert (2, identities[0], "a", 1) == (
        queue.size("high"),
        pushed(queue, "high")["id"],
        pushed(queue, "high")["job"],
        pushed(queue, "high")["data"],
    )


def test_a_push_of_no_jobs_is_no_job(queue):
    assert [] == queue.bulk([])
    assert 0 == queue.size()


def test_raw_bytes_are_pushed_as_they_are(queue):
    queue.push_raw(payload("a"))

    assert payload("a") == queue.sizes().oldest


def test_an_object_is_pushed_as_php_would(queue):
    identity = queue.push_object("App\\Jobs\\Mail", {"to": "é", "lines": [1, None]})

    found = decode(queue.sizes().oldest or b"")
    assert (identity, OBJECT_JOB, "App\\Jobs\\Mail", "App\\Jobs\\Mail") == (
        found.id,
        found.options.job,
        found.name,
        found.options.display_name,
    )
    assert {"to": "é", "lines": [1, None]} == command_of(found.data).arguments


def test_an_object_that_php_cannot_hold_is_refused(queue):
    with pytest.raises(PhpDataRefused):
        queue.push_object("App\\Jobs\\Mail", {"to": 2**63})
    assert 0 == queue.size()


def test_an_object_says_which_of_its_properties_are_not_public(queue):
    queue.push_object("J", {"a": 1, "b": 2, "c": 3}, protected=["b"], private=["c"])

    found = decode(queue.sizes().oldest or b"")
    assert 'O:1:"J":3:{s:1:"a";i:1;s:4:"\0*\0b";i:2;s:4:"\0J\0c";i:3;}' == found.data["command"]
    assert {"a": 1, "b": 2, "c": 3} == command_of(found.data).arguments


def test_a_property_that_php_has_left_out_is_said_to_have_its_default():
    name = f"App\\Jobs\\{fresh()}"

    @job(name)
    def sync(account: int, since: str) -> None: ...

    with pytest.raises(BadArguments, match="argument: 'since'; PHP omits properties"):
        bound(REGISTRY.find(name), {"account": 7})
    with pytest.raises(BadArguments, match=r"unexpected keyword argument 'x'$"):
        bound(REGISTRY.find(name), {"account": 7, "since": "now", "x": 1})


def test_a_property_that_is_not_there_is_not_private(queue):
    with pytest.raises(PhpDataRefused, match="there is no property 'b'"):
        queue.push_object("J", {"a": 1}, private=["b"])


def test_options_are_written_as_laravels_worker_reads_them(queue):
    when = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    options = {"tries": 3, "backoff": [1, 2.5, 1_234_567.0], "timeout": timedelta(minutes=1), "retryUntil": when}
    options["tags"] = ("mail",)

    queue.push_object("J", {}, options={**options, "maxExceptions": 2, "failOnTimeout": True})

    said = json.loads(queue.sizes().oldest or b"")
    assert (3, "1,2.5,1234567", 60.0, 1_893_553_445, 2, True) == tuple(
        said[key] for key in ("maxTries", "backoff", "timeout", "retryUntil", "maxExceptions", "failOnTimeout")
    )
    assert ["mail"] == said["tags"]


@each(
    ("options", "problem"),
    [
        ({"retries": 3}, "there is no option 'retries'; there are: maxTries, tries"),
        ({"tries": -1}, "maxTries cannot be -1"),
        ({"tags": "mail"}, "tags cannot be 'mail': give a list of at most 32 strings"),
        ({"maxTries": "many"}, "maxTries cannot be 'many'"),
        ({"timeout": "5m"}, "timeout '5m' is not a number of seconds"),
        ({"backoff": [1, "x"]}, "backoff '1,x' is not a list of seconds"),
    ],
)
def test_an_option_that_no_worker_would_take_is_refused(queue, options, problem):
    for push in (queue.push, queue.push_object):
        with pytest.raises(ValueError, match=problem):
            push("J", {}, options=options)
    assert 0 == queue.size()


def test_a_push_is_told_after_the_store_has_it(queue):
    told: list[tuple[str, str, int]] = []

    def listener(event: JobQueued) -> None:
        if not told:  # it stays for the tests that follow
            told.append((event.id, event.queue, queue.size(event.queue)))

    LISTENERS.add(JobQueued, listener)

    identity = queue.push("ok", queue="high")

    assert [(identity, "high", 1)] == told


def test_a_cleared_queue_is_empty(queue):
    queue.bulk([("a", 1), ("b", 2)])

    assert 2 == queue.clear()
    assert 0 == queue.size()


@each("delay", [float("nan"), float("inf"), 1e20, -1e20, None, date(2030, 1, 1)])
def test_a_delay_that_is_no_time_is_refused(queue, delay):
    with pytest.raises(ValueError, match="delay"):
        queue.push("ok", delay=delay)
    assert 0 == queue.size()


def test_a_delay_may_be_seconds_a_duration_or_a_moment():
    moment = datetime.now(UTC) + timedelta(minutes=1)
    until_then = seconds_until(moment)

    assert [60.0, 60.0] == [seconds_until(60), seconds_until(timedelta(minutes=1))]
    assert (moment - datetime.now(UTC)).total_seconds() <= until_then <= 60.0


def test_a_moment_that_has_passed_is_now():
    assert [0.0, 0.0] == [seconds_until(-5), seconds_until(datetime(2000, 1, 1))]


# Where to


def test_a_connection_is_opened_by_url(redis_url):
    queue = connect(redis_url, prefix="mine:")
    queue.push("ok")

    assert ("mine:", 1) == (queue.settings.prefix, queue.size())
    queue.close()


def test_a_connection_is_opened_by_a_configuration_file(redis_url, tmp_path):
    path = tmp_path / "pool.ini"
    path.write_text(f"[connection]\nurl = {redis_url}\nprefix = mine:\n")

    queue = connect(path)

    assert load(path).connections["default"] == queue.settings
    queue.close()


def test_a_connection_that_the_file_does_not_have_is_refused(tmp_path):
    path = tmp_path / "pool.ini"
    path.write_text("[pool]\n")

    with pytest.raises(QueuepoolError, match="other"):
        connect(path, connection="other")


def test_what_is_configured_is_where_dispatch_pushes_to(queue, connection):
    assert queue is connecting.default_queue()
    assert connection == replace(queue.settings, timeout=connection.timeout)


def test_what_is_configured_is_what_connect_leads_to_without_a_name(queue):
    with closing(connect()) as found:
        assert queue.settings == found.settings
    with closing(connect("sqlite:///elsewhere.db")) as other:
        assert queue.settings != other.settings


# The running job


def test_outside_of_a_job_none_is_running():
    with pytest.raises(QueuepoolError, match="no job"):
        current()


@pytest.fixture
def running() -> Iterator[Current]:
    found = Current(decode(payload("a", attempts=2, job="app.ok")), "high")
    set_current(found)
    yield found
    set_current(None)


def test_the_running_job_tells_what_it_is(running):
    assert ("a", "a", "app.ok", 2, "high") == (
        current().id,
        current().uuid,
        current().name,
        current().attempts,
        current().queue,
    )


def test_a_handler_may_rule_on_its_job_itself(running):
    rulings = []
    for rule in (lambda: current().release(10), current().delete):
        rule()
        rulings.append(current().verdict)

    assert [Release(10), Delete()] == rulings


def test_a_handler_may_fail_its_job_with_words_or_an_error(running):
    error = ValueError("why")
    current().fail("why")
    words = current().verdict
    current().fail(error)

    assert isinstance(words, Fail)
    assert isinstance(words.error, JobFailedByHand)
    assert Fail(error) == current().verdict


def test_what_the_package_offers_is_there():
    assert [] == [name for name in queuepool.__all__ if not hasattr(queuepool, name)]


def test_the_only_connection_of_a_file_needs_no_name(redis_url, tmp_path):
    (tmp_path / "pool.ini").write_text(f"[connection:redis]\nurl = {redis_url}\n")

    with closing(connect(tmp_path / "pool.ini")) as queue:
        assert "redis" == queue.settings.name


def test_a_connection_that_is_not_there_is_a_configuration_error_that_names_the_others(tmp_path):
    (tmp_path / "pool.ini").write_text("[connection:a]\nprefix = a\n[connection:b]\nprefix = b\n")

    with pytest.raises(ConfigError, match="only: a, b"):
        connect(tmp_path / "pool.ini")


@each(("name", "hint"), [("App\\Jobs\\Sparse", True), ("app.sparse", False), ("App\\Sparse@run", False)])
def test_a_property_that_a_php_object_lacks_is_told_with_the_reason_that_php_may_have(name, hint):
    @job(name)
    def sparse(to: str, template: str) -> None: ...

    with pytest.raises(BadArguments, match="missing a required argument: 'template'") as caught:
        bound(REGISTRY.find(name), {"to": "a"})

    assert hint == ("PHP omits properties that have their" in str(caught.value))
