"""Steps and cursors, as ``run_now`` runs them: what they are given, keep and refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, cast
from uuid import UUID

import pytest

from queuepool import current, cursor, job, on, step
from queuepool.errors import BadArguments, Leaving
from queuepool.events import StepUnused
from queuepool.jobs.attempt_steps import set_step_keeper
from queuepool.jobs.current_job import Current, running, set_current
from queuepool.payload.envelope import decode
from queuepool.payload.kept_step import MOST_BYTES, MOST_KEPT, MOST_NAME
from queuepool.payload.lease import Lease
from queuepool.testing import as_current, run_now
from tests.testing.jobs import DONE

#: what the job does in this test
_body: list[Callable[[], object]] = []


@job("testing.stepping", tries=3, backoff=0)
def stepping() -> object:
    return _body[0]()


@job("testing.astepping", tries=3, backoff=0)
async def astepping() -> object:
    found: Any = _body[0]()
    return await found


def ran(body: Callable[[], object], work: Any = stepping, **limits: Any) -> list[tuple[str, str]]:
    """How the attempts of a job with this body ended."""
    _body[:] = [body]
    with run_now(raises=False, **limits) as found:
        work.dispatch()
    return [(one.outcome, str(one.error or "")) for one in found.attempts]


def error_of(body: Callable[[], object], work: Any = stepping) -> BaseException:
    """What the job with this body raises in its only attempt."""
    _body[:] = [body]
    raised: list[BaseException] = []

    def noting() -> object:
        try:
            return body()
        except BaseException as error:
            raised.append(error)
            current().fail()
            raise

    _body[:] = [noting]
    with run_now(raises=False):
        work.dispatch()
    return raised[0]


def fails_first(at: int = 1) -> None:
    if current().attempts <= at:
        raise ConnectionError(f"attempt {current().attempts}")


def noted(value: Any) -> Any:
    DONE.append(value)
    return value


@dataclass
class Charge:
    id: UUID
    on: date
    parts: tuple[int, ...] = ()


def charged() -> Charge:
    return noted(Charge(UUID(int=7), date(2026, 1, 31), (1, 2)))


def plain() -> dict[Any, Any]:
    return {1: (2, 3), "at": datetime(2026, 1, 31)}


def test_a_step_runs_once_and_its_result_comes_as_its_annotation_says(done):
    found = []

    def body() -> None:
        found.append(step("charge", charged))
        fails_first(2)

    assert ["released", "released", "done"] == [outcome for outcome, _ in ran(body)]
    assert [Charge(UUID(int=7), date(2026, 1, 31), (1, 2))] * 3 == found
    assert 1 == len(done)


def test_the_first_attempt_gets_what_the_next_one_would(done):
    found = []
    ran(lambda: (found.append(step("plain", plain)), fails_first()))

    assert [{"1": [2, 3], "at": "2026-01-31T00:00:00"}] * 2 == found


def test_a_key_tells_the_steps_of_a_loop_apart(done):
    def body() -> None:
        assert [0, 1, 2] == [step("ship", noted, row, key=row) for row in range(3)]
        fails_first()

    assert [("released", "attempt 1"), ("done", "")] == ran(body)
    assert [0, 1, 2] == done


def test_a_step_that_raises_is_not_kept(done):
    def body() -> None:
        step("raises", lambda: [noted(current().attempts), fails_first(2)])

    assert ["released", "released", "done"] == [outcome for outcome, _ in ran(body)]
    assert [1, 2, 3] == done


def test_arguments_are_handed_on_and_a_class_or_a_partial_is_a_function_too(done):
    def body() -> None:
        assert 3 == step("divided", divmod, 7, 2)[0]
        assert 8 == step("keyword", int, "10", base=8)
        assert Charge(UUID(int=1), date(2026, 1, 1)) == step("class", Charge, UUID(int=1), on=date(2026, 1, 1))
        assert Charge(UUID(int=7), date(2026, 1, 31), (1, 2)) == step("partial", partial(charged))

    assert [("done", "")] == ran(body)


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("", None, "a step needs a name, not ''"),
        (7, None, "a step needs a name, not 7"),
        ("~rows", None, "the name '~rows' begins with ~"),
        ("x" * (MOST_NAME + 1), None, "has 192 bytes with its key, at most 191"),
        ("ä" * 90, "0123456789ab", "has 193 bytes with its key, at most 191"),
        ("\ud800", None, "cannot be written as UTF-8"),
    ],
)
def test_a_name_that_cannot_be_kept_is_refused_in_a_job_and_outside(name, key, words, done):
    with pytest.raises(ValueError, match=words):
        step(name, noted, 1, key=key)
    assert words in str(error_of(lambda: step(name, noted, 1, key=key)))
    assert [] == done


class Row:
    pass


@pytest.mark.parametrize("key", [Row(), (1, 2), {"id": 1}, b"a"], ids=["object", "tuple", "dict", "bytes"])
def test_a_key_whose_text_may_differ_in_the_next_attempt_is_refused(key, done):
    error = error_of(lambda: step("ship", noted, 1, key=key))

    assert isinstance(error, TypeError)
    assert "step 'ship': its key must be text, a number, a UUID, a date or a time, not of type" in str(error)
    assert [] == done


class Kind(Enum):
    LARGE = "large"


def test_keys_of_other_types_are_kept_by_their_text(done):
    keys = [7, "7a", UUID(int=7), date(2026, 1, 31), Decimal("1.50"), Kind.LARGE]

    def body() -> None:
        for key in keys:
            step("ship", noted, "x", key=key)
        fails_first()

    assert [("released", "attempt 1"), ("done", "")] == ran(body)
    assert ["x"] * len(keys) == done


def test_a_name_is_used_once_in_an_attempt(done):
    error = error_of(lambda: [step("ship", noted, row) for row in range(3)])

    assert "'ship' is used twice in this attempt: use key=" in str(error)
    assert isinstance(error, ValueError)
    assert [0] == done


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (object(), TypeError, "the result of step 'odd' cannot be kept: no JSON for object"),
        (b"raw", TypeError, "no JSON for bytes"),
        (float("nan"), ValueError, "the result of step 'odd' cannot be kept"),
        ({(1, 2): 3}, TypeError, "keys must be str"),
        ("x" * (MOST_BYTES - 4), ValueError, "'odd': the results of a job's steps have at most 1 MiB"),
    ],
    ids=["object", "bytes", "nan", "key", "large"],
)
def test_a_result_that_cannot_be_kept_is_refused_in_a_line(value, kind, words):
    error = error_of(lambda: step("odd", lambda: value))

    assert kind is type(error)
    assert words in str(error)


@pytest.mark.parametrize("value", [object(), "x" * MOST_BYTES], ids=["odd", "large"])
@pytest.mark.parametrize("work", [stepping, astepping], ids=["plain", "async"])
def test_a_result_that_cannot_be_kept_fails_the_job_so_that_its_effect_happens_once(done, value, work):
    def pays() -> object:
        done.append("paid")
        return value

    async def apays() -> object:
        return pays()

    async def body() -> None:
        await step("pay", apays)

    [(outcome, words)] = ran(body if work is astepping else lambda: step("pay", pays), work)
    assert "failed" == outcome
    assert "pay" in words
    assert ["paid"] == done


def test_as_much_is_kept_as_there_is_room_for():
    assert [("done", "")] == ran(lambda: step("even", lambda: "x" * (MOST_BYTES - 6)) and None)


@pytest.mark.thorough("it keeps 10,000 steps")
def test_a_job_has_no_more_steps_than_there_is_room_for(done):
    def body() -> None:
        for number in range(MOST_KEPT + 1):
            step("s", int, key=number)

    assert "the job has 10,000 steps and cursors, and may have no more" in str(error_of(body))


def test_a_kept_result_that_no_longer_fits_fails_the_job_and_names_the_step(done):
    def newer() -> date:
        return noted(date(2026, 1, 1))

    def body() -> None:
        step("charge", noted if current().attempts == 1 else newer, *([{"id": 1}] if current().attempts == 1 else []))
        fails_first()

    [first, (outcome, words)] = ran(body)
    assert "released" == first[0]
    assert "failed" == outcome
    assert "step 'charge': what is kept is an object, not an ISO date" in words
    assert "newer returns: `queuepool step forget" in words


def test_steps_that_newer_code_does_not_ask_for_are_told_once(done):
    told = []
    on(StepUnused)(lambda event: told.append((event.job.name, event.names)))

    def body() -> None:
        step("old" if current().attempts == 1 else "new", noted, current().attempts)
        step("kept", noted, "kept")
        fails_first()

    assert ["released", "done"] == [outcome for outcome, _ in ran(body)]
    assert [("testing.stepping", ("old",))] == told
    assert [1, "kept", 2] == done


def told_unused(body: Callable[[], object]) -> list[tuple[str, ...]]:
    """The names in the events of steps that were not used."""
    told: list[tuple[str, ...]] = []
    on(StepUnused)(lambda event: told.append(event.names))
    ran(body)
    return told


def test_steps_of_rows_that_were_done_before_are_not_told_as_unused():
    def body() -> None:
        if current().attempts == 1:
            step("old", int)
        for row in cursor("rows", lambda count: range(count or 0, 5)):
            step("ship", noted, row, key=row)
            if row == 3:
                fails_first()

    assert [("old",)] == told_unused(body)


def test_of_many_unused_steps_ten_are_told():
    def body() -> None:
        for number in range(13 if current().attempts == 1 else 0):
            step(f"old{number:02}", int)
        step("kept", int)
        fails_first()

    assert [(*(f"old{number:02}" for number in range(10)), "and 3 more")] == told_unused(body)


def test_a_payload_without_an_id_has_no_steps(done):
    """Others with the same data would share them."""
    payload = decode(b'{"job": "testing.stepping", "data": {}, "attempts": 1}')
    bare = Current(payload, "default", lease=Lease("default", b""))
    assert not payload.identified
    former, keeper = running(), set_step_keeper(cast("Any", object()))
    set_current(bare)
    try:
        with pytest.raises(ValueError, match="a job with steps needs an id, which its payload lacks"):
            step("pay", noted, 1)
    finally:
        set_current(former)
        set_step_keeper(keeper)
    assert [] == done


def test_outside_of_a_job_a_step_is_a_call(done):
    value = object()
    assert value is step("a", noted, value)
    assert value is step("a", noted, value)
    assert [1, 2] == list(cursor("rows", lambda after: [1, 2], key=str))
    with as_current():
        assert value is step("a", noted, value)


def test_what_a_step_of_one_job_keeps_no_other_job_sees(done):
    for number in range(2):
        ran(lambda number=number: step("charge", noted, number))

    assert [0, 1] == done


# Coroutine functions


async def paid(order: int) -> date:
    await asyncio.sleep(0)
    noted(order)
    return date(2026, 1, order)


def test_a_coroutine_function_is_awaited(done):
    async def body() -> None:
        found = await asyncio.gather(*(step("pay", paid, number, key=number) for number in (1, 2, 3)))
        assert [date(2026, 1, number) for number in (1, 2, 3)] == found
        assert 4 == step("plain", noted, 4)
        fails_first()

    assert [("released", "attempt 1"), ("done", "")] == ran(body, astepping)
    assert [1, 2, 3, 4] == done


def test_a_function_that_returns_a_coroutine_is_refused():
    error = error_of(lambda: step("odd", lambda: paid(1)))

    assert "step 'odd': its function returns what is awaited: give it a coroutine function" in str(error)


def test_outside_of_a_job_a_coroutine_is_awaited_as_well(done):
    assert date(2026, 1, 7) == asyncio.run(step("pay", paid, 7))


# Cursors


def behind(after: int | None) -> Iterator[int]:
    DONE.append(("after", after))
    yield from range(0 if after is None else after + 1, 5)


def test_a_cursor_goes_on_behind_the_last_row_that_was_done(done):
    def body() -> None:
        for row in cursor("rows", behind, key=lambda row: row):
            noted(row)
            if row == 2:
                fails_first()

    assert [("released", "attempt 1"), ("done", "")] == ran(body)
    assert [("after", None), 0, 1, 2, ("after", 1), 2, 3, 4] == done


def test_without_a_key_it_goes_by_position(done):
    rows = ["a", "b", "c", "d"]

    def body() -> None:
        for row in cursor("rows", lambda count: rows[count:]):
            noted(row)
            if row in "bc":
                fails_first("abc".index(row))

    assert ["released", "released", "done"] == [outcome for outcome, _ in ran(body)]
    assert ["a", "b", "b", "c", "c", "d"] == done


def test_a_key_comes_back_as_the_annotation_says(done):
    days = [date(2026, 1, day) for day in (1, 2, 3)]

    def since(after: date | None) -> list[date]:
        noted(after)
        return [day for day in days if after is None or day > after]

    def body() -> None:
        for day in cursor("days", since, key=lambda day: day):
            if day == days[1]:
                fails_first()

    ran(body)
    assert [None, days[0]] == done


def test_a_row_that_breaks_off_comes_again(done):
    def body() -> None:
        for row in cursor("rows", behind, key=lambda row: row):
            noted(row)
            if row == 1 and current().attempts == 1:
                break
        fails_first()

    ran(body)
    assert [("after", None), 0, 1, ("after", 0), 1, 2, 3, 4] == done


def test_cursors_within_each_other_and_between_steps(done):
    def body() -> None:
        for page in cursor("pages", lambda after: range(after or 0, 3), key=lambda page: page + 1):
            for row in cursor(f"rows-{page}", lambda count: [1, 2][count:]):
                step("row", noted, (page, row), key=f"{page}-{row}")
            noted(page)
            if page == 1:
                fails_first()

    assert [("released", "attempt 1"), ("done", "")] == ran(body)
    assert [(0, 1), (0, 2), 0, (1, 1), (1, 2), 1, 1, (2, 1), (2, 2), 2] == done


def test_a_cursor_and_a_step_may_have_one_name_but_two_cursors_may_not(done):
    def body() -> None:
        step("rows", noted, 1)
        list(cursor("rows", lambda count: [1][count:]))
        list(cursor("rows", lambda count: [1][count:]))

    assert "'~rows' is used twice" in str(error_of(body))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("x" * 255, "its key has 257 bytes as JSON, at most 256"),
        (object(), "the key of cursor 'rows' cannot be kept: no JSON for object"),
        (None, "cursor 'rows': the key of a row cannot be None"),
    ],
    ids=["large", "odd", "none"],
)
def test_a_row_whose_key_cannot_be_kept_is_refused_before_its_body_runs(done, key, words):
    error = error_of(lambda: [noted(row) for row in cursor("rows", lambda after: [1], key=lambda row: key)])

    assert words in str(error)
    assert [] == done


def ordered(shop: date, after: int | None) -> list[int]:
    return list(behind(after))


def listed(after) -> list[int]:  # type: ignore[no-untyped-def]
    return list(behind(after))


class Orders:
    def rows(self, after: int | None) -> list[date]:
        return list(behind(after))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "rows_after",
    [partial(ordered, date(2026, 1, 1)), listed, Orders().rows, lambda *rows: behind(*rows)],
    ids=["partial", "only the return", "method", "any"],
)
def test_the_key_comes_back_as_the_argument_that_is_not_bound_is_annotated(done, rows_after):
    def body() -> None:
        for row in cursor("rows", rows_after, key=lambda row: row):
            if row == 2:
                fails_first()

    assert [("released", "attempt 1"), ("done", "")] == ran(body)
    assert [("after", None), ("after", 1)] == done


@pytest.mark.parametrize("how", ["generator", "coroutine"])
def test_a_plain_loop_over_rows_that_come_asynchronously_is_refused(how):
    async def generated(after: int | None) -> AsyncIterator[int]:
        yield 1

    async def fetched(after: int | None) -> list[int]:
        return [1]

    rows: Any = {"generator": generated, "coroutine": fetched}[how]
    error = error_of(lambda: list(cursor("rows", rows)))

    assert isinstance(error, TypeError)
    assert "the rows of cursor 'rows' come asynchronously: use `async for`" == str(error)


@pytest.mark.parametrize("how", ["generator", "coroutine", "plain"])
def test_rows_may_come_asynchronously(done, how):
    async def generated(after: int | None) -> AsyncIterator[int]:
        for row in behind(after):
            yield row

    async def fetched(after: int | None) -> list[int]:
        return list(behind(after))

    rows: Any = {"generator": generated, "coroutine": fetched, "plain": behind}[how]

    async def body() -> None:
        async for row in cursor("rows", rows, key=lambda row: row):
            noted(row)
            if row == 2:
                fails_first()

    assert [("released", "attempt 1"), ("done", "")] == ran(body, astepping)
    assert [("after", None), 0, 1, 2, ("after", 1), 2, 3, 4] == done


def test_a_kept_place_that_no_longer_fits_names_the_cursor():
    def newer(after: int | None) -> list[date]:
        return []

    def dated(after: date | None) -> list[int]:
        return []

    def body() -> None:
        first = current().attempts == 1
        for row in cursor("rows", (lambda after: [1, 2]) if first else dated, key=lambda row: row):
            if row == 2:
                fails_first()

    [_, (outcome, words)] = ran(body)
    assert "failed" == outcome
    assert "step 'rows': what is kept is a number, not an ISO date, which rows_after takes" in words


def test_leaving_is_no_exception_that_code_catches_by_mistake():
    assert not issubclass(Leaving, Exception)
    assert issubclass(BadArguments, Exception)
