"""References in PHP data: numbered as PHP numbers them, shared, and no way to make much of little."""

from __future__ import annotations

import json
import random
import time
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.payload.command import command_of
from queuepool.payload.php_unserialize import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    PhpDataRefused,
    PhpEnum,
    PhpObject,
    PhpValue,
    parse,
    parse_object,
)
from queuepool.payload.php_values import build_command
from tests.laravel.test_php_serialization import CLASSES, JOBS, PIECES
from tests.support.each import each
from tests.support.laravel_peer import require_php
from tests.support.php_code import php

#: seconds of CPU; what is not refused at once takes minutes
AT_ONCE = 10.0


def test_an_object_that_occurs_twice_is_one_object() -> None:
    text = php(CLASSES + "$b = new Base; echo serialize((object) ['a' => $b, 'n' => 1, 'b' => [$b], 'c' => $b]);")

    found = parse_object(text).properties

    assert PhpObject("Base", {"secret": "base", "kept": [1, 2]}) == found["a"]
    assert found["a"] is found["c"]
    assert isinstance(found["b"], list)
    assert found["a"] is found["b"][0]


def test_a_case_that_occurs_twice_is_one_case() -> None:
    text = php(CLASSES + "echo serialize((object) ['a' => Suit::Hearts, 'b' => Suit::Hearts]);")

    assert {"a": PhpEnum("Suit", "Hearts"), "b": PhpEnum("Suit", "Hearts")} == parse_object(text).properties


def test_a_variable_that_two_names_share_is_one_value() -> None:
    text = php("$x = [1, 'é']; echo serialize((object) ['a' => &$x, 'b' => 5, 'c' => &$x]);")

    found = parse_object(text).properties

    assert {"a": [1, "é"], "b": 5, "c": [1, "é"]} == found
    assert found["a"] is found["c"]


def test_a_job_delayed_until_one_of_its_own_properties_gives_its_arguments() -> None:
    require_php()

    text = php(
        f'require "Illuminate/Queue/autoload.php"; require "Illuminate/Bus/autoload.php"; require "{JOBS}";'
        '$when = new DateTimeImmutable("2030-01-02 03:04:05 UTC");'
        'echo serialize((new App\\Jobs\\SendMail("a@b.c", $when))->delay($when));'
    )

    assert ";r:" in text
    when = {"date": "2030-01-02 03:04:05.000000", "timezone_type": 3, "timezone": "UTC"}
    assert {"to": "a@b.c", "template": PhpObject("DateTimeImmutable", when)} == command_of({"command": text}).arguments


# As PHP reads them

JUDGE = """
enum E: string { case C = 'c'; }
echo json_encode(array_map(function ($text) {
    $value = @unserialize($text);
    return json_encode($value === false ? 'refused' : $value) ?: json_encode('refused');
}, json_decode(stream_get_contents(STDIN))));
"""


