"""``queuepool limits``: who holds places and who waits is listed, and numbers are set by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from queuepool.payload.limits import PlaceAsked, holding
from tests.support.pools import Site
from tests.support.samples import ids, new_jobs, payload

ONE = PlaceAsked("import=t1", "-", 1)


@pytest.fixture
def parked(site: Site) -> Site:
    """A job holds the only place, and two wait."""
    store = site.queue.stores.queue
    store.push("default", new_jobs(*map(payload, "abc")))
    tag = store.join()
    for lease in map(holding, store.reserve(["default"], tag, 3).leases):
        store.limits.enter(lease, ids([lease])[0], [ONE])
    return site


def said(site: Site, *words: str, code: int = 0) -> str:
    done = site.run(words[0], *words[1:], *site.where, check=False)
    assert code == done.returncode, done.stderr
    return done.stdout + done.stderr


def rows(site: Site, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(site.run(words[0], *words[1:], "--json", *site.where).stdout)
    return found


def test_a_limit_is_listed_with_those_that_hold_and_wait(parked):
    [row] = rows(parked, "limits", "list")

    assert ("import=t1", "1", 1, 2, "default") == tuple(row[key] for key in ("key", "limit", "held", "parked", "next"))


def test_a_number_is_set_and_reset(parked):
    assert "limit import: is now 2\n" == said(parked, "limits", "set", "import", "2")
    assert [1] == [row["granted"] for row in rows(parked, "limits", "list")]
    said(parked, "limits", "reset", "import")
    assert [False] == [row["by_hand"] for row in rows(parked, "limits", "list")]

    assert "'10001' is not a whole number from 0 to 10000" in said(parked, "limits", "set", "import", "10001", code=2)
    assert "there is no limit exprot" in said(parked, "limits", "set", "exprot", "2", code=1)


def test_parked_jobs_are_found_by_what_they_are(parked):
    assert ["b", "c"] == sorted(row["id"] for row in rows(parked, "jobs", "default", "--state", "parked"))
    assert 2 == len(rows(parked, "jobs", "--state", "parked", "--name", "app.*"))
    assert {"parked", "reserved"} == {row["state"] for row in rows(parked, "jobs", "--state", "parked,reserved")}
    assert [] == rows(parked, "jobs", "--state", "parked", "--name", "other")


def test_who_waits_the_longest_is_named(parked):
    [row] = rows(parked, "limits", "list")

    assert ("b", "app.ok") == (row["job"], row["name"])


def test_parked_jobs_are_counted(parked):
    [size] = rows(parked, "size", "default")
    [monitored] = rows(parked, "monitor", "default", "--max", "3")

    assert (1, 2) == (size["size"], size["parked"])
    assert (2, "ALERT") == (monitored["parked"], monitored["status"])


def test_a_parked_job_is_found_cancelled_and_cleared(parked):
    assert "state: parked\n" in said(parked, "job", "b")
    assert "limit: import=t1\nbefore: 1\n" in said(parked, "job", "c")
    assert "was taken out of queue default, where it waited for a place of a limit;" in said(parked, "cancel", "b")
    assert "failed" in said(parked, "job", "b")
    assert "dropped 2 jobs of default, 1 of which waited for places of limits\n" == said(
        parked, "clear", "default", "--force"
    )

    assert 0 == parked.queue.parked()
    assert 0 == parked.queue.size()


def test_parked_jobs_are_moved(parked):
    assert "2 jobs moved from default to other: default 2\n" == said(parked, "move", "default", "other", "--force")

    assert (0, 2) == (parked.queue.parked(), parked.queue.size("other"))
