"""Reports of the ends of members in PHP, as Laravel pushes them: late, twice, wrong, under signatures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from queuepool import Call, Flow, php, result
from queuepool.jobs.client import Queue
from queuepool.jobs.following_flows import FlowId
from queuepool.payload.members import REPORT
from tests.support.drivers import DATABASES, site_on
from tests.support.eventually import eventually
from tests.support.flowapp import step, takes
from tests.support.pools import Site

APP = ("--modules", "tests.support.flowapp")

pytestmark = pytest.mark.every_store("place")


@pytest.fixture(params=["redis", *DATABASES])
def place(request: pytest.FixtureRequest) -> Iterator[Site]:
    with site_on(request.param, request) as found, closing(with_reports(found)) as queue:
        yield replace(found, queue=queue)


def with_reports(site: Site) -> Queue:
    return Queue(replace(site.connection, flow_reports="default"))


def ship() -> Call[str]:
    return php("App\\Jobs\\Ship", {"order": 7}, queue="php")


def two(place: Site, then: Call[object] | None = None) -> FlowId:
    """A flow of a member in PHP and one that follows it."""
    flow = Flow("two")
    flow.add(then or step.call("after"), after=flow.add(ship()))
    return flow.push_to(place.queue)


def report(place: Site, flow: str, end: object = "done", **more: object) -> None:
    place.queue.push(REPORT, {"flow": flow, "end": end, **more})


def work(place: Site, *flags: str) -> str:
    return place.work(*APP, *flags).stderr


def names(place: Site) -> list[str]:
    return [line["name"] for line in place.trail(what="ends")]


@pytest.mark.by_turns("more")
@pytest.mark.parametrize("more", [(), ("--concurrency", "4")], ids=["one by one", "side by side"])
def test_a_member_that_is_reported_twice_counts_once(place: Site, more: tuple[str, ...]) -> None:
    found = two(place)
    for _ in range(3):
        report(place, f"{found}:0")
    with place.pool("--workers", "2", *more, *APP):
        eventually(lambda: place.queue.size() == 0)

    assert (["after"], "done") == (names(place), found.flow().state)
    assert (0, 0) == (place.queue.size(), place.queue.stores.failed.count())


@pytest.mark.thorough("the first test has a report too many; these come late, or are none")
def test_a_member_that_is_done_does_not_fail_by_a_later_report(place: Site) -> None:
    found = two(place)
    report(place, f"{found}:0")
    report(place, f"{found}:0", "failed")
    work(place)

    assert (["after"], "done") == (names(place), found.flow().state)
    assert (0, 0) == (place.queue.size(), place.queue.stores.failed.count())


@pytest.mark.thorough("the first test has a report too many; these come late, or are none")
@pytest.mark.parametrize("is_settled", [False, True])
def test_a_flow_goes_on_when_a_member_that_had_failed_is_done_after_all(place: Site, is_settled: bool) -> None:
    found = two(place)
    report(place, f"{found}:0", "failed")
    if is_settled:
        work(place)
        assert "failed" == found.flow().state
    report(place, f"{found}:0")
    work(place)

    assert (["after"], "done") == (names(place), found.flow().state)
    assert (0, 0) == (place.queue.size(), place.queue.stores.failed.count())


@pytest.mark.thorough("the first test has a report too many; these come late, or are none")
def test_what_is_reported_of_no_member_counts_nothing(place: Site) -> None:
    found = two(place)
    for member in (f"{found}:1", f"{found}:7", f"{'A' * 22}:0"):
        report(place, member)
    work(place)

    assert "0 of 2 done" == found.flow().progress
    assert (0, 0) == (place.queue.size(), place.queue.stores.failed.count())


def test_the_last_report_ends_a_cancelled_flow(place: Site) -> None:
    found = two(place)
    assert place.queue.cancel_flow(found)
    assert not found.flow().is_over
    report(place, f"{found}:0")
    work(place)

    assert ([], "cancelled") == (names(place), found.flow().state)
    assert "1 of 2 done, 1 cancelled" == found.flow().progress


def test_a_report_that_is_none_is_recorded_as_failed_with_a_line_that_says_why(place: Site) -> None:
    found = two(place)
    report(place, "no member")
    report(place, f"{found}:0", "perhaps")
    report(place, f"{found}:0", ["done"])
    work(place)

    assert "0 of 2 done" == found.flow().progress
    failed = place.queue.stores.failed.page()
    assert [REPORT] * 3 == [one.name for one in failed]
    assert all("is not the end of a member" in one.exception for one in failed)


def test_a_result_that_is_too_large_fails_the_member(place: Site) -> None:
    flow = Flow("large")
    flow.add(takes.call(result(flow.add(ship()))))
    found = flow.push_to(place.queue)
    report(place, f"{found}:0r", result="x" * 70_000)
    work(place)

    assert ("failed", []) == (found.flow().state, place.trail(what="takes"))
    [failed] = place.queue.stores.failed.page()
    assert "its result, which cannot be kept: 70002 bytes" in failed.exception


def test_check_warns_of_reports_that_no_pool_takes(place: Site) -> None:
    path = place.path / "pool.ini"
    path.write_text("[pool]\nqueue = python\n[connection]\nflow_reports = nobody\n")
    check = ("check", "-c", str(path), *place.where)
    assert "flow_reports nobody: no pool here serves it" in place.run(*check, check=False).stdout
    path.write_text(path.read_text().replace("nobody", "python"))
    assert "flow_reports" not in place.run(*check, check=False).stdout