class Writer:
    """PHP data at random, in which most references mean a value."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._numbers = 0

    def text(self, depth: int = 0) -> str:
        kind = self._random.choice("OO" if depth == 0 else "OaaEisrrRR" if depth < 4 else "iErR")
        self._numbers += kind != "R"
        number = self._random.randint(1, self._numbers)
        match kind:
            case "a":
                return "a:" + self._pairs(depth, "i:{};")
            case "O":
                return 'O:8:"stdClass":' + self._pairs(depth, 's:1:"{}";')
            case "r" | "R":
                return f"{kind}:{number};"
        return {"i": "i:7;", "s": 's:6:";r:1;x";', "E": 'E:3:"E:C";'}[kind]

    def _pairs(self, depth: int, key: str) -> str:
        size = self._random.randint(0, 3)
        return f"{size}:{{{''.join(key.format(index) + self.text(depth + 1) for index in range(size))}}}"


def plain(value: PhpValue) -> Any:
    """As PHP writes it in JSON."""
    match value:
        case PhpObject():
            return {key: plain(inner) for key, inner in value.properties.items()}
        case PhpEnum():
            return "c"
        case list():
            return [*map(plain, value)]
    return value


def read(text: str) -> Any:
    try:
        return plain(parse(text))
    except PhpDataRefused:
        return "refused"


def test_php_reads_the_same_and_refuses_the_same() -> None:
    texts = [Writer(seed).text() for seed in range(4_000)]

    expected = [json.loads(found) for found in json.loads(php(JUDGE, json.dumps(texts)))]

    assert expected == [*map(read, texts)]
    read_with_references = [
        text for text, value in zip(texts, expected, strict=True) if "r:" in text and value != "refused"
    ]
    assert len(read_with_references) > 300


# Bombs


def doubling(levels: int) -> str:
    """Each object holds the one before it twice: 2 ** levels of them for a program that walks through it."""
    inner = 'O:1:"A":0:{}'
    for _ in range(levels):
        inner = f'O:1:"A":2:{{s:1:"a";{inner}s:1:"b";r:@;}}'
    numbers = count(levels + 1, -1)
    while "@" in inner:
        inner = inner.replace("@", str(next(numbers)), 1)
    return inner


def growing(links: int) -> str:
    """Each object of the list holds the one before it: as deep as the list is long."""
    numbers = [2, *range(3, 2 * links, 2)]
    holders = (f'i:{link};O:1:"A":1:{{s:1:"x";r:{numbers[link - 1]};}}' for link in range(1, links))
    objects = ['i:0;O:1:"A":0:{}', *holders]
    return f"a:{links}:{{{''.join(objects)}}}"


def again(text: str, times: int) -> str:
    return f"a:{times + 1}:{{i:0;{text}{''.join(f'i:{n};R:2;' for n in range(1, times + 1))}}}"


@each(
    ("text", "reason"),
    [
        (doubling(60), f"more than {MAX_VALUES} values"),
        (again('s:1000000:"' + "x" * 1_000_000 + '";', 99_000), f"more than {MAX_BYTES} bytes"),
        (again(f"a:1000:{{{''.join(f'i:{n};N;' for n in range(1000))}}}", 1000), f"more than {MAX_VALUES} values"),
        (growing(100), f"nested deeper than {MAX_DEPTH}"),
    ],
)
def test_a_bomb_of_references_is_refused_at_once(text: str, reason: str) -> None:
    started = time.process_time()

    with pytest.raises(PhpDataRefused, match=reason):
        parse(text)

    assert time.process_time() - started < AT_ONCE


@pytest.mark.thorough("the limits themselves; what is beyond them is refused in the test above")
def test_what_stays_within_the_limits_is_read_at_once() -> None:
    started = time.process_time()

    read(doubling(14)), read(growing(MAX_DEPTH - 1))
    found = parse(again("i:7;", MAX_VALUES - 1))

    assert [7] * MAX_VALUES == found
    assert time.process_time() - started < AT_ONCE


def test_a_text_without_references_is_not_numbered_though_it_speaks_of_them() -> None:
    assert ";r:1;R:1;" == parse_object(build_command("A", {"x": ";r:1;R:1;"})).properties["x"]


@pytest.mark.thorough("20,000 texts; the two tests below try others")
def test_rubbish_with_references_is_read_or_refused_and_nothing_else() -> None:
    chance = random.Random(7)
    pieces = [*PIECES, "r:1;", "R:2;", "r:2;", ";r:", 'O:1:"B":1:{s:1:"y";', "r:99999;"]
    for _ in range(20_000):
        read('O:1:"A":3:{s:1:"w";O:1:"C":0:{}s:1:"x";' + "".join(chance.choices(pieces, k=8)))


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused_and_nothing_else(data: bytes) -> None:
    for start in (b"", b'O:1:"A":1:{s:1:"x";', b"a:2:{i:0;N;i:1;r:"):
        read((start + data).decode("utf-8", "surrogateescape"))


@given(st.integers(0, 300), st.data())
def test_a_text_with_some_bytes_changed_is_read_or_refused_and_nothing_else(seed: int, data: st.DataObject) -> None:
    changed = bytearray(Writer(seed).text().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))

    read(changed.decode("utf-8", "surrogateescape"))
