"""Bad job definitions are refused where they are written: no job, no such option, nothing to call."""

from __future__ import annotations

import functools
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from queuepool import Job, Retry, exponential, job
from queuepool.errors import BadArguments, ConfigError, TimedOut, WorkerDied
from queuepool.jobs.job_options import seconds_until
from queuepool.jobs.registry import REGISTRY, unregistered
from tests.support.each import each
from tests.support.samples import fresh


@job
def bare(to: str) -> str:
    return to


@job()
def with_parentheses(to: str, *, bcc: str = "") -> str:
    return to + bcc


@job(fresh())
def any_arguments(*args: object, **kwargs: object) -> None: ...


class Greeting(Job, queue="mails"):
    to: str

    def handle(self) -> str:
        return self.to


class Base(Job):
    """Of others."""

    to: str


class Farewell(Base):
    def handle(self) -> None: ...


# Names


@each("made", [bare, with_parentheses])
def test_a_job_is_registered_under_its_module_and_name(made):
    assert made.name == f"{__name__}.{made.__name__}"
    assert made.name in REGISTRY.names()
    assert "a" == made("a")
    assert f"<job {made.name!r}>" == repr(made)


@each("made", [Greeting, Farewell])
def test_a_class_is_registered_under_its_module_and_name(made):
    assert made.job_name == f"{__name__}.{made.__name__}"
    assert made.job_name in REGISTRY.names()


def test_a_class_without_a_handle_is_the_base_of_others_and_no_job(queue):
    assert not [name for name in REGISTRY.names() if name.endswith("Base")]

    with pytest.raises(ConfigError, match=r"Base has no handle\(\)"):
        Base("a").dispatch()
    with pytest.raises(ConfigError, match=r"Base has no handle\(\)"):
        Base.bulk([Base("a")])
    assert 0 == queue.size()


@each(
    ("aliases", "problem"),
    [
        ("app.old", "aliases cannot be 'app.old': give a list of names"),
        ([""], "a job needs a name"),
        ([5], "a job needs a name"),
        (["a\nb"], "is not a job name"),
    ],
)
def test_aliases_are_a_list_of_names(aliases, problem):
    with pytest.raises(ConfigError, match=problem):
        job(fresh(), aliases=aliases)


def test_a_job_is_found_by_the_names_that_it_had_and_no_other_job_may_have_them(queue):
    first, second, name = fresh(), fresh(), fresh()

    class Renamed(Job, name=name, aliases=[first, second]):
        to: str

        def handle(self) -> str:
            return self.to

    assert {name} == {REGISTRY.find(one).name for one in (name, first, second)}
    assert {first, second}.isdisjoint(REGISTRY.names())
    assert [] == unregistered(REGISTRY, {"nightly": first})
    with pytest.raises(ConfigError, match=f"two jobs are registered as '{first}', which is an alias of '{name}'"):
        job(first)(Mailer.send_static)
    with pytest.raises(ConfigError, match=f"two jobs are registered as '{second}', which is an alias of '{name}'"):
        job(fresh(), aliases=[second])(Mailer.send_static)
    with pytest.raises(ConfigError, match=f"two jobs are registered as '{name}'$"):
        job(fresh(), aliases=[name])(Mailer.send_static)
    with pytest.raises(TypeError, match=f"^{first}: missing a required argument: 'to'"):
        queue.push(first)


# What is no job


class Mailer:
    def send(self, to: str) -> None: ...

    @staticmethod
    def send_static(to: str) -> None: ...

    @classmethod
    def send_of_class(cls, to: str) -> None: ...

    @property
    def sender(self) -> str:
        return "a"


def generate():
    yield 1


