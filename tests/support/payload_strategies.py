"""Payloads of every kind, with ``@@`` in place of their attempts."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import strategies as st

MOST = 65_534

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = texts | st.sampled_from(
    ["attempts", "id", "delay", '"attempts":0', 'x","attempts":7}', "attempts\\", 'x"attempts']
)
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
    """The style of a JSON writer."""

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
    """A payload with ``@@`` in place of its attempts: before, between or after its other fields."""
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
    head, tail = parts(template)
    return f"{head}{attempts}{tail}".encode()


def parts(template: str) -> tuple[str, str]:
    """What comes before and after the attempts; texts may hold ``@@`` too, but only the one after its key counts."""
    for mark in ('"attempts":@@', '"attempts": @@', '"attempts" :@@'):
        head, found, tail = template.partition(mark)
        if found:
            return head + mark[:-2], tail
    raise AssertionError(template)
