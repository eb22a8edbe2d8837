"""PHP's serialization, compared with PHP itself, and hostile input to it."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.errors import QueuepoolError
from queuepool.payload.command import command_of, is_encrypted
from queuepool.payload.options import payload_options_of
from queuepool.payload.php_unserialize import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    PhpDataRefused,
    PhpEnum,
    PhpObject,
    PhpValue,
    parse_object,
)
from queuepool.payload.php_values import build_command
from tests.support.each import each
from tests.support.laravel_peer import require_php
from tests.support.php_code import php
from tests.support.samples import made

JOBS = Path(__file__).parent / "jobs.php"
#: seconds of CPU; what is not refused at once takes minutes
AT_ONCE = 10.0

CLASSES = """
enum Suit: string { case Hearts = 'h'; case Spades = 's'; }
class Base { private $secret = 'base'; protected $kept = [1, 2]; }
class Report extends Base {
    private $own = 1.5; public $suit = Suit::Hearts; public $name = "\\u{e9}\\0'\\""; public $none = null;
    public $floats = [0.1, 1e25, -1e-7, INF, -INF]; public $map = ['a' => true, 7 => false]; public $empty = [];
    public $gap = [1 => 'b', 0 => 'a']; public $ints = [PHP_INT_MIN, PHP_INT_MAX]; public $inner;
}
"""


def refusal(text: str) -> str:
    """Why ``text`` was refused; it must not take long."""
    started = time.process_time()
    with pytest.raises(PhpDataRefused) as refused:
        parse_object(text)
    assert time.process_time() - started < AT_ONCE
    return refused.value.reason


def holding(value: str) -> str:
    return f'O:1:"A":1:{{s:1:"x";{value}}}'


def test_an_object_that_php_serialized_reads_as_what_it_held() -> None:
    text = php(CLASSES + "$r = new Report; $r->inner = new Base; echo serialize($r);")

    report = parse_object(text)

    assert "Report" == report.class_name
    assert {
        "secret": "base",
        "kept": [1, 2],
        "own": 1.5,
        "suit": PhpEnum("Suit", "Hearts"),
        "name": "é\0'\"",
        "none": None,
        "floats": [0.1, 1e25, -1e-7, math.inf, -math.inf],
        "map": {"a": True, 7: False},
        "empty": [],
        "gap": {1: "b", 0: "a"},
        "ints": [-(2**63), 2**63 - 1],
        "inner": PhpObject("Base", {"secret": "base", "kept": [1, 2]}),
    } == report.properties


def test_bytes_that_are_not_utf8_survive_as_surrogates() -> None:
    text = php(r'echo serialize((object) ["x" => "\xff\xfe"]);')

    assert "\udcff\udcfe" == parse_object(text).properties["x"]


def test_php_reads_what_was_built_and_writes_the_same_values() -> None:
    properties: dict[str, PhpValue] = {
        "to": "Zoë 🙂\0",
        "flags": [True, False, None],
        "numbers": [0, -1, 2**63 - 1, -(2**63), 0.1, -0.5, 1e300, 5e-324, math.inf, -math.inf],
        "map": {"a": {"b": [1, [2, []]]}, 7: "seven", "x y": ""},
        "suit": PhpEnum("Suit", "Spades"),
        "inner": PhpObject("Report", {"kept": ["protected"], "own": "private"}),
    }
    check = '$c = unserialize(stream_get_contents(STDIN)); $c->to === "Zoë 🙂\\0" || exit(1); echo serialize($c);'

    came_back = parse_object(php(CLASSES + check, build_command("stdClass", properties))).properties

    inner = came_back["inner"]
    assert isinstance(inner, PhpObject)
    assert ("Report", ["protected"], "private") == (
        inner.class_name,
        inner.properties["kept"],
        inner.properties["own"],
    )
    assert {**properties, "inner": None} == {**came_back, "inner": None}


def test_not_a_number_goes_there_and_back() -> None:
    text = php("echo serialize(unserialize(stream_get_contents(STDIN)));", build_command("A", {"x": math.nan}))

    assert 'O:1:"A":1:{s:1:"x";d:NAN;}' == text
    assert math.isnan(parse_object(text).properties["x"])  # type: ignore[arg-type]


def test_a_laravel_job_gives_its_own_properties_as_arguments() -> None:
    require_php()

    text = php(
        f'require "Illuminate/Queue/autoload.php"; require "Illuminate/Bus/autoload.php"; require "{JOBS}";'
        '$job = (new App\\Jobs\\SendMail("a@b.c", "vip"))->onQueue("mail")->delay(5); $job->tries = 3;'
        "echo serialize($job);"
    )

    assert "App\\Jobs\\SendMail" == parse_object(text).class_name
    assert {"to": "a@b.c", "template": "vip"} == command_of({"command": text}).arguments


def test_laravels_newer_bookkeeping_is_no_argument_either() -> None:
    later = ["batchId", "\0J\0fakeBatch", "messageGroup", "deduplicator", "debounceOwner", "uniqueLockOwner"]
    settings = ["maxExceptions", "failOnTimeout", "retryUntil", "uniqueFor", "deleteWhenMissingModels"]
    command = build_command("J", {"to": "x", **dict.fromkeys([*later, *settings, "shouldBeEncrypted"])})

    assert {"to": "x"} == command_of({"command": command}).arguments


def test_a_gadget_chain_is_only_data() -> None:
    chain = (
        'O:40:"Illuminate\\Broadcasting\\PendingBroadcast":2:{s:9:"\0*\0events";O:25:"Illuminate\\Bus\\Dispatcher"'
        ':1:{s:16:"\0*\0queueResolver";s:6:"system";}s:8:"\0*\0event";s:2:"id";}'
    )

    assert PhpObject(
        "Illuminate\\Broadcasting\\PendingBroadcast",
        {"events": PhpObject("Illuminate\\Bus\\Dispatcher", {"queueResolver": "system"}), "event": "id"},
    ) == parse_object(chain)


def test_what_does_not_begin_as_an_object_is_taken_for_encrypted() -> None:
    assert is_encrypted("eyJpdiI6IjEyMyIsInZhbHVlIjoiIiwibWFjIjoiIn0=")
    assert not is_encrypted(build_command("A", {}))


REFUSED = {
    "nothing": ("", "no value at byte 0"),
    "encrypted": ("eyJpdiI6", "no value at byte 0"),
    "an array": ("a:0:{}", "not an object"),
    "a scalar": ("i:1;", "not an object"),
    "trailing bytes": ('O:1:"A":0:{}x', "trailing bytes at byte 12"),
    "a second value": (holding("N;") + "N;", "trailing bytes"),
    "an array length bomb": (holding("a:1000000000:{"), "no value"),
    "an array too long": (holding("a:999999999:{"), "more than 100000 values"),
    "a property bomb": ('O:1:"A":999999999:{', "more than 100000 values"),
    "a bomb of small bombs": ('O:1:"A":1:{s:1:"x";' + "a:60000:{i:0;" * 2, "more than 100000 values"),
    "a string length bomb": (holding('s:999999999:"a";'), "a wrong size"),
    "a class name bomb": ('O:999999999:"A":0:{}', "a wrong size"),
    "a string cut short": (holding('s:2:"abc";'), "a wrong size"),
    "characters counted, not bytes": (holding('s:1:"é";'), "a wrong size"),
    "a negative length": (holding('s:-1:"";'), "no value"),
    "a negative count": (holding("a:-1:{}"), "no value"),
    "fewer values than announced": (holding("a:2:{i:0;N;}"), "no value"),
    "more values than announced": (holding("a:0:{i:0;N;}"), "a wrong size"),
    "nested 10^5 deep": ('O:1:"A":1:{s:1:"x";' + "a:1:{i:0;" * 100_000, f"nested deeper than {MAX_DEPTH}"),
    "objects 10^5 deep": ('O:1:"A":1:{s:1:"x";' * 100_000, f"nested deeper than {MAX_DEPTH}"),
    "a variable that is its own property": (holding("R:1;"), "a reference to a value that contains it at byte 23"),
    "an object that is its own property": (holding("r:1;"), "a reference to a value that contains it"),
    "a cycle in an array": (holding("a:1:{i:0;R:2;}"), "a reference to a value that contains it"),
    "a reference to what comes later": (holding('a:2:{i:0;r:4;i:1;O:1:"B":0:{}}'), "a reference to no value"),
    "a reference to itself": (holding("r:2;"), "a reference to no value"),
    "a reference to nothing": (holding("R:0;"), "a reference to no value"),
    "a reference to the last number": (holding("R:999999999;"), "a reference to no value"),
    "megabytes of reference": (lambda: holding("r:" + "9" * 15_000_000 + ";"), "no value"),
    "an object reference to a number": (holding("a:2:{i:0;i:7;i:1;r:3;}"), "an object reference to no object"),
    "nothing but a reference": ("r:1;", "a reference to no value"),
    "a reference as a key": (holding("a:1:{i:0;N;r:1;N;}"), "a wrong size"),
    "a custom serializer": (holding('C:11:"ArrayObject":0:{}'), "a custom serializer"),
    "a custom serializer on top": ('C:1:"A":0:{}', "a custom serializer"),
    "an array as a key": (holding("a:1:{a:0:{}N;}"), "a key of type array"),
    "a bool as a key": (holding("a:1:{b:1;N;}"), "a key of type bool"),
    "a bool of another kind": (holding("b:2;"), "no value"),
    "no number": (holding("i:;"), "no value"),
    "no float": (holding("d:1e;"), "no value"),
    "an escaped string": (holding('S:1:"\\61";'), "no value"),
    "no property count": ('O:1:"A":{}', "no property count"),
    "megabytes of int": (lambda: holding("i:" + "9" * 15_000_000 + ";"), "no value"),
    "megabytes of float": (lambda: holding("d:" + "9" * 15_000_000 + ";"), "no value"),
    "megabytes of length": (lambda: holding("s:" + "9" * 15_000_000), "no value"),
    "too many bytes": (lambda: holding(f's:{MAX_BYTES}:"{"x" * MAX_BYTES}";'), f"more than {MAX_BYTES} bytes"),
    "a lone surrogate": (holding('s:1:"\ud800";'), "a lone surrogate"),
}


@each(("text", "reason"), REFUSED.values())
def test_it_is_refused_at_once(text: str | Callable[[], str], reason: str) -> None:
    assert reason in refusal(made(text))


def test_a_refusal_is_one_of_our_errors() -> None:
    assert issubclass(PhpDataRefused, QueuepoolError)


def test_a_text_cut_anywhere_is_refused() -> None:
    text = build_command("A", {"x": [1, 1.5, "é", True, None, PhpObject("B", {"y": {"k": PhpEnum("E", "C")}})]})

    for end in range(len(text)):
        refusal(text[:end])


@pytest.mark.thorough("sizes; what is beyond them is refused in test_it_is_refused_at_once")
def test_the_limits_themselves_are_allowed() -> None:
    depth, values = MAX_DEPTH - 1, MAX_VALUES - 1
    nested = holding("a:1:{i:0;" * (depth - 1) + "N;" + "}" * (depth - 1))
    wide = holding(f"a:{values}:{{" + "".join(f"i:{n};N;" for n in range(values)) + "}")
    started = time.process_time()

    assert [None] * values == parse_object(wide).properties["x"]
    assert time.process_time() - started < AT_ONCE
    assert parse_object(nested)


def test_what_php_cannot_hold_is_not_built() -> None:
    cycle: list[object] = []
    cycle.append(cycle)

    for value in (2**63, -(2**63) - 1, "\ud800", "\udcff", cycle, b"bytes", {1}, (1,)):
        with pytest.raises(PhpDataRefused):
            build_command("A", {"x": value})  # type: ignore[dict-item]


TEXT = st.text('aé🙂\0";:{}\\', max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    LEAVES | st.builds(PhpEnum, st.just("E"), st.just("C")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.integers(1, 5) | TEXT, inner, min_size=1, max_size=4)
        | st.builds(PhpObject, st.just("App\\Jobs\\A"), st.dictionaries(st.just("p"), inner))
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abc", min_size=1), VALUES, max_size=4))
def test_what_is_built_reads_back_the_same(properties: dict[str, PhpValue]) -> None:
    obj = PhpObject("App\\Jobs\\A", properties)

    assert obj == parse_object(build_command(obj.class_name, obj.properties))


PIECES = ['O:1:"A":1:{', 's:1:"x";', "a:1:{", "a:2:{", "i:0;", "}", "N;", "R:1;", "d:1;", '"', ":", "9", "é", "\0"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_rubbish_is_read_or_refused_and_nothing_else(text: str) -> None:
    with suppress(PhpDataRefused):
        parse_object(holding(text))


def test_a_text_is_a_number_of_seconds_where_it_is_one_to_php() -> None:
    pieces = ["", " ", "\v", "+", "-", "1", "25", ".", "e", "E-", "x", "_"]
    texts = sorted({"".join(some) for some in itertools.product(pieces, repeat=4)})
    check = "array_filter(json_decode(stream_get_contents(STDIN)), fn ($t) => is_numeric($t) && 0 <= $t && $t < 1e11)"
    expected = {
        text: float(number)
        for text, number in json.loads(
            php(
                f"""
        $found = {check}; echo json_encode(array_map(fn ($t) => [$t, $t + 0.0], array_values($found)));
    """,
                json.dumps(texts),
            )
        )
    }

    found = {text: payload_options_of({"timeout": text}, 0).timeout for text in texts}

    assert expected == {text: seconds for text, seconds in found.items() if seconds is not None}
    assert len(expected) > 100
