"""Attempts are counted by splicing bytes: for any JSON object, nothing else in it changes."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from queuepool.build import Stores
from queuepool.errors import BadPayload
from queuepool.payload import decode
from queuepool.stores.base import Lease, Quarantined

MANY = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
MOST = 65_534

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = texts | st.sampled_from(["attempts", "id", "delay", '"attempts":0', 'x","attempts":7}', "attempts\\"])
integers = st.integers(-(2**70), 2**70)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | integers | floats | texts | st.sampled_from(['"attempts":0}', "attempts", "\\"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
#: the fields besides the attempts, each key once
others = st.dictionaries(keys.filter(lambda key: key != "attempts"), values, max_size=6)


@dataclass(frozen=True)
class Style:
    """How a JSON writer writes."""

    ascii: bool
    comma: str
    colon: str
    slashes: bool = False

    def written(self, value: object) -> str:
        text = json.dumps(value, ensure_ascii=self.ascii, separators=(self.comma, self.colon))
        return text.replace("/", "\\/") if self.slashes else text

    def field(self, key: str, value: object) -> str:
        return self.written(key) + self.colon + self.written(value)


PHP = Style(ascii=False, comma=",", colon=":", slashes=True)
PYTHON = Style(ascii=True, comma=", ", colon=": ")
styles = st.sampled_from(
    [PHP, PYTHON, Style(ascii=True, comma=",", colon=":"), Style(ascii=False, comma=" ,", colon=" :")]
)


@st.composite
def anywhere(draw: st.DrawFn) -> tuple[str, int]:
    """A payload with ``@@`` where its attempts stand: before, between or behind its other fields."""
    style, fields = draw(styles), list(draw(others).items())
    place = draw(st.integers(0, len(fields)))
    parts = [style.field(key, value) for key, value in fields]
    parts.insert(place, style.written("attempts") + style.colon + "@@")
    padding = draw(st.sampled_from(["", " ", "\n\t"]))
    return padding + "{" + padding + style.comma.join(parts) + padding + "}" + padding, draw(st.integers(0, MOST))


LARAVEL_8 = [
    "uuid",
    "displayName",
    "job",
    "maxTries",
    "maxExceptions",
    "failOnTimeout",
    "backoff",
    "timeout",
    "data",
    "id",
]
LARAVEL_13 = [*LARAVEL_8[:8], "retryUntil", "deleteWhenMissingModels", "data", "createdAt", "tags", "id"]


@st.composite
def laravels(draw: st.DrawFn) -> tuple[str, int]:
    """A payload in the order of Laravel 8 or 13, whose delay comes last; data of any kind."""
    is_new = draw(st.booleans())
    given = {"data": draw(values), "createdAt": 1_754_500_000, "failOnTimeout": False, "tags": draw(values)}
    parts = [PHP.field(key, given.get(key, draw(st.none() | texts))) for key in (LARAVEL_13 if is_new else LARAVEL_8)]
    parts.append('"attempts":@@')
    if is_new:
        parts.append(f'"delay":{draw(st.sampled_from(["null", "0", "86400"]))}')
    return "{" + ",".join(parts) + "}", draw(st.integers(0, MOST))


def as_bytes(template: str, attempts: object) -> bytes:
    head, _, tail = template.rpartition("@@") if template.count("@@") == 1 else cut(template)
    return f"{head}{attempts}{tail}".encode()


def cut(template: str) -> tuple[str, str, str]:
    """Where a text of the payload holds ``@@`` too, the attempts are the one behind their key."""
    for mark in ('"attempts":@@', '"attempts": @@', '"attempts" :@@'):
        head, found, tail = template.partition(mark)
        if found:
            return head + mark[:-2], "@@", tail
    raise AssertionError(template)


@pytest.fixture
def store(stores: Stores) -> Any:
    return stores.queue


def pushed_and_reserved(store: Any, raw: bytes) -> Any:
    store.clear("default")
    store.push("default", [raw])
    [lease] = store.reserve(["default"], 1, 1).leases
    return lease


@MANY
@given(sample=anywhere() | laravels())
@example(sample=('{"attempts":@@}', 0))
@example(sample=('{"data":{"attempts":1},"attempts":@@,"x":[{"attempts":2}]}', 3))
def test_a_reservation_raises_the_top_level_attempts_and_no_other_byte(store, sample):
    template, attempts = sample

    lease = pushed_and_reserved(store, as_bytes(template, attempts))

    assert as_bytes(template, attempts + 1) == lease.receipt


@MANY
@given(sample=anywhere() | laravels())
def test_a_job_given_back_is_byte_for_byte_what_was_pushed(store, sample):
    raw = as_bytes(*sample)

    store.give_back([pushed_and_reserved(store, raw)])

    assert raw == store.sizes("default").oldest


@MANY
@given(fields=others, style=styles)
def test_a_payload_without_attempts_gets_them_in_front(store, fields, style):
    raw = style.written(fields)

    lease = pushed_and_reserved(store, raw.encode())

    assert ('{"attempts":1' + ("," if fields else "") + raw.removeprefix("{")).encode() == lease.receipt


@MANY
@given(sample=anywhere() | laravels(), count=st.integers(1, 4))
def test_attempt_for_attempt_nothing_but_the_count_changes(store, sample, count):
    template, attempts = sample
    lease = pushed_and_reserved(store, as_bytes(template, attempts % 1_000))
    for _ in range(count):
        store.release(lease, 0.0, "a")
        [lease] = store.reserve(["default"], 1, 1).leases

    assert as_bytes(template, attempts % 1_000 + count + 1) == lease.receipt


rubbish = st.binary(max_size=60) | st.text(string.printable, max_size=60).map(str.encode)


@MANY
@given(raw=rubbish | values.map(PHP.written).map(str.encode))
def test_whatever_bytes_are_pushed_they_are_reserved_or_set_aside(stores, raw):
    store = stores.queue
    store.client.command("FLUSHALL")
    store.push("default", [raw])

    by_script = store.reserve(["default"], 1, 1)
    for lease in by_script.leases:
        settle_unless_a_job(store, lease)

    sizes, set_aside = store.sizes("default"), [entry.payload for entry in entries(stores)]
    assert (0, 1) == (sizes.ready, sizes.reserved + sizes.quarantined)
    assert not by_script.quarantined or [raw] == set_aside


def settle_unless_a_job(store: Any, lease: Lease) -> None:
    try:
        decode(lease.receipt)
    except BadPayload as bad:
        store.quarantine(lease, bad.reason)


def entries(stores: Stores) -> list[Quarantined]:
    return list(stores.quarantine.entries("default"))


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (b'{"id":7,"attempts":3}', b'{"id":7,"attempts":3}'),
        (b'{"id":7}', b'{"attempts":0,"id":7}'),
        (b'{"id":7,"attempts":null}', b'{"id":7,"attempts":0}'),
        (b'{"id":7,"attempts":"3"}', b'{"id":7,"attempts":3}'),
        (b'{"id":7,"attempts":-5}', b'{"id":7,"attempts":0}'),
    ],
)
def test_what_the_decoder_sets_aside_is_what_was_pushed_its_attempts_as_they_were_taken(stores, raw, kept):
    stores.queue.quarantine(pushed_and_reserved(stores.queue, raw), "id")

    assert [kept] == [entry.payload for entry in entries(stores)]


def test_attempts_are_found_in_front_of_any_number_of_namesakes(store):
    raw = json.dumps({"attempts": 0, "job": "app.ok", "data": [{"attempts": number} for number in range(9)]})

    assert raw.replace("0", "1", 1).encode() == pushed_and_reserved(store, raw.encode()).receipt


def test_a_job_at_the_most_attempts_is_given_back_as_it_was(store):
    raw = b'{"id":"a","job":"app.ok","attempts":65535}'

    store.give_back([pushed_and_reserved(store, raw)])

    assert raw == store.sizes("default").oldest


def test_attempts_in_scientific_notation_are_set_aside_and_the_queue_flows_on(stores):
    stores.queue.push("default", [b'{"job":"x","id":"1","attempts":1E+0,"z":1}', b'{"id":"2","job":"ok","attempts":0}'])

    reservation = stores.queue.reserve(["default"], 1, 1)

    assert [("default", "attempts")] == reservation.quarantined
    assert 1 == len(reservation.leases)
