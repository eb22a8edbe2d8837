"""A page that looks for one thing everywhere ends in time, and says where it has not looked."""

from __future__ import annotations

import pytest

from queuepool.operating.choice import EveryPool
from queuepool.operating.job_search import JobSearch
from tests.support.dashboards import config_of
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
