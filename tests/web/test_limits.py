"""The pages of limits: a list, one with those that hold its places and those that wait, and its number set by hand."""

from __future__ import annotations

import time

import pytest

from queuepool.payload.lease import NOTHING, Lease
from queuepool.payload.limits import NO_PART, PlaceAsked, holding, job_word
from queuepool.stores.contract import NewJob
from tests.support.dashboards import config_of, opened
from tests.support.drivers import site_on
from tests.support.pools import Site
from tests.support.samples import ids, new_jobs, payload
from tests.web.test_acts import journal, told

pytestmark = pytest.mark.every_store("at")
PATH = "/limits/default/import"


@pytest.fixture
def lease(at: Site) -> Lease:
    """That of the job which holds the only place; three wait, in two lines."""
    store = at.queue.stores.queue
    store.push("default", new_jobs(*map(payload, "abcd")))
    tag, found = store.join(), list[Lease]()
    for part in ("t1", "t1", "t2", "t1"):
        one = holding(store.reserve(["default"], tag, 1).leases[0])
        store.limits.enter(one, ids([one])[0], [PlaceAsked("import=<b>eu", part, 1)])
        found.append(one)
    return found[0]


@pytest.mark.usefixtures("lease")
def test_limits_are_listed_with_their_numbers_and_who_waits_the_longest(browser):
    [row] = browser.facts("/limits")["limits"]

    assert ("import", 1, 1, False) == tuple(row[key] for key in ("limit", "number", "code", "by_hand"))
    assert (1, 1, 3, False) == tuple(row[key] for key in ("keys", "held", "parked", "is_at_least"))
    assert "b" == row["longest"]["job"]
    page = browser.get("/limits").text
    assert f'href="{PATH}"' in page
    assert 'href="/jobs/b?connection=default"' in page
    assert "<b>eu" not in page


@pytest.mark.usefixtures("lease")
def test_one_limit_has_its_holders_its_lines_and_its_waiters(at, browser):
    facts = browser.facts(PATH)

    [holder] = facts["holders"]
    assert ("import=<b>eu", "a", "default") == (holder["key"], holder["job"], holder["queue"])
    assert [("t1", 2), ("t2", 1)] == [(line["part"], line["parked"]) for line in facts["lines"]]
    assert [("b", "t1"), ("c", "t2")] == [(one["job"], one["part"]) for one in facts["waiters"]]
    assert [("import=<b>eu", 1, 3)] == [(key["key"], key["held"], key["parked"]) for key in facts["keys"]]
    page = browser.get(PATH).text
    assert "<b>eu" not in page
    assert "&lt;b&gt;eu" in page


def test_a_limit_at_which_nobody_waits_is_listed(at, browser):
    at.queue.stores.limits.declare("stripe", 100, 60.0)

    [row] = browser.facts("/limits")["limits"]
    assert (100, 60.0, 0, None) == (row["number"], row["per"], row["parked"], row["longest"]["job"])
    assert "No job waits." in browser.get("/limits/default/stripe").text
    assert "stripe" in browser.get("/limits").text


def test_places_are_handed_on_and_the_page_shows_it(at, browser, lease):
    at.queue.stores.queue.finish(lease, NOTHING)

    found = browser.facts(PATH)["row"]
    assert (0, 1, 2) == (found["held"], found["granted"], found["parked"])


@pytest.mark.usefixtures("lease")
def test_a_number_is_set_and_reset_and_the_journal_says_by_whom(at, browser):
    assert f'action="{PATH}/set"' in browser.get(PATH).text
    assert f'action="{PATH}/reset"' not in browser.get(PATH).text

    assert "limit import: is now 2" == told(browser, f"{PATH}/set", {"number": 2})
    row = browser.facts(PATH)["row"]
    assert (2, 1, True, 1) == (row["number"], row["code"], row["by_hand"], row["granted"])
    assert "set by hand" in browser.get(PATH).text
    assert "limit import: is now 0" == told(browser, f"{PATH}/set", {"number": 0})
    assert "limit import: follows the code again" == told(browser, f"{PATH}/reset")
    lines = [
        ("limits reset", "limit import follows the code again", None),
        ("limits set", "limit import is now 0", None),
        ("limits set", "limit import is now 2", None),
    ]
    assert sorted(lines) == sorted(journal(at))
    assert {"eve"} == {line.by.partition("@")[0] for line in at.queue.stores.journal.last(9)}


@pytest.mark.usefixtures("lease")
def test_what_cannot_be_a_number_changes_nothing(at, browser):
    for wrong in ("", "-1", "two", "1e3", "9" * 30):
        assert 400 == browser.post(f"{PATH}/set", {"number": wrong}).status, wrong
    assert 404 == browser.post("/limits/default/exprot/set", {"number": 2}).status
    assert 404 == browser.get("/limits/default/exprot").status
    assert [None] == [limit.by_hand for limit in at.queue.stores.limits.all()]
    assert [] == journal(at)


@pytest.mark.usefixtures("lease")
def test_a_viewer_sees_no_form(at):
    with opened(config_of(at), "viewer") as browser:
        assert "<form" not in browser.get(PATH).text.partition("<main")[2]
        assert 403 == browser.post(f"{PATH}/set", {"number": 2}).status


@pytest.mark.usefixtures("lease")
def test_where_no_data_is_shown_no_values_are(at):
    with opened(config_of(at, data="names")) as browser:
        text = browser.get(PATH).text

    assert "b&gt;eu" not in text
    assert "t2" not in text
    assert "import" in text


def test_without_limits_the_page_says_how_to_define_one(browser):
    assert [] == browser.facts("/limits")["limits"]
    assert "@job(limits=[Concurrency(&#34;import&#34;, 2)])" in browser.get("/limits").text


@pytest.mark.thorough("40,000 jobs; test_one_limit_has_its_holders_its_lines_and_its_waiters has a few")
def test_forty_thousand_parked_jobs_do_not_make_the_page_slow(request):
    with site_on("redis", request) as site:
        jobs = [NewJob(b"{}", None, job_word(f"{n}"), [PlaceAsked("gpu", f"t{n % 2000}", 1)]) for n in range(40_000)]
        for first in range(0, len(jobs), 5000):
            site.queue.stores.queue.push("default", jobs[first : first + 5000])
        with opened(config_of(site)) as browser:
            began = time.process_time()
            facts = browser.facts("/limits/default/gpu")
            assert time.process_time() - began < 1.0
            assert facts["row"]["is_at_least"]
            assert 19_000 < facts["row"]["parked"] <= 20_000, "of the 1,000 lines that are read"
            assert NO_PART not in {line["part"] for line in facts["lines"]}
            assert 50 == len(facts["lines"])