@each(
    ("function", "problem"),
    [
        (lambda: None, "a lambda has no name"),
        (functools.partial(print, "a"), "has no name"),
        (Mailer.send, "'Mailer.send' is a method, and a worker has no object to call it on"),
        (generate, "'generate' is a generator"),
        (3, "'3' is not a function"),
        (
            Mailer.__dict__["send_of_class"],
            "'Mailer.send_of_class' is not a function but a classmethod, which a worker",
        ),
        (Mailer.__dict__["sender"], "is not a function but a property, which a worker cannot call: write a plain"),
        (bare, rf"<job '{__name__}.bare'> is a job already: one @job is enough"),
        (Greeting, "Greeting'> is a job already: one @job is enough, and a Job class needs none"),
    ],
)
def test_what_cannot_be_a_job_is_refused_where_it_is_written(function, problem):
    for decorate in (job(), job):
        with pytest.raises(ConfigError, match=problem):
            decorate(function)


@each("name", ["", " ", "a\nb", "\0", "\ud800"])
def test_a_name_that_no_payload_can_hold_is_refused_where_it_is_written(name):
    with pytest.raises(ConfigError, match="name"):
        job(name)(Mailer.send_static)
    with pytest.raises(ConfigError, match="name"):
        type("Named", (Job,), {"handle": lambda self: None}, name=name)


def test_a_function_inside_of_a_function_needs_a_name_of_its_own():
    def inner() -> None: ...

    with pytest.raises(ConfigError, match="is defined inside a function"):
        job(inner)
    name = fresh()
    assert name == job(name)(inner).name


def test_a_static_method_can_be_a_job():
    assert f"{__name__}.Mailer.send_static" == job()(Mailer.send_static).name


def test_a_handle_takes_nothing_but_the_job():
    with pytest.raises(ConfigError, match="handle takes 'to': a job's arguments are its fields"):

        class Send(Job, name=fresh()):
            def handle(self, to: str) -> None: ...


# Options


