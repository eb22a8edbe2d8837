"""Who may ask for what: every route, by every role, in every way, from the one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, TypeVar

import pytest

from queuepool.web import WsgiDashboard
from queuepool.web.guard import Doorway
from queuepool.web.routes import ACTS, API, EXPORTS, PAGES, ActRoute, ExportRoute, PageRoute
from queuepool.web.visitors import ROLES, WebRole
from tests.support.dashboards import FROM_OUR_PAGE, Browser, config_of, mounted, opened
from tests.support.drivers import site_on

S, T = TypeVar("S"), TypeVar("T")
PARTS = {"{connection}": "default", "{queue}": "default", "{id}": "no-such-job", "{name}": "nightly"}
ODD_METHODS = ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT")
#: what is needed beside the path, so that nothing is refused before the role is looked at
QUERIES = {"/failed/confirm": "?act=retry", "/queues/{connection}/{queue}/confirm": "?act=drop"}


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


#: whether each of the one is tried with each of the others, or with one whose turn it is
EVERY_PAIR = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.thorough("every pair"))])


def paired(several: Sequence[S], others: Sequence[T], *, every: bool) -> Iterator[tuple[S, T]]:
    """Each of the others meets many of the several."""
    for number, one in enumerate(several):
        turn = (number + number // len(others)) % len(others)
        yield from ((one, other) for other in (others if every else others[turn : turn + 1]))


def starts() -> list[tuple[PageRoute | ExportRoute | ActRoute, str]]:
    """Each route as a page and below the API."""
    # A job that is nowhere is looked for a whole second.
    return [
        (route, start)
        for route in (*PAGES, *EXPORTS, *ACTS)
        for start in (("",) if route.path.endswith("/cancel") else ("", API))
    ]


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
        for route, start in starts():
            yield path_of(route, start), route.role, asked(browser, route, start)


def test_each_page_and_action_is_for_its_role_and_those_above_it(site):
    config = config_of(site)
    for role in ROLES:
        for path, needed, status in answers(config, role):
            is_refused = ROLES[role] < needed
            assert is_refused == (status == 403), (role, path, status)
            assert is_refused or status in (200, 303, 400, 404, 409), (role, path, status)


#: how a request reaches the pages, and below which path
FACES = {"plain": "", "below a path": "/ops", "wsgi below a path": "/ops"}
FACE_ROLES: dict[str, str | None] = {**{role: role for role in ROLES}, "nobody": None}


@EVERY_PAIR
def test_wherever_it_is_mounted_each_role_may_do_the_same(site, every):
    """What a role may do is asked of each face: the plain one is held to the table by the test before this one."""
    with mounted(config_of(site), lambda scope: FACE_ROLES[dict(scope["headers"])[b"x-role"].decode()]) as app:
        some = starts() if every else starts()[::5]
        for (route, start), role in paired(some, list(FACE_ROLES), every=every):
            statuses = {face: status_at(app, face, route, start, role) for face in FACES}
            assert 1 == len(set(statuses.values())), (route.path, role, statuses)
            assert (role == "nobody") <= (statuses["plain"] == 404), (route.path, statuses)


def status_at(app: Doorway, face: str, route: PageRoute | ExportRoute | ActRoute, start: str, role: str) -> int:
    """The status of this route by its own method."""
    path, headers = path_of(route, start), {**FROM_OUR_PAGE, "x-role": role}
    is_act = isinstance(route, ActRoute)
    if face.startswith("wsgi"):
        return status_of_wsgi(WsgiDashboard(app), path, FACES[face], "POST" if is_act else "GET", headers)
    browser = Browser(app, headers, FACES[face])
    return (browser.post(path) if is_act else browser.get(path)).status


def status_of_wsgi(app: WsgiDashboard, path: str, below: str, method: str, headers: dict[str, str]) -> int:
    raw, _, query = path.partition("?")
    fields = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    about = {"REQUEST_METHOD": method, "SCRIPT_NAME": below, "PATH_INFO": raw, "QUERY_STRING": query}
    said: list[str] = []
    app({**about, **fields, "wsgi.input": BytesIO()}, lambda status, headers: said.append(status))
    return int(said[0][:3])


def test_for_who_has_no_role_nothing_is_there(site):
    assert {404} == {status for _, _, status in answers(config_of(site), None)}


@pytest.mark.bad_input("B176")
@EVERY_PAIR
def test_a_page_only_reads_and_an_action_is_only_carried_out_by_a_post(site, every):
    with opened(config_of(site)) as browser:
        for (route, start), method in paired(starts(), ODD_METHODS, every=every):
            is_page = not isinstance(route, ActRoute) and getattr(route, "method", "GET") == "GET"
            path = path_of(route, start)
            wrong = browser.post(path) if is_page else browser.get(path)
            assert (405, 405) == (wrong.status, browser.get(path, method).status), (method, path)
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
            assert "no-store" == headers["cache-control"], path
        first = browser.get("/journal?part=live")
        again = browser.get("/journal?part=live", if_none_match=first.headers["etag"])
        assert (304, "no-store", b"") == (again.status, again.headers["cache-control"], again.body)


def test_the_pages_name_no_file_that_is_not_there_and_nothing_of_others(site):
    with opened(config_of(site)) as browser:
        page = browser.get("/").text
        addresses = [part.split('"')[0] for part in page.split("/static/")[1:]]

        assert 3 == len(addresses)
        assert {200} == {browser.get(f"/static/{one}").status for one in addresses}
        assert "immutable" in browser.get(f"/static/{addresses[0]}").headers["cache-control"]
        assert "//" not in page.replace("http-equiv", "").replace("<!doctype", "")
        assert not [word for word in ("style=", "onclick", "javascript:") if word in page]
