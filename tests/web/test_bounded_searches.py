"""A page that looks for one thing everywhere ends in time, and says where it has not looked."""

from __future__ import annotations

import json

import pytest

from queuepool.operating.choice import EveryPool
from queuepool.operating.job_search import JobSearch
from queuepool.web.desk import Desk
from queuepool.web.guard import Doors, Doorway
from queuepool.web.site import Site as Pages
from tests.support.dashboards import Browser, config_of, opened
from tests.support.drivers import site_on


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


def test_a_job_is_not_looked_for_in_more_queues_than_there_is_time_for(site):
    for number in range(5):
        site.push(queue=f"q{number}")
    job, choice = site.push(queue="default"), EveryPool(config_of(site))
    search = JobSearch(choice, site.queue, [], within=0.0)

    assert "default" == (search.find(job) or {})["queue"], "the first queue is searched in any case"
    assert search.find("no-such-job") is None
    assert "5 further queues (there was no time)" in search.looked_at
    assert "the quarantine of 5 further queues (there was no time)" in search.looked_at
    patient = JobSearch(choice, site.queue, [])
    assert patient.find("no-such-job") is None
    assert "there was no time" not in patient.looked_at


@pytest.mark.thorough("16 MB; test_acts.py has a list as a file")
def test_a_list_as_a_file_ends_at_so_many_bytes_and_says_so(site):
    site.queue.bulk([("do", {"text": "x" * 18_000}) for _ in range(1000)])
    with opened(config_of(site)) as browser:
        body = browser.get("/queues/default/default/export").body
        *rows, last = map(json.loads, body.splitlines())
        assert 15_000_000 < len(body) < 16_001_000
        assert {"cut": f"there may be more than these {len(rows)}: narrow the filter"} == last


def test_one_list_at_a_time_is_made_a_file(site):
    desk = Desk(config_of(site))
    browser = Browser(Doorway(Pages(desk).app, Doors(None, "", None, lambda _: "viewer"), desk.threads, desk.close))
    with desk.exporting:
        refused = browser.get("/api/v1/failed/export")
        assert (503, "another export is under way: wait for its end") == (refused.status, refused.json["error"])
    assert [200, 200] == [browser.get("/failed/export").status for _ in range(2)]
    desk.close()
