"""What a page shows of texts that anybody may have written."""

from __future__ import annotations

import pytest

from queuepool.web.render import moment, timed
from queuepool.web.shown import for_page
from tests.support import hostile_shop
from tests.support.dashboards import opened
from tests.support.drivers import site_on


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


def test_no_text_takes_all_of_a_page_and_none_is_invisible():
    facts = {
        "name": "w" * 10_000, "rows": [{"host": "\u2028\ufeff"}, {"host": "\x00 "}], "paused": ("x" * 501,),
        "back": "/failed?tag=" + "%E8%AA%9E" * 60, "words": "a stack\n" * 1000, "schedules": [{"words": ["z" * 501]}],
        "trace": "t" * 10_000, "arguments": {"\u2028": "a" * 10_000}, "empty": "", "count": 7, "since": None,
    }  # fmt: skip

    shown = for_page(facts)
    assert "w" * 500 + "…" == shown["name"]
    assert [{"host": "\\u2028\\ufeff"}, {"host": "\\x00 "}] == shown["rows"]
    assert ["x" * 500 + "…"] == shown["paused"]
    assert [{"words": ["z" * 500 + "…"]}] == shown["schedules"]
    kept = ("back", "words", "trace", "arguments", "empty", "count", "since")
    assert [facts[key] for key in kept] == [shown[key] for key in kept]


def test_a_time_is_shown_in_utc_whatever_zone_it_names_and_wherever_it_stands_in_a_text():
    moments = {
        "2026-11-26T03:00:00Z": "2026-11-26 03:00:00 UTC", "2026-11-26T03:00:00.25+02:00": "2026-11-26 01:00:00 UTC",
        "0001-01-01T00:00:00+02:00": "0001-01-01T00:00:00+02:00", "of a notice": "of a notice",
    }  # fmt: skip
    assert moments == {raw: moment(raw) for raw in moments}
    words = "paused (since 2026-11-26T03:00:00Z by eve), until 2026-11-26T05:00:00+02:00"
    assert ["2026-11-26T03:00:00Z", "2026-11-26T05:00:00+02:00"] == timed(words)[1::2]
    assert words == "".join(timed(words))


@pytest.mark.thorough("the first test here bounds every text of a page")
@pytest.mark.bad_input("B179")
def test_long_names_leave_room_for_the_rest(site):
    hostile_shop.fill(site)
    longest = "w" * 600
    with opened(hostile_shop.config(site), "viewer") as browser:
        for path in ("/", "/pools", "/running", "/failed", "/alerts", "/queues/default/default"):
            assert longest not in browser.get(path).text, path
        assert longest in browser.get("/api/v1/running").text, "programs have it whole"
