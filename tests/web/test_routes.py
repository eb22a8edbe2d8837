"""Who may ask for what: every route, by every role, in every way, from the one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from queuepool.web.routes import ACTS, API, EXPORTS, PAGES, ActRoute, ExportRoute, PageRoute
from queuepool.web.visitors import ROLES, WebRole
from tests.support.dashboards import Browser, config_of, opened
from tests.support.drivers import site_on

PARTS = {"{connection}": "default", "{queue}": "default", "{id}": "no-such-job", "{name}": "nightly"}
#: what is needed beside the path, so that nothing is refused before the role is looked at
QUERIES = {"/failed/confirm": "?act=retry", "/queues/{connection}/{queue}/confirm": "?act=drop"}


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


def path_of(route: PageRoute | ExportRoute | ActRoute, start: str) -> str:
    path = f"/{route.name}" if start and isinstance(route, PageRoute) and route.path == "/" else route.path
    for name, value in PARTS.items():
        path = path.replace(name, value)
    return start + path + QUERIES.get(route.path, "")


def asked(browser: Browser, route: PageRoute | ExportRoute | ActRoute, start: str) -> int:
    path = path_of(route, start)
    is_sent = isinstance(route, ActRoute) or getattr(route, "method", "GET") == "POST"
    return (browser.post(path) if is_sent else browser.get(path)).status


def answers(config: Any, role: str | None) -> Iterator[tuple[str, WebRole, int]]:
    with opened(config, role) as browser:
        for route in (*PAGES, *EXPORTS, *ACTS):
            # A job that is nowhere is looked for a whole second.
            starts = ("",) if route.path.endswith("/cancel") else ("", API)
            for start in starts:
                yield path_of(route, start), route.role, asked(browser, route, start)


def test_each_page_and_action_is_for_its_role_and_those_above_it(site):
    config = config_of(site)
    for role in ROLES:
        for path, needed, status in answers(config, role):
            is_refused = ROLES[role] < needed
            assert is_refused == (status == 403), (role, path, status)
            assert is_refused or status in (200, 303, 400, 404, 409), (role, path, status)


def test_for_who_has_no_role_nothing_is_there(site):
    assert {404} == {status for _, _, status in answers(config_of(site), None)}


@pytest.mark.bad_input("B176")
def test_a_page_only_reads_and_an_action_is_only_carried_out_by_a_post(site):
    with opened(config_of(site)) as browser:
        for route in (*PAGES, *EXPORTS, *ACTS):
            is_page = not isinstance(route, ActRoute) and getattr(route, "method", "GET") == "GET"
            for start in ("", API):
                path = path_of(route, start)
                wrong = browser.post(path) if is_page else browser.get(path)
                assert wrong.status == 405, (path, wrong.status)
                for method in ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT"):
                    assert browser.get(path, method).status == 405, (method, path)
        override = {"x-http-method-override": "POST"}
        assert browser.get("/failed/retry", "GET", **override).status == 405
        assert browser.post("/failed", {"_method": "GET"}).status == 405
        assert browser.get("/", "HEAD").status == 200


def test_every_answer_says_what_a_browser_may_do_with_it(site):
    with opened(config_of(site), "viewer") as browser:
        for path in ("/", "/queues", "/no-such-page", "/api/v1/overview", "/failed/retry", "/static/no-such-file"):
            headers = browser.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"], path
            assert "unsafe" not in headers["content-security-policy"]
            assert ("nosniff", "no-referrer") == (headers["x-content-type-options"], headers["referrer-policy"])
            assert "public" not in headers["cache-control"], path


def test_the_pages_name_no_file_that_is_not_there_and_nothing_of_others(site):
    with opened(config_of(site)) as browser:
        page = browser.get("/").text
        addresses = [part.split('"')[0] for part in page.split("/static/")[1:]]

        assert 3 == len(addresses)
        assert {200} == {browser.get(f"/static/{one}").status for one in addresses}
        assert "immutable" in browser.get(f"/static/{addresses[0]}").headers["cache-control"]
        assert "//" not in page.replace("http-equiv", "").replace("<!doctype", "")
        assert not [word for word in ("style=", "onclick", "javascript:") if word in page]
