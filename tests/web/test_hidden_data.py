"""Who sees what of a job's data: on every page, in its twin, in files, and by asking for it letter by letter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from queuepool.config.settings import ScheduleSettings
from queuepool.steward.schedule import ScheduledJob
from queuepool.web.visitors import ROLES
from tests.support.dashboards import FROM_OUR_PAGE, Browser, config_of, mounted
from tests.support.many_failed import failed_in_thousands, failed_now
from tests.support.pools import Site

WAITING = "/queues/default/default"
pytestmark = pytest.mark.every_store("at")


class Seer(NamedTuple):
    """A visitor of a dashboard with these settings."""

    data: str
    mask: tuple[str, ...]
    role: str
    browser: Browser

    @property
    def sees_values(self) -> bool:
        return self.data == "yes"

    @property
    def sees_raw(self) -> bool:
        return self.sees_values and (self.role == "admin" or not self.mask)

    @property
    def words(self) -> str:
        return f"data={self.data} mask={self.mask} {self.role}"


#: whether also operators have a turn where they see what viewers do
OPERATORS = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.thorough("as viewers"))])


def seers(site: Site, *, every: bool) -> Iterator[Seer]:
    masked = ("password",)
    for data, mask in (("yes", masked), ("yes", ()), ("keys", masked), ("no", ())):
        config = config_of(site, data=data, mask=mask)
        config = replace(config, pools=tuple(replace(one, schedules=(nightly(site),)) for one in config.pools))
        with mounted(config, lambda scope: dict(scope["headers"])[b"x-role"].decode()) as app:
            for role in ROLES if every or (data, mask) == ("yes", masked) else ("viewer", "admin"):
                yield Seer(data, mask, role, Browser(app, {**FROM_OUR_PAGE, "x-role": role}))


def nightly(site: Site) -> ScheduleSettings:
    return ScheduleSettings(name="nightly", cron="0 2 * * *", job="do", connection=site.connection, queue="nights")


def failed_in_the_night(site: Site) -> None:
    """The last job of the schedule has failed."""
    values, job, day = site.queue.stores.values, ScheduledJob(nightly(site)), 24 * 3600
    due = job.timetable.next_after(site.queue.stores.queue.now() - 2 * day)
    values.begin({"nightly": ""}, due - day)
    assert values.fire(job.due(due, due))
    failed_now(site.queue, "UnknownJob: of-a-schedule", job.id_at(due))


def filled(site: Site) -> list[str]:
    """Data wherever a job can have it; returns the paths that show any of it."""
    [failed] = failed_in_thousands(site.queue, 1, password="of-a-masked", user="of-an-argument")
    site.queue.push_raw(b'{"uuid":"odd-1","job":7,"password":"of-a-raw-payload"}')
    queue = site.queue.stores.queue
    for lease in queue.reserve(["default"], queue.join(), 1).leases:  # else that has put it there
        queue.quarantine(lease, "json")
    assert list(site.queue.stores.records.quarantined("default"))
    data = {"password": "of-a-masked", "user": "of-an-argument"}
    waiting = site.queue.push("do", data, options={"tags": ["of-a-tag"]})
    job = {
        "name": "do", "id": "far", "queue": "default", "attempt": 1, "since": "2026-11-23T03:01:10Z", "running": 5.0,
        "progress": 0.5, "note": "of-a-note",
    }  # fmt: skip
    processes = [{"role": "worker", "number": 3, "pid": 77, "state": "busy", "job": job}]
    notice = {"host": "web2", "pool": "p", "state": "running", "workers": 1, "processes": processes, "id": "0" * 16}
    site.queue.stores.control.publish("web2:p:1", notice)
    failed_in_the_night(site)
    return [
        WAITING, f"{WAITING}/export", "/failed", "/failed?column=password&column=user", "/failed/export",
        f"/jobs/{waiting}", f"/jobs/{failed}", "/jobs/far", "/running", "/quarantine", "/schedules",
    ]  # fmt: skip


#: what only who sees payloads as they are is shown, and what everybody is, unless no values are
RAW = ("of-a-masked", "of-a-raw-payload", "Traceback (most recent")
TEXTS = ("of-an-argument", "of-a-tag", "of-a-note", "order 0 is wrong", "of-a-schedule")
#: what asks for these letter by letter
RAW_GUESSES = ("search=of-a-m", "where=password%3Dof-a-m*", "where=user.password.x%3D1")
TEXT_GUESSES = ("where=user%3Dof-an*", "tag=of-a*", "error=order")


@OPERATORS
def test_data_is_seen_by_whom_it_is_for_and_by_nobody_else(at, every):
    paths = filled(at)
    for seer in seers(at, every=every):
        text = "".join(seer.browser.get(f"{start}{path}").text for path in paths for start in ("", "/api/v1"))
        assert dict.fromkeys(RAW, seer.sees_raw) == {word: word in text for word in RAW}, seer.words
        assert dict.fromkeys(TEXTS, seer.sees_values) == {word: word in text for word in TEXTS}, seer.words
        assert "ValueError" in text, "its kind says nothing of the data"


@pytest.mark.bad_input("B188")
@OPERATORS
def test_what_is_hidden_cannot_be_found_out_by_asking_for_it(at, every):
    filled(at)
    for seer in seers(at, every=every):
        rows = [(guess, seer.sees_raw) for guess in RAW_GUESSES] + [(guess, seer.sees_values) for guess in TEXT_GUESSES]
        for guess, is_allowed in rows:
            for status in asked_by(seer, guess):
                assert is_allowed == (status != 403), (seer.words, guess, status)
        counted = {"password": seer.sees_raw, "user": seer.sees_values, "tag": seer.sees_values, "name": True}
        assert counted == {by: seer.browser.get(f"{WAITING}?by={by}").status == 200 for by in counted}, seer.words
        # An id is found in a payload that is no job; a part of the payload is not.
        assert "quarantined" in seer.browser.get("/jobs/odd-1").text
        assert seer.sees_raw == ("quarantined" in seer.browser.get("/jobs/of-a-raw").text), seer.words


def asked_by(seer: Seer, guess: str) -> Iterator[int]:
    """The statuses of what takes a filter: lists, files, and for some roles the count of all that fit."""
    for path in (WAITING, "/api/v1/failed", "/failed/export"):
        yield seer.browser.get(f"{path}?{guess}").status
    if seer.role != "viewer" and guess in (RAW_GUESSES[0], TEXT_GUESSES[0]):
        yield seer.browser.get(f"/failed/confirm?act=retry&{guess}").status
        yield seer.browser.get(f"{WAITING}/confirm?act=move&{guess}").status


@OPERATORS
def test_fields_to_search_are_there_for_whom_they_find_anything(at, every):
    for seer in seers(at, every=every):
        page = seer.browser.get("/failed").text
        assert (seer.sees_raw, seer.sees_values) == ('name="search"' in page, 'name="error"' in page), seer.words
