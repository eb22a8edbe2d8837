"""Whatever a public call accepts, each store holds, and a worker reads and outlives.

A call that fails raises an error of ours or of Python's, never a database's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool import Job, context, current, job
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadArguments, BadPayload, ConfigError
from queuepool.jobs.client import Queue
from queuepool.jobs.connecting import configure
from queuepool.stores.factory import Stores
from queuepool.testing import drain
from tests.support.effort import effort, patient
from tests.support.samples import fresh, payload

pytestmark = patient
SOME = effort(60)
REFUSED = (TypeError, ValueError, ConfigError, BadPayload)
PHP = f"App\\Jobs\\{fresh().title()}"


class Colour(Enum):
    RED, BLUE = "r", (1, date(2026, 1, 1))


@dataclass
class Line:
    price: Decimal
    at: dict[int, datetime] | None = None


HINTS = (
    Any, int | str, str | None, date | int, datetime, timedelta, Decimal, UUID, PurePath, time, Colour, Line,
    list[date], tuple[int, timedelta], dict[int, str], dict[str, list[Decimal]], set[Decimal], Line | None,
)  # fmt: skip


def taking(hint: object) -> Any:
    def handle(it: Any = None) -> None: ...

    handle.__annotations__["it"] = hint
    return job(fresh())(handle)


TYPED = [taking(hint) for hint in HINTS]


class Kept(Job, name=fresh()):
    it: Any = None
    at: dict[int, timedelta] | None = None

    def handle(self) -> None: ...


@job(PHP)
def of_php(**properties: object) -> None: ...


@job(fresh(), tries=2)
def act() -> object:
    """Does what the test says, which no payload could."""
    return ACTS.pop()() if ACTS else None


ACTS: list[Callable[[], object]] = []

odd_texts = st.sampled_from(
    ["", " ", "a\0b", "\ud800", "é" * 300, "x" * 10_000, "a,b", "c\nd", "x:delayed", "5m", "-1"]
)
texts = st.text(st.characters(), max_size=8) | odd_texts
numbers = st.integers() | st.sampled_from([2**63, -(10**400), 10**4000]) | st.floats() | st.booleans()
moments = st.datetimes(timezones=st.none() | st.just(UTC)) | st.dates() | st.times() | st.timedeltas()
last_moments = st.sampled_from([timedelta.max, timedelta.min, datetime.max, datetime.min, date.max, time.max])
scalars = st.none() | texts | numbers | moments | last_moments | st.decimals() | st.uuids() | st.binary(max_size=3)
scalars |= st.sampled_from([Colour.RED, Colour.BLUE, PurePath("/a"), object(), int, float("nan")])
#: of which several may be one in JSON
keys = st.sampled_from([1, "1", 1.5, "1.5", True, "true", None, "null", "a", date(2026, 1, 1), 10**4000]) | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=4)
        | st.builds(Line, inner, inner)
        | st.builds(Kept, inner)
    ),
    max_leaves=6,
) | st.sampled_from([10, 300, 990, 1100]).map(lambda depth: nested(depth))
seconds = st.one_of(
    st.just(0), scalars, st.sampled_from([1e9, 1e10, 9.3e9, 1e11, 1e-9, "10m", "3650d", timedelta(36500)])
)
options = st.dictionaries(
    st.sampled_from(["tries", "maxTries", "maxExceptions", "failOnTimeout", "backoff", "timeout", "retryUntil", "tags"])
    | texts,
    seconds | st.lists(seconds, max_size=3) | values,
    max_size=3,
)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture
def queue(built: Stores, connection: ConnectionSettings) -> Iterator[Queue]:
    opened = configure(connection)
    yield opened
    opened.close()


def outlived(queue: Queue, push: Callable[[], object]) -> None:
    """The push is refused, or a worker runs what is ready without an end of its own."""
    try:
        push()
    except REFUSED:
        assert 0 == queue.size()
        return
    for attempt in drain(raises=False, tries=1).attempts:
        assert "quarantined" != attempt.outcome, attempt
        assert not isinstance(attempt.error, BadArguments), attempt
    assert 0 == queue.sizes().reserved
    queue.clear()


def pushes_of(queue: Queue, number: int, data: Any) -> list[Callable[[], object]]:
    """Every call that takes arguments of a job."""
    one = TYPED[number % len(TYPED)]
    as_object = {"it": data} if number % 2 else data
    return [
        lambda: one.dispatch(data),
        lambda: one.dispatch(it=data),
        lambda: one.bulk([{"it": data}, [data]]),
        lambda: one.using(delay=0).dispatch(data),
        lambda: asyncio.run(one.adispatch(data)),
        lambda: Kept(data).dispatch(),
        lambda: Kept(at=data).dispatch(),
        lambda: Kept.bulk([Kept(data), Kept(1)]),
        lambda: queue.push(TYPED[0].name, {"it": data}),
        lambda: queue.push(f"{__name__}.by_its_own_name", as_object if isinstance(as_object, dict) else None),
        lambda: queue.bulk([(TYPED[0].name, {"it": data})]),
        lambda: queue.push_object(PHP, as_object),
        lambda: asyncio.run(queue.apush_object(PHP, {"it": data})),
    ]


@job
def by_its_own_name(it: dict[int, timedelta] | Line | None = None) -> None: ...


@SOME
@given(door=st.integers(0, 12), number=st.integers(0, 100), data=values)
def test_arguments_that_are_pushed_can_be_stored_and_read(queue, door, number, data):
    outlived(queue, pushes_of(queue, number, data)[door])


@SOME
@given(
    door=st.integers(0, 6), delay=seconds, track=seconds, options=st.none() | options, name=texts,
    unique=st.none() | texts, unique_for=seconds, where=st.just("default") | texts,
)  # fmt: skip
def test_terms_that_are_accepted_can_be_stored_and_kept(
    queue, door, delay, track, options, name, unique, unique_for, where
):
    about = {"queue": where, "delay": delay, "options": options, "track": track}
    lock = {"unique_id": unique, "unique_for": unique_for}
    doors = [
        lambda: queue.push(act.name, None, **about, **lock),
        lambda: queue.push(act.name, options=options, track=track, **lock),
        lambda: queue.bulk([(act.name, None)] * 2, **about),
        lambda: queue.push_object(PHP, {}, **about, **lock),
        lambda: queue.push_object(name, {}),
        lambda: act.using(queue=where, delay=delay).dispatch(),
        lambda: asyncio.run(queue.apush(act.name, None, **about, **lock)),
    ]
    outlived(queue, doors[door])


@pytest.mark.every_store("connection")
@SOME
@given(call=st.sampled_from(["release", "progress", "fail", "context", "result"]), value=values | seconds, text=texts)
def test_what_a_job_says_of_itself_is_refused_in_the_job_or_kept(queue, call, value, text):
    def said() -> object:
        match call:
            case "release":
                current().release(value)
            case "progress":
                current().progress(value if isinstance(value, float) else 0.5, text)
            case "fail":
                current().fail(value)
            case "context":
                context.add(value if isinstance(value, (int, type(None))) else text, value)
                context.add("1", text)
                Kept(1).dispatch()
        return value if call == "result" else None

    ACTS[:] = [said]
    outlived(queue, partial(queue.push, act.name, track="1h"))


def test_times_that_a_foreign_payload_asks_for_are_cut_to_what_a_store_holds(queue):
    def fails() -> None:
        raise OSError

    ACTS[:] = [fails]
    queue.push_raw(payload("a", job=act.name, data=None, maxTries=2, backoff=9e9, timeout=9e10, qpTrack=9e10))

    [attempt] = drain(raises=False).attempts
    assert ("released", 315_360_000.0) == (attempt.outcome, attempt.delay)
    assert "released" == queue.job("a").state
    queue.clear()
