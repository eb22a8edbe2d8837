"""Calls that do not fit are refused where they are pushed: wrong arguments, and for ``bulk`` what is no list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from queuepool import Job, job
from tests.support.each import each
from tests.support.samples import fresh

NAME, LETTER, GIVEN = f"{__name__}.two", f"{__name__}.Letter", f"shop.{fresh()}"


@job
def two(a: int, b: int = 0) -> None: ...


@job
def any_words(**words: object) -> None: ...


class Letter(Job):
    to: str

    def handle(self) -> None: ...


class Parcel(Letter, name=f"shop.{fresh()}"):
    def handle(self) -> None: ...


NO_LISTS = [{"a": 1}, MappingProxyType({"a": 1}), "ab", "", b"ab", bytearray(b"ab"), 5, None]


def awaited(bulk: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def run(calls: object) -> Any:
        return await bulk(calls)

    return lambda calls: asyncio.run(run(calls))


BULKS = [two.bulk, two.using(delay=5).bulk, awaited(two.abulk), awaited(two.using(delay=5).abulk)]


@each("bulk", BULKS)
@each("calls", NO_LISTS)
def test_bulk_of_one_call_is_no_call_for_each_key_or_letter(queue, bulk, calls):
    words = f"{NAME}: bulk takes a list of dicts or lists of arguments, not "
    with pytest.raises(TypeError, match=words + type(calls).__name__):
        bulk(calls)
    assert 0 == queue.clear()


@each("bulk", BULKS)
@each("wrong", ["cd", b"cd", 3])
def test_a_call_of_bulk_that_is_no_dict_or_list_is_refused_with_its_position(queue, bulk, wrong):
    words = rf"{NAME}: bulk takes a list of dicts or lists of arguments, but \[1\] is of type {type(wrong).__name__}"
    with pytest.raises(TypeError, match=words):
        bulk([{"a": 1}, wrong])
    assert 0 == queue.clear()


@each("bulk", BULKS)
@each("several", [list, tuple, iter, lambda calls: (call for call in calls)])
def test_bulk_takes_any_iterable_of_dicts_and_lists(queue, bulk, several):
    assert 4 == len(bulk(several([{"a": 1}, [1, 2], (1, 2), MappingProxyType({"b": 1, "a": 2})])))
    assert 4 == queue.clear()


@each("bulk", [Letter.bulk, awaited(Letter.abulk)])
@each("jobs", [*NO_LISTS, Letter("a")])
def test_bulk_of_a_job_class_takes_its_objects_in_a_list(queue, bulk, jobs):
    with pytest.raises(TypeError, match=f"{LETTER}: bulk takes a list of Letter objects, not {type(jobs).__name__}"):
        bulk(jobs)
    assert 0 == queue.clear()


@each("bulk", [Parcel.bulk, awaited(Parcel.abulk)])
@each("wrong", ["cd", {"to": "a"}, Letter("a")])
def test_bulk_of_a_job_class_takes_no_other_objects(queue, bulk, wrong):
    with pytest.raises(
        TypeError, match=rf"takes a list of Parcel objects, but \[1\] is of type {type(wrong).__name__}"
    ):
        bulk(iter([Parcel("a"), wrong]))
    assert 0 == queue.clear()


@each("jobs", [*NO_LISTS, {NAME: {"a": 1}}])
@each("name", ["bulk", "abulk"])
def test_bulk_by_name_takes_pairs_in_a_list(queue, name, jobs):
    bulk = awaited(queue.abulk) if name == "abulk" else queue.bulk
    with pytest.raises(TypeError, match=rf"^bulk takes a list of \(name, data\), not {type(jobs).__name__}"):
        bulk(jobs)


@each("wrong", ["cd", NAME, (NAME,), (NAME, {}, 3), {"a": 1, "b": 2}])
def test_bulk_by_name_takes_nothing_but_pairs(queue, wrong):
    with pytest.raises(
        TypeError, match=rf"^bulk takes a list of \(name, data\), but \[1\] is of type {type(wrong).__name__}"
    ):
        queue.bulk([("elsewhere.job", None), wrong])
    assert 0 == queue.clear()


# Arguments


@each(
    "dispatch",
    [
        lambda: two.dispatch(b=1),  # type: ignore[call-arg]
        lambda: two.later(5, b=1),  # type: ignore[call-arg]
        lambda: two.bulk([{"a": 1}, {"b": 1}]),
        lambda: asyncio.run(two.adispatch(b=1)),  # type: ignore[call-arg]
        lambda: asyncio.run(two.abulk([{"a": 1}, {"b": 1}])),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_name_of_the_job(queue, dispatch):
    with pytest.raises(TypeError, match=f"^{NAME}: missing a required argument: 'a'$"):
        dispatch()
    assert 0 == queue.clear()


@job
def three(to: str, subject: str, /, body: str) -> None: ...


@each(
    ("call", "problem"),
    [
        (lambda: two.dispatch(aa=1), "missing a required argument: 'a'; got an unexpected keyword argument 'aa': did"),
        (lambda: three.dispatch("a", bodi="b"), "missing required arguments: 'subject', 'body'; got an unexpected key"),
        (lambda: three.dispatch("a", subject="b", body="c"), "'subject' parameter is positional only"),
        (lambda: two.dispatch(1, 2, 3, c=4), "too many positional arguments"),
        (lambda: two.bulk([{"b": 1, "c": 2}]), "missing a required argument: 'a'; got an unexpected keyword argument"),
    ],
)
def test_all_that_does_not_fit_is_named_at_once(queue, call, problem):
    with pytest.raises(TypeError, match=rf"^{__name__}\.(two|three): {problem}"):
        call()
    assert 0 == queue.clear()


# Pushes by name


class Held(NamedTuple):
    data: object
    problem: str


WRONG = [
    Held({"zz": 1}, "missing a required argument: 'a'; got an unexpected keyword argument 'zz'"),
    Held(
        {"aa": 1, "z": 2},
        "missing a required argument: 'a'; got an unexpected keyword argument 'aa': did you mean 'a'.; "
        "got an unexpected keyword argument 'z'",
    ),
    Held({"a": 1, "zz": 1}, "got an unexpected keyword argument 'zz'"),
    Held({}, "missing a required argument: 'a'"),
    Held(None, "missing a required argument: 'a'"),
    Held(MappingProxyType({"b": 1}), "missing a required argument: 'a'"),
]


@each(("data", "problem"), WRONG)
@each(
    "push",
    [
        lambda queue, data: queue.push(NAME, data),
        lambda queue, data: queue.push(NAME, data, options={"tries": 2}, encrypted=True, unique_id="1"),
        lambda queue, data: queue.later(5, NAME, data),
        lambda queue, data: queue.bulk([("elsewhere.job", {"zz": 1}), (NAME, data)]),
        lambda queue, data: asyncio.run(queue.apush(NAME, data)),
        lambda queue, data: asyncio.run(queue.abulk([(NAME, data)])),
    ],
)
def test_a_push_by_name_of_a_job_known_here_is_refused_as_its_dispatch_is(queue, push, data, problem):
    with pytest.raises(TypeError, match=f"^{NAME}: {problem}$"):
        push(queue, data)
    assert 0 == queue.clear()


def test_a_job_class_is_looked_at_by_its_fields_and_not_made(queue):
    with pytest.raises(TypeError, match=f"^{LETTER}: got an unexpected keyword argument 'zz'"):
        queue.push(LETTER, {"to": "a", "zz": 1})

    queue.push(LETTER, {"to": "a"})
    queue.push(f"{__name__}.any_words", {"x": 1})
    assert 2 == queue.clear()


@each(
    ("name", "data"),
    [
        ("elsewhere.job", {"zz": 1}),
        (NAME, {"a": 1}),
        (NAME, [1]),
        (NAME, [1, 2, 3]),  # a list may be for a worker of Laravel's
        (NAME, "text"),
        ("App\\Jobs\\Two", {"zz": 1}),
        ("Two@handle", {"zz": 1}),
        (GIVEN, {"zz": 1}),
    ],
)
@pytest.mark.usefixtures("names_by_hand")
def test_what_may_be_for_other_workers_is_pushed_as_it_is(queue, name, data):
    queue.push(name, data)
    queue.bulk([(name, data)])

    assert 2 == queue.clear()


@pytest.fixture(scope="module")
def names_by_hand() -> None:
    """Another service, or PHP, may have a job of such a name, too, which takes other data than the handler here."""
    for name in ("App\\Jobs\\Two", "Two@handle", GIVEN):
        job(name)(lambda a: None)
