"""Arguments that JSON does not know travel as texts and numbers; annotations turn them back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict

import pytest

from queuepool import Job, job, register_type
from queuepool.errors import BadArguments, BadPayload, NotSendable
from queuepool.jobs.arguments import reader_of
from queuepool.jobs.client import Queue
from queuepool.jobs.registry import REGISTRY, bound
from queuepool.payload.envelope import decode
from tests.support.each import each
from tests.support.samples import fresh

if TYPE_CHECKING:
    from nowhere import Unknown

NOON = datetime(2026, 11, 22, 12, 0, 0, 250, tzinfo=UTC)
Price = NewType("Price", Decimal)


class Colour(Enum):
    RED = "red"
    MIXED = (1, 2)


class Level(IntEnum):
    LOW = 1


@dataclass
class Line:
    price: Decimal
    due: date | None = None
    parts: list[Line] = field(default_factory=list)


class Point(NamedTuple):
    x: Decimal
    y: int


class Row(TypedDict):
    at: datetime


class Money:
    """A type of the application's own."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    __hash__ = None  # type: ignore[assignment]


register_type(Money, to_json=lambda money: {"cents": money.cents}, from_json=lambda made: Money(made["cents"]))


class Model:
    """As pydantic's are."""

    def __init__(self, **fields: object) -> None:
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.fields == self.fields

    __hash__ = None  # type: ignore[assignment]

    def model_dump(self, mode: str) -> dict[str, object]:
        return self.fields if mode == "json" else {}

    @classmethod
    def model_validate(cls, made: dict[str, object]) -> Model:
        return cls(**made)


def received(queue: Queue) -> Any:
    """What the handler of the oldest job gives, called as a worker calls it."""
    payload = decode(queue.sizes().oldest or b"")
    handler = REGISTRY.find(payload.name)
    return bound(handler, payload.data, reader_of(handler.name, handler.target)).run()


