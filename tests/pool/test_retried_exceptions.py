"""Which exceptions of a handler are retried: those that ``retry_on`` names, and not those that ``fail_on`` does."""

from __future__ import annotations

from tests.support.eventually import eventually
from tests.support.pools import Site

APP = ("--modules", "tests.support.softapp")


#: how often each job is tried that raises this
TRIED = {
    ("plain", "ValueError"): 3,
    ("plain", "SystemExit"): 3,
    ("plain", "JobError"): 1,
    ("retry_on", "TimeoutError"): 3,
    ("retry_on", "Wrong"): 3,
    ("retry_on", "ValueError"): 1,
    ("retry_on", "SystemExit"): 1,
    ("retry_on", "JobError"): 1,
    ("retry_on", "TimedOut"): 1,
    ("fail_on", "ValueError"): 1,
    ("fail_on", "Wrong"): 1,
    ("fail_on", "KeyError"): 3,
    ("both", "ValueError"): 3,
    ("both", "Wrong"): 1,
    ("both", "Derived"): 1,
    ("both", "KeyError"): 1,
    ("Failing", "Wrong"): 1,
    ("Failing", "KeyError"): 3,
}


def test_an_exception_is_retried_or_fails_its_job_at_once(site: Site) -> None:
    pushed = {site.queue.push(name, {"error": error}, options={"backoff": 0}): (name, error) for name, error in TRIED}
    site.work(*APP)
    failed = {pushed[row.id]: row for row in site.queue.stores.failed.page(count=len(pushed))}

    assert TRIED == {job: row.attempts for job, row in failed.items()}
    assert [] == [job for job, row in failed.items() if job[1] not in row.exception.splitlines()[-1]]
    assert sum(TRIED.values()) == len(site.trail(event="start"))


def test_a_job_that_fails_at_once_calls_its_hook_and_is_logged_as_any_failure(site):
    site.queue.push("Failing", {"error": "ValueError"})
    log = site.work(*APP).stderr

    assert ["ValueError"] == [line["error"] for line in site.trail(event="after_failed")]
    assert 1 == log.count("job failed") == log.count("job raised")


def test_what_the_handler_asked_for_counts_before_what_it_raised(site):
    site.queue.push("fail_on", {"error": "ValueError", "release": True})
    site.work(*APP)

    assert 3 == len(site.trail(event="start"))
    assert "NoTriesLeft" in site.queue.stores.failed.page()[0].exception


def test_a_death_is_no_exception_of_the_handler(site):
    """The steward rules on it, from the board, where no class of the application's is."""
    site.queue.push("killed", {})
    with site.pool("--workers", "1", *APP):
        eventually(lambda: 2 == len(site.trail(event="start")))
        eventually(lambda: 0 == site.queue.size())

    assert 0 == site.queue.stores.failed.count()
