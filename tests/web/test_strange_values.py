"""Whatever a stranger puts into an address or a form, each page and action has an answer, and no error of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from urllib.parse import quote

import pytest

from tests.support.dashboards import Got, config_of, opened
from tests.support.many_failed import failed_in_thousands

pytestmark = pytest.mark.every_store("at")
#: what each page is asked for
QUEUE = "/queues/default/default"
FILTERS = ("id", "name", "where", "tag", "error", "since", "until", "search", "limit")
QUERIES = {
    QUEUE: (*FILTERS, "state", "by"),
    f"{QUEUE}/export": (*FILTERS, "state"),
    f"{QUEUE}/confirm?act=drop": (*FILTERS, "state"),
    "/failed": (*FILTERS, "column", "connection", "queue"),
    "/failed/export": (*FILTERS, "connection", "queue"),
    "/failed/confirm?act=retry": ("id", "error", "since", "connection", "queue"),
    "/running": ("name", "queue"),
    "/jobs": ("id", "connection"),
    "/history": ("queue", "job", "range", "order"),
    "/quarantine": ("queue", "connection", "limit"),
    "/schedules": ("connection",),
    "/journal": ("text", "limit", "connection"),
    "/": ("told",),
}
#: what each action is sent
FORMS = {
    f"{QUEUE}/move": (*FILTERS, "count", "typed", "before", "to", "state"),
    f"{QUEUE}/drop": (*FILTERS, "count", "typed", "before", "state"),
    f"{QUEUE}/run": ("id", "count", "state"),
    "/failed/retry": ("id", "to", "count", "typed", "before", "connection", "queue", *FILTERS),
    "/failed/forget": ("id", "count", "typed", "before", "connection", "queue", "error"),
    "/jobs/x/cancel": ("connection",),
    "/pools/default/all/scale": ("order", "for"),
}
#: actions on one thing
ACTS = (
    "/jobs/{}/stack", "/pools/default/{}/pause", "/schedules/default/{}/run", "/errands/{}/stop",
    "/quarantine/default/default/{}/retry", "/quarantine/default/{}/x/drop",
)  # fmt: skip
STRANGE = (
    "", "-", "*", "0", "-1", "1e309", "NaN", "inf", "٣", "99999999999999999999", "=", "a=b=c", "..", ".", "a.", "%",
    "\\",
    "\0", "\x1b[31m", "\r\nx: y", "\u2028", "\u202e", "💩", "'", '"', "' OR 1=1 --", "<script>", "{{7*7}}", "[", "[[[[",
    "default", "9999-99-99", "2026-11-26T02:00+25:00", "0001-01-01", "9999-12-31T23:59:59-23:59", "1d" * 60, "x" * 200,
    "x" * 201, "\ufffd", "null", "true", "1" * 400, "0.0.0", "../../etc/passwd", "//evil.example",
)  # fmt: skip


#: one of so many pairs of a name and a value: each name has one or two, each value comes to most pages
SHARES = pytest.mark.parametrize("share", [29, pytest.param(1, marks=pytest.mark.thorough("every pair"))])


def pairs(table: Mapping[str, Sequence[str]], share: int) -> Iterator[tuple[str, str, str]]:
    """A path, the name of a parameter, and a value."""
    found = ((path, name, value) for path, names in table.items() for name in names for value in STRANGE)
    return islice(found, 0, None, share)


@pytest.fixture
def browser(at):
    at.queue.push("do", {"number": 1})
    failed_in_thousands(at.queue, 1)
    with opened(config_of(at)) as found:
        yield found


def oddity(asked: str, got: Got) -> list[str]:
    """What is wrong with an answer."""
    is_trace = "Traceback" in got.text.replace("Traceback (most recent", "")
    has_lines = any("\n" in value for value in got.headers.values())
    return [f"{got.status} for {asked!r}: {got.text[:200]}"] if got.status >= 500 or is_trace or has_lines else []


@pytest.mark.bad_input("B187")
@SHARES
def test_a_page_has_an_answer_to_whatever_it_is_asked_for(browser, share):
    wrong = []
    for path, name, value in pairs(QUERIES, share):
        asked = f"{path}{'&' if '?' in path else '?'}{name}={quote(value)}"
        wrong += oddity(asked, browser.get(asked))
    assert [] == wrong


@pytest.mark.bad_input("B187")
@SHARES
def test_an_action_has_an_answer_to_whatever_it_is_sent(browser, share):
    wrong = []
    for path, name, value in pairs(FORMS, share):
        wrong += oddity(f"{path} {name}={value}", browser.post(path, {name: value}))
    for value in ("\ud800", None, True, 1e308, 10**400, [], [["x"]], {}, [None], ["\ud800"], -0.0):
        got = browser.send("/api/v1/failed/retry", {"id": value, "count": 1, "before": 1})
        wrong += oddity(f"id {value!r}"[:60], got)
    assert [] == wrong


@pytest.mark.bad_input("B187")
@SHARES
def test_a_path_has_an_answer_whatever_is_in_it(browser, share):
    wrong = []
    paths = ("/jobs/{}", "/queues/{}/default", "/queues/default/{}", "/errands/{}", "/{}", "/api/v1/{}", *ACTS)
    for path, _, value in pairs(dict.fromkeys(paths, ("",)), share):
        asked = path.format(quote(value, safe=""))
        wrong += [*oddity(asked, browser.get(asked)), *oddity(asked, browser.post(asked))]
    assert [] == wrong


@pytest.mark.bad_input("B189")
def test_what_spreadsheets_calculate_is_a_text_in_a_line_of_json(at, browser):
    cells = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://evil.example")']
    at.queue.push("do", {"cells": cells})
    got = browser.get(f"{QUEUE}/export")

    assert "application/x-ndjson" == got.headers["content-type"]
    assert got.headers["content-disposition"].endswith('.jsonl"')
    assert cells == json.loads(got.text.splitlines()[-1])["arguments"]["cells"]