@each(
    ("options", "problem"),
    [
        ({"retries": 3}, "there is no option 'retries': did you mean 'tries'"),
        ({"time_out": 3}, "did you mean 'timeout'"),
        ({"priority": 3}, "there is no option 'priority'; there are: queue, tries"),
        ({"queue": "a,b"}, "queue: 'a,b' is not a queue name"),
        ({"queue": "a b"}, "queue: 'a b' is not a queue name"),
        ({"queue": ""}, "queue: '' is not a queue name"),
        ({"queue": 3}, "queue cannot be 3"),
        ({"timeout": "soon"}, "timeout: 'soon' is not a time"),
        ({"tags": "mail"}, "tags cannot be 'mail': give a list"),
        ({"tags": ["x"] * 33}, "at most 32 strings"),
        ({"tags": ["a", "b\n"]}, "is not a string of 1 to 128 printable characters"),
        ({"backoff": [1, "x"]}, "backoff: 'x' is not a time"),
        ({"timeout": timedelta(seconds=-1)}, "timeout cannot be"),
        ({"backoff": {1: 2}}, r"backoff cannot be {1: 2}: write a delay, a list, or exponential\(1, 300\)"),
        ({"backoff": exponential}, "backoff cannot be <function exponential"),
        ({"backoff": [1, None]}, "backoff cannot be None"),
        ({"backoff": True}, "backoff cannot be True"),
        ({"jitter": True}, "there is no option 'jitter'"),
        ({"expires": 0}, "expires must be above 0"),
        ({"expires": "soon"}, "expires: 'soon' is not a time"),
        ({"expires": True}, "expires cannot be True"),
        ({"expires": "1h", "schedule": "1m"}, "expires cannot be combined with schedule"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written(options, problem):
    with pytest.raises(ConfigError, match=problem):
        job(fresh(), **options)


@pytest.mark.bad_input("B115")
@each(
    ("options", "problem"),
    [
        ({"retry_on": "ValueError"}, r"retry_on cannot have 'ValueError': write classes: \(TimeoutError, "),
        ({"fail_on": ["ValueError"]}, "fail_on cannot have 'ValueError'"),
        ({"retry_on": (int,)}, "retry_on cannot have <class 'int'>"),
        ({"retry_on": 3}, "retry_on cannot have 3"),
        ({"fail_on": ValueError("why")}, r"fail_on cannot have ValueError\('why'\)"),
        ({"retry_on": ()}, "retry_on is empty: name an exception, or leave it out"),
        ({"fail_on": []}, "fail_on is empty"),
        ({"retry_on": OSError, "fail_on": OSError}, "OSError is also in fail_on, so it would never be retried"),
        ({"retry_on": TimeoutError, "fail_on": OSError}, "TimeoutError is a OSError, which is in fail_on"),
        ({"retry_on": BadArguments}, "retry_on: BadArguments is a JobError, which always fails a job"),
        ({"retry_on": TimedOut}, "retry_on cannot have TimedOut, which no handler raises: fail_on_timeout and"),
        ({"fail_on": WorkerDied}, "fail_on cannot have WorkerDied, which no handler raises"),
        ({"retry_on": Retry}, "retry_on cannot have Retry: raising it already asks for another try"),
        ({"fail_on": (Retry,)}, "fail_on cannot have Retry"),
        ({"retry_on": {}}, "retry_on is empty"),
        ({"retry_on": {"OSError": 1}}, "retry_on cannot have 'OSError'"),
        ({"retry_on": {OSError: "soon"}}, "retry_on: the delay of OSError: 'soon' is not a time"),
        ({"retry_on": {OSError: -1}}, "retry_on: the delay of OSError cannot be -1"),
    ],
)
def test_exceptions_that_a_job_cannot_name_are_refused_where_they_are_written(options, problem):
    with pytest.raises(ConfigError, match=problem):
        job(fresh(), **options)
    with pytest.raises(ConfigError, match=problem):
        type("Named", (Job,), {"handle": lambda self: None}, name=fresh(), **options)


@pytest.mark.bad_input("B116")
@each(
    ("options", "problem"),
    [
        ({"soft_timeout": -1}, "soft_timeout cannot be -1"),
        ({"soft_timeout": True}, "soft_timeout cannot be True"),
        ({"soft_timeout": "soon"}, "soft_timeout: 'soon' is not a time"),
        ({"soft_timeout": 30, "timeout": 30}, r"soft_timeout \(30\) is not below timeout \(30\): it would never be"),
        ({"soft_timeout": "1m", "timeout": 30}, r"soft_timeout \(60\) is not below timeout \(30\)"),
    ],
)
def test_a_soft_timeout_that_is_never_reached_is_refused_where_it_is_written(options, problem):
    with pytest.raises(ConfigError, match=problem):
        job(fresh(), **options)


def test_one_exception_or_several_may_be_named_and_a_soft_timeout_beside_no_timeout():
    def run() -> None: ...

    options = job(fresh(), retry_on=OSError, fail_on=[TimeoutError, KeyError], soft_timeout="5s", timeout=0)(
        run
    ).options

    assert ((OSError,), (TimeoutError, KeyError), 5.0) == (options.retry_on, options.fail_on, options.soft_timeout)
    assert ((BaseException,), ()) == (bare.options.retry_on, bare.options.fail_on)
    assert (BaseException,) == job(fresh(), retry_on=None, fail_on=BaseException)(run).options.retry_on


@pytest.mark.bad_input("B115")
@each(
    ("make", "problem"),
    [
        (lambda: exponential(0, 300), r"backoff: exponential\(0, 300\) must begin above 0"),
        (lambda: exponential(300, 1), r"backoff: exponential\(300, 1\) must begin above 0 and end no lower"),
        (lambda: exponential("soon", 1), "backoff: 'soon' is not a time"),
        (lambda: exponential(1, None), "backoff cannot be None"),
        (lambda: exponential(1, 300, jitter=2), "jitter cannot be 2: give True or False"),
    ],
)
def test_a_backoff_that_does_not_grow_is_refused_where_it_is_written(make, problem):
    with pytest.raises(ConfigError, match=problem):
        make()


@each("after", ["soon", float("inf"), object()])
def test_a_retry_at_no_time_is_refused_where_it_is_raised(after):
    with pytest.raises(ValueError, match=r"is not a delay|is not a time|is too long"):
        Retry(after=after)


def test_what_laravel_reads_of_a_backoff_is_the_same_each_time(queue):
    run = job(fresh(), tries=9, backoff=exponential(1, timedelta(minutes=5), jitter=True))(lambda: None)
    assert (Retry("why", after=timedelta(minutes=1)).after, Retry().after) == (60.0, None)

    run.dispatch()
    assert b'"backoff":"1,2,4,8,16,32,64,128,256,300"' in queue.sizes().oldest
    queue.clear()
    queue.push("other.service", options={"backoff": exponential(1.5, 3)})
    assert b'"backoff":"1.5,3"' in queue.sizes().oldest
    with pytest.raises(ValueError, match="only the worker adds jitter"):
        queue.push("other.service", options={"backoff": exponential(1, 3, jitter=True)})


def test_times_may_be_written_as_people_do():
    def run() -> None: ...

    options = job(fresh(), timeout=timedelta(minutes=2), backoff=["30s", timedelta(minutes=1), 90])(run).options

    assert (120.0, (30.0, 60.0, 90.0)) == (options.timeout, options.backoff)
    assert (5.0,) == job(fresh(), backoff="5s")(run).options.backoff
    assert 300.0 == seconds_until("5m")


@each("name", ["a,b", "a b", ""])
def test_a_queue_that_no_pool_can_serve_is_refused_at_the_dispatch(queue, name):
    with pytest.raises(ConfigError, match="is not a queue name"):
        bare.using(queue=name)
    with pytest.raises(ConfigError, match="is not a queue name"):
        Greeting("a").using(queue=name)


# Arguments


@pytest.mark.parametrize("call", [{}, {"to": "a", "cc": "b"}, [], ["a", "b"], {"bcc": "a"}])
def test_bulk_looks_at_arguments_as_dispatch_does_and_pushes_all_or_none(queue, call):
    with pytest.raises(TypeError, match="argument"):
        with_parentheses.bulk([{"to": "a"}, call])
    assert 0 == queue.size()

    assert 2 == len(with_parentheses.bulk([{"to": "a"}, ["b"]]))


def test_a_function_of_any_arguments_is_called_as_it_was(queue):
    given: list[Any] = [((), {"a": 1, "b": 2}), ((1, 2), {})]
    for args, kwargs in given:
        any_arguments.dispatch(*args, **kwargs)
    task = [any_arguments.bind(*args, **kwargs) for args, kwargs in given]

    assert given == [(one.args, one.kwargs) for one in task]
    assert b'"data":{"a":1,"b":2}' in queue.sizes().oldest
    with pytest.raises(TypeError, match="cannot combine them with keywords"):
        any_arguments.dispatch(1, b=2)


# Programs


PROGRAM = """
from queuepool import Job, configure, job

@job
def send(to: str) -> None: ...

class Import(Job):
    def handle(self) -> None: ...

if __name__ == "__main__":
    configure(%r)
    for dispatch in (lambda: send.dispatch("a"), lambda: Import().dispatch()):
        try:
            print(dispatch() and send.name)
        except Exception as error:
            print(type(error).__name__, error)
"""


def ran(folder: Path, url: str, *how: str) -> str:
    (folder / "shop.py").write_text(PROGRAM % url)
    return subprocess.run([sys.executable, *how], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_job_of_the_program_itself_is_refused_at_the_dispatch_with_what_to_do(redis_url, tmp_path):
    said = ran(tmp_path, redis_url, "shop.py")

    assert 2 == said.count("is defined in shop.py, which runs as __main__: import it from its module")
    assert 2 == said.count("; put what the module runs as a program under if __name__ == '__main__', since a worker")
    assert 2 == said.count("ConfigError @job: ")


@pytest.mark.thorough("what else is run is refused in the test above")
def test_a_module_that_is_run_by_its_name_has_it(redis_url, tmp_path):
    assert "shop.send\nshop.send\n" == ran(tmp_path, redis_url, "-m", "shop")
