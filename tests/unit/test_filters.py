"""What fits a filter: arguments of Python's and of PHP's jobs, names, tags, times; and filters that are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.payload.command import Commands
from queuepool.payload.envelope import OBJECT_JOB
from queuepool.payload.php_values import PhpEnum, PhpObject, serialize
from queuepool.search.filters import Condition, Filter, checked_path, moment
from queuepool.search.found import FoundJob, plain
from queuepool.stores.contract import ShelfJob
from tests.support.each import each
from tests.support.effort import effort
from tests.support.samples import payload

ORDER = {"customer": 4711, "lines": [{"sku": "A1"}, {"sku": "B2"}], "paid": True, "note": None, "total": 10.5}


def found(raw: bytes) -> FoundJob:
    return FoundJob.waiting(ShelfJob(raw, "ready"), "default", Commands())


def python_job(**arguments: Any) -> FoundJob:
    return found(payload("a", data=arguments))


def php_job(**properties: Any) -> FoundJob:
    command = serialize(PhpObject("App\\Jobs\\Charge", properties))
    data = {"commandName": "App\\Jobs\\Charge", "command": command}
    return found(
        json.dumps({"uuid": "a", "displayName": "App\\Jobs\\Charge", "job": OBJECT_JOB, "data": data}).encode()
    )


def fits(job: FoundJob, *where: str, **other: Any) -> bool:
    return Filter(where=tuple(map(Condition.parsed, where)), **other).matches(job)


@each(
    ("where", "is_fit"),
    [
        ("order.customer=4711", True),
        ("order.customer=471", False),
        ("order.customer=471*", True),
        ("customer=4711", False),
        ("order.lines.sku=B2", True),
        ("order.lines.1.sku=B2", True),
        ("order.lines.0.sku=B2", False),
        ("order.paid=true", True),
        ("order.paid=tru*", True),
        ("order.paid=1", False),
        ("order.note=null", True),
        ("order.total=10.5", True),
        ("ids=3", True),
        ("ids.0=3", False),
        ("ids.1=3", True),
        ("ids.7=3", False),
        ("a.b=dotted", True),
        ("name=Ünal = 100 %", True),
        ("order=4711", False),
        ("order.customer.deeper=4711", False),
    ],
)
def test_an_argument_is_found_by_its_path(where, is_fit):
    job = python_job(order=ORDER, ids=[2, 3], name="Ünal = 100 %", **{"a.b": "dotted"})

    assert is_fit == fits(job, where)


@each(
    ("where", "is_fit"),
    [
        ("order.customer=4711", True),
        ("order.customer=47", False),
        ("state=Paid", True),
        ("order.id=9", False),
        ("customer=4711", False),
        ("tags.0=vip", True),
    ],
)
def test_a_property_of_a_php_job_is_found_by_its_path(where, is_fit):
    order = PhpObject("App\\Models\\Order", {"customer": 4711, "lines": ["x"]})

    assert is_fit == fits(php_job(order=order, state=PhpEnum("App\\State", "Paid"), tags=["vip"]), where)


NAMES = st.sampled_from(["customer", "id", "a.b", "customer_id"])
WORDS = st.sampled_from(["7", "x7", "7 x", "Paid", "a:7", 'q"7', "é7"])
SINGLE = st.one_of(st.integers(-9, 99), WORDS, st.booleans(), st.none())
VALUES = st.recursive(
    SINGLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)  # fmt: skip


@effort(100)
@given(data=st.dictionaries(NAMES, VALUES, max_size=4), indent=st.sampled_from([None, 1]))
def test_the_quick_look_at_the_bytes_leaves_out_nothing_that_fits(data, indent):
    spaced = found(json.dumps({"job": "x", "data": data}, indent=indent, ensure_ascii=False).encode())
    for job in (spaced, python_job(**data), php_job(**data, state=PhpEnum("App\\State", "Paid"))):
        for path in ("customer", "id", "a.b", "customer.id", "id.0", "a.b.customer_id", "state"):
            for word in ("7", "7*", "x7", "Pai*", "null", "nu*", "t*", "1", "-7", "é*"):
                condition = Condition.parsed(f"{path}={word}")
                assert condition.holds(job.arguments) <= Filter(where=(condition,)).matches(job)


@each("where", ["customer=7", "order.customer=7", "kind=seven*"])
def test_a_value_that_stands_elsewhere_costs_no_look_into_the_payload(where):
    for job in (python_job(order={"customer": 17, "kind": "six"}, number=7, other="seven"),
                php_job(order={"customer": "x7", "kind": "six"}, number=7, other="seven")):  # fmt: skip
        assert not fits(job, where)
        assert "payload" not in vars(job)


def test_all_parts_of_a_filter_must_hold():
    job = found(payload("a", data={"a": 1, "b": "x/y"}, tags=["vip:1"], createdAt=1000))

    assert fits(job, "a=1", "b=x/y", name="app.*", tag="vip*", since=1000.0, until=1000.0, search='"b"')
    assert not fits(job, "a=1", "b=x")
    assert not any(fits(job, "a=1", **other) for other in (
        {"name": "app"}, {"tag": "vip"}, {"since": 1000.5}, {"until": 999.5}, {"search": "nowhere"}, {"error": "x"},
    ))  # fmt: skip
    assert fits(job, id="a")
    assert not fits(job, id="b")


def test_a_text_is_found_however_json_writes_it():
    for raw in (payload("a", data="Ünal/é"), json.dumps({"job": "x", "data": "Ünal/é"}).replace("/", "\\/").encode()):
        assert fits(found(raw), search="Ünal/é")
        assert not fits(found(raw), search="unal")


def test_what_no_job_can_be_fits_only_by_its_text():
    for raw in (b"\xff\0", b'{"job":', b"[" * 5000, b'{"job":7}', b""):
        assert not fits(found(raw), "a=1")
        assert fits(found(raw), search=raw[:1].decode("latin-1")) == (raw[:1].isascii())
        assert ("", None, 32) == (found(raw).name, found(raw).arguments, len(found(raw).id))


def test_hostile_arguments_cost_no_more_than_they_are_long():
    deep: Any = 7
    for _ in range(900):
        deep = [deep]
    job = found(payload("a", data={"a": deep, "b": [{"c": "1"}] * 50_000}))

    assert not fits(job, "a.b.c=7")
    assert fits(job, "b.c=1")
    assert "…" in json.dumps(plain(job.arguments), ensure_ascii=False)
    bomb = 'O:1:"A":1:{s:1:"a";a:999999999:{}}'
    closed = found(json.dumps({"job": OBJECT_JOB, "data": {"commandName": "A", "command": bomb}}).encode())
    assert not fits(closed, "a=7")
    assert not closed.is_closed  # the bytes alone say that it does not fit
    assert not fits(closed, "a=999999999")
    assert closed.is_closed


def test_arguments_are_shown_as_json_can_hold_them():
    job = php_job(rate=float("inf"), state=PhpEnum("App\\State", "Paid"), items={1: "a", 5: PhpObject("X", {"b": "é"})})

    assert {"rate": "inf", "state": "Paid", "items": {"1": "a", "5": {"b": "é"}}} == plain(job.arguments)


def test_an_encrypted_job_is_not_left_out_for_its_bytes():
    sealed = found(payload("a", data={"qp_encrypted": "eyJpdiI6Ii4uLiJ9"}))

    assert not fits(sealed, "customer=4711")
    assert sealed.is_closed


@each("raw", ["customer", "=4711", "a..b=1", ".a=1", "", "x=" + "1" * 200])
def test_what_is_no_condition_is_refused(raw):
    with pytest.raises(ValueError):
        Condition.parsed(raw)


@each("raw", ["", "a.", ".", "a" * 201])
def test_what_is_no_path_is_refused(raw):
    with pytest.raises(ValueError):
        checked_path(raw)


@each(
    ("raw", "at"),
    [
        ("2h", 2800.0),
        ("90", 9910.0),
        ("1970-01-01T01:00", 3600.0),
        ("1970-01-01 01:00:00+01:00", 0.0),
        ("1970-01-02", 86400.0),
    ],
)
def test_a_time_is_a_moment_or_how_long_ago_it_was(raw, at):
    assert at == moment(raw, 10_000.0)


@each("raw", ["yesterday", "2026-13-01", "-1h", "", "9999999999d"])
def test_what_is_no_time_is_refused(raw):
    with pytest.raises(ValueError):
        moment(raw, 10_000.0)


def test_jobs_are_counted_by_what_they_are():
    job = found(payload("a", data={"customer": [4711, 12], "deep": {}}, tags=["x", "y"]))

    assert [["app.ok"], ["default"], ["ready"], ["x", "y"], ["-"], ["-"]] == [
        list(job.facets(by)) for by in ("name", "queue", "state", "tag", "error", "deep")
    ]
    assert ["-"] == list(job.facets("customer"))
    assert ["4711"] == list(job.facets("customer.0"))


def test_what_jobs_are_counted_by_is_whole_unless_it_is_very_long():
    long, longer = "x" * 500, "x" * 501
    job = python_job(long=long, longer=longer)

    assert [long, f"{'x' * 499}…"] == [text for by in ("long", "longer") for text in job.facets(by)]