#: annotation, value, what stands in the payload
THERE_AND_BACK: list[tuple[Any, Any, Any]] = [
    (datetime, NOON, "2026-11-22T12:00:00.000250+00:00"),
    (datetime, datetime(2026, 11, 22), "2026-11-22T00:00:00"),
    (date, date(2026, 11, 22), "2026-11-22"),
    (time, time(9, 30), "09:30:00"),
    (timedelta, timedelta(days=1), 86400),
    (timedelta, timedelta(milliseconds=-1500), -1.5),
    (Decimal, Decimal("1.10"), "1.10"),
    (Price, Decimal("2"), "2"),
    (uuid.UUID, uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (Path, Path("/srv/in"), "/srv/in"),
    (Colour, Colour.RED, "red"),
    (Colour, Colour.MIXED, [1, 2]),
    (Level, Level.LOW, 1),
    (Money, Money(5), {"cents": 5}),
    (Model, Model(id=5), {"id": 5}),
    (
        Line,
        Line(Decimal(1), None, [Line(Decimal(2), date(2026, 1, 1))]),
        {"price": "1", "due": None, "parts": [{"price": "2", "due": "2026-01-01", "parts": []}]},
    ),
    (Point, Point(Decimal(1), 2), ["1", 2]),
    (Row, Row(at=NOON), {"at": NOON.isoformat()}),
    (list[Decimal], [Decimal(1)], ["1"]),
    (Sequence[date], [date(2026, 1, 1)], ["2026-01-01"]),
    (dict[str, Money], {"a": Money(1)}, {"a": {"cents": 1}}),
    (Mapping[int, str], {1: "a"}, {"1": "a"}),
    (tuple[int, date], (1, date(2026, 1, 1)), [1, "2026-01-01"]),
    (tuple[int, ...], (1, 2), [1, 2]),
    (tuple, (1, 2), [1, 2]),
    (set[int], {7}, [7]),
    (frozenset[str], frozenset("a"), ["a"]),
    (datetime | None, None, None),
    (datetime | str, "soon", "soon"),
    (datetime | str, NOON, NOON.isoformat()),
    (Optional[Decimal], Decimal(4), "4"),  # noqa: UP045 - as many write it
    (Annotated[Decimal, "euros"], Decimal(3), "3"),
    (
        list[dict[str, list[uuid.UUID | None]]],
        [{"a": [uuid.UUID(int=1), None]}],
        [{"a": [str(uuid.UUID(int=1)), None]}],
    ),
]


@each(("hint", "value", "written"), THERE_AND_BACK)
def test_an_argument_goes_there_as_plain_json_and_back_by_its_annotation(queue, hint, value, written):
    def back(it):
        return it

    back.__annotations__["it"] = hint
    queue.clear()
    job(fresh())(back).dispatch(it=value)

    assert written == json.loads(queue.sizes().oldest)["data"]["it"]
    assert value == (found := received(queue))
    assert type(value) is type(found)


@each(
    "hint",
    [
        int, str, float, bool, None, Any, object, list, dict, list[int], dict[str, list[str]], int | None, int | str,
        Literal["a"], Sequence[str], bytes, "Unknown", Queue,
    ],
)  # fmt: skip
def test_annotations_that_ask_for_nothing_cost_nothing(hint):
    def plain(it): ...

    plain.__annotations__["it"] = hint

    assert None is reader_of("plain", plain)


def test_arguments_by_place_and_of_any_name_are_read_as_well(queue):
    @job(fresh())
    def placed(first: date, /, *rest: Decimal) -> object:
        return first, rest

    @job(fresh())
    def named(**others: date) -> object:
        return others

    placed.dispatch(date(2026, 1, 1), Decimal(1), Decimal(2))
    assert (date(2026, 1, 1), (Decimal(1), Decimal(2))) == received(queue)
    queue.clear()
    named.bulk([{"a": date(2026, 1, 1)}])
    assert {"a": date(2026, 1, 1)} == received(queue)


def test_the_fields_of_a_job_class_are_arguments_too(queue):
    class Bill(Job, name=fresh()):
        lines: list[Line]
        at: datetime
        sent: bool = field(default=False, init=False)

        def handle(self) -> object:
            return self

    bill = Bill([Line(Decimal("9.90"))], NOON)
    bill.dispatch()
    assert bill == received(queue)
    queue.clear()
    Bill.bulk([bill])
    assert bill == received(queue)


def test_without_an_annotation_keys_are_texts_and_tuples_lists(queue):
    @job(fresh())
    def any_(it):  # type: ignore[no-untyped-def]
        return it

    any_.dispatch({1: (1, 2), "at": NOON})

    assert {"1": [1, 2], "at": NOON.isoformat()} == received(queue)


def test_an_annotation_that_cannot_be_resolved_leaves_its_argument_alone_and_is_told(queue, caplog):
    @job(fresh())
    def half(known: date, unknown: Unknown) -> object:
        return known, unknown

    half.dispatch(date(2026, 1, 1), "as it is")  # type: ignore[arg-type]

    assert (date(2026, 1, 1), "as it is") == received(queue)
    assert "the annotation of 'unknown' cannot be resolved here" in caplog.text


class Odd:
    """Nobody has said how it goes."""


@each(
    ("value", "why"),
    [
        (Odd(), f"no JSON for {__name__}.Odd: tell queuepool.register_type how to send it"),
        (b"bytes", "no JSON for bytes: send text"),
        ([{"a": Odd()}], f"no JSON for {__name__}.Odd"),
        (Line(Odd()), f"no JSON for {__name__}.Odd"),  # type: ignore[arg-type]
        ({Colour.RED: 1}, "keys must be str"),
        (float("nan"), "Out of range float"),
    ],
)
def test_what_cannot_go_is_refused_at_the_dispatch_by_job_argument_and_type(queue, value, why):
    @job(fresh())
    def send(to: object, what: object) -> None: ...

    class Sent(Job, name=fresh()):
        what: object

        def handle(self) -> None: ...

    for name, dispatch in [
        (send.name, lambda: send.dispatch("a", value)),
        (send.name, lambda: send.bulk([{"to": "a", "what": 1}, {"to": "a", "what": value}])),
        (Sent.job_name, lambda: Sent(value).dispatch()),
        (Sent.job_name, lambda: Sent.bulk([Sent(1), Sent(value)])),
    ]:
        with pytest.raises(NotSendable, match=f"^argument 'what' of {name}: {why}") as refused:
            dispatch()
        assert isinstance(refused.value, (BadPayload, TypeError))
    assert 0 == queue.clear()


@each(
    ("hint", "data", "why"),
    [
        (datetime, "tomorrow", "argument 'it' is a string, not an ISO date and time"),
        (datetime, 5, "argument 'it' is a number, not an ISO"),
        (timedelta, True, "argument 'it' is true or false, not a number of seconds"),
        (Decimal, "1,5", "argument 'it' is a string, not a decimal number"),
        (Colour, "blue", "argument 'it' is a string, not the value of a Colour"),
        (Level, True, "argument 'it' is true or false, not the value of a Level"),
        (Money, {}, "argument 'it' is an object, not what Money is made from"),
        (Line, {"price": "1", "parts": [{"price": "x"}]}, r"argument 'it'\.parts\[0\]\.price is a string"),
        (Line, {}, r"argument 'it' is an object, not one for Line \(.*'price'\)"),
        (list[date], {"a": 1}, "argument 'it' is an object, not a list"),
        (dict[int, str], {"a": "b"}, "argument 'it'.a is a string, not a number in a string"),
        (tuple[int, int], [1], "argument 'it' is a list, not one of 2 items"),
        (date | None, "x", "argument 'it' is a string, not an ISO date$"),
        (date | int, "x", "argument 'it' is a string, not date or int"),
    ],
)
def test_what_its_annotation_does_not_take_is_a_bad_argument_and_its_value_is_not_told(queue, hint, data, why):
    def send(it): ...

    send.__annotations__["it"] = hint
    name = job(fresh())(send).name
    queue.clear()
    queue.push(name, {"it": data})

    with pytest.raises(BadArguments, match=f"bad arguments for {name}: {why}") as refused:
        received(queue)
    assert "tomorrow" not in str(refused.value)


@each(("hint", "php"), [(list[date], {}), (dict[str, date], [])])
def test_an_empty_list_and_an_empty_object_are_one_in_php(queue, hint, php):
    def send(it):
        return it

    send.__annotations__["it"] = hint
    queue.clear()
    queue.push(job(fresh())(send).name, {"it": php})

    assert 0 == len(received(queue))


def test_a_worker_makes_them_again_and_push_looks_first(site):
    """The whole way, by the real commands; the second job's data come from somewhere else."""
    (site.path / "typed_jobs.py").write_text(
        "from __future__ import annotations\n"
        "from datetime import datetime, timedelta\n"
        "from tests.support.poolapp import note\n"
        "from queuepool import job\n"
        "@job\n"
        "def remind(at: datetime, before: timedelta = timedelta(0)) -> None:\n"
        "    note(event='end', at=(at - before).isoformat())\n"
    )
    typed = ("--modules", "typed_jobs")
    site.queue.push("typed_jobs.remind", {"at": NOON, "before": timedelta(hours=1)})
    site.queue.push("typed_jobs.remind", {"at": "soon"})
    site.work(*typed)
    refused = site.run("push", *site.flags(*typed), "typed_jobs.remind", "--data", '{"at": "soon"}', check=False)

    assert ["2026-11-22T11:00:00.000250+00:00"] == [line["at"] for line in site.trail(event="end")]
    [row] = site.queue.stores.failed.page()
    bad = "bad arguments for typed_jobs.remind: argument 'at' is a string, not an ISO date and time"
    assert bad in row.exception
    assert (2, True) == (refused.returncode, bad in refused.stderr)
    assert 0 == site.queue.size()
