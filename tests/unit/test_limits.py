"""Limits as they are declared: what is refused, with which words, and which places a call asks for."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest

from queuepool import Concurrency, Rate, job
from queuepool.errors import ConfigError
from queuepool.jobs.dispatch import places_of
from queuepool.jobs.limits import places_asked
from queuepool.payload.limits import PlaceAsked
from tests.support.each import each
from tests.support.samples import fresh


class Color(StrEnum):
    RED = "red"


def call(tenant: str, n: int = 5) -> None: ...


def key(value: object) -> str:
    [asked] = places_asked([Concurrency("import", 1, by="{tenant}")], call, [], {"tenant": value})
    return asked.key


@each(
    ["given", "words"],
    [
        ({"number": 0}, "its number cannot be 0: it is from 1 to 10000"),
        ({"number": -1}, "its number cannot be -1"),
        ({"number": 1_000_000}, "its number cannot be 1000000"),
        ({"number": True}, "its number cannot be True"),
        ({"name": ""}, "a limit cannot be named ''"),
        ({"name": "x" * 65}, "a limit cannot be named"),
        ({"name": "a=b"}, "a limit cannot be named 'a=b'"),
        ({"by": "tenant"}, "names no argument: write one in braces"),
        ({"by": "{a.b}"}, "{a.b} is not the name of an argument"),
        ({"by": "{a"}, "expected '}' before end of string"),
        ({"fair": 3}, "fair cannot be 3"),
    ],
)
def test_a_wrong_limit_is_refused_with_one_line(given, words):
    with pytest.raises(ValueError, match=r".") as refused:
        Concurrency(**{"name": "import", "number": 1, **given})

    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@each("per", [0, -1, None, "40d", "soon", True])
def test_a_wrong_period_is_refused(per):
    with pytest.raises(ValueError, match=r"per cannot be|is not a time"):
        Rate("stripe", 1, per)


@each(["per", "seconds"], [(90, 90.0), ("1m", 60.0), (timedelta(hours=1), 3600.0), (0.5, 0.5)])
def test_a_period_is_seconds_or_has_a_unit(per, seconds):
    assert seconds == Rate("stripe", 1, per).seconds


@each(
    ["limits", "words"],
    [
        ([Concurrency("nope", 1, by="{nope}")], "has no argument 'nope'"),
        ([Concurrency("twice", 1), Rate("twice", 1, 1)], "limits has 'twice' twice"),
        ("import", "give a list"),
        ([3], "limits cannot have 3"),
    ],
)
def test_limits_that_do_not_fit_a_job_are_refused_where_it_is_defined(limits, words):
    with pytest.raises(ConfigError, match=r".") as refused:
        job(fresh(), limits=limits)(call)

    assert words in str(refused.value)


def test_two_jobs_cannot_give_one_limit_other_numbers():
    name = fresh("limit")
    job(fresh(), limits=[Concurrency(name, 2)])(call)
    job(fresh(), limits=[Concurrency(name, 2)])(call)

    with pytest.raises(ConfigError, match=r"is 3 at a time for .*, but 2 at a time for"):
        job(fresh(), limits=[Concurrency(name, 3)])(call)


def test_any_value_makes_a_key_without_blanks_and_of_a_bounded_length():
    values: list[Any] = ["t1", 5, 5.0, True, Color.RED, "Müller", "a b", "x\0y", "k" * 10_000, "", "-", "#a", "a\nb"]
    keys = [key(value) for value in values]

    assert ["import=t1", "import=5", "import=5", "import=True", "import=red", "import=Müller"] == keys[:6]
    assert all(one.startswith("import=#") for one in keys[6:])
    assert len(set(keys[6:])) == len(keys[6:])
    assert all(len(one.encode()) < 100 and one.isprintable() and " " not in one for one in keys)


@each("value", [None, [1], {}])
def test_a_value_that_is_neither_text_nor_a_number_is_refused(value):
    with pytest.raises(ValueError, match="where text or a number is needed"):
        key(value)


def test_arguments_count_by_name_by_position_and_by_default():
    limits = [Concurrency("i", 2, by="{tenant}-{n}", fair="{n}"), Rate("r", 3, 10)]
    asked = (PlaceAsked("i=a-5", "5", 2), PlaceAsked("r", "-", 3, 10.0))

    assert asked == places_asked(limits, call, ["a"], {})
    assert asked == places_asked(limits, call, [], {"tenant": "a"})
    with pytest.raises(ValueError, match="has no argument 'tenant'"):
        places_asked(limits, call, [], {})


def test_a_dispatch_without_the_argument_is_a_type_error():
    name = fresh()
    job(name, limits=[Concurrency(fresh("limit"), 1, by="{tenant}")])(call)

    with pytest.raises(TypeError, match="tenant is None"):
        places_of(name, [Concurrency("i", 1, by="{tenant}")], {"tenant": None})
