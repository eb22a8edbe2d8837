"""The description of the JSON below /api/v1 is true: of its paths, of what is asked for, and of real answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from starlette.routing import Route

from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.guard import Refusal
from queuepool.web.openapi import FORMS, described, form_of
from queuepool.web.routes import ACTS, API, EXPORTS, PAGES, ActRoute, ExportRoute, PageRoute
from queuepool.web.site import Site as Pages
from queuepool.web.visitors import Visitor, WebRole
from tests.support import hostile_shop
from tests.support.dashboards import Browser, mounted, opened
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.web.test_routes import PARTS

EVE = Visitor("eve", WebRole.ADMIN)
#: of what is asked for, so that nothing is refused before all of it was read
GIVEN = {
    "act": "drop", "state": "delayed", "limit": "9", "count": "101", "typed": "101", "before": "1", "to": "other",
    "order": "+1", "number": "3", "unserved": "yes", "for": "1h", "grace": "0",
}  # fmt: skip
#: where other values are needed to that end
ELSEWHERE = {
    "/flows": {"state": "failed"}, "/flows/{connection}/{id}": {"state": "failed"},
    "/failed/confirm": {"act": "retry"}, "/failed/chosen": {"act": "retry"}, "/history": {"order": "busiest"},
}  # fmt: skip


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


@dataclass(frozen=True, slots=True)
class NotedAsked(Asked):
    """Notes the names of what is asked for."""

    names: set[str] = field(default_factory=set)

    def all(self, name: str) -> list[str]:
        self.names.add(name)
        return Asked.all(self, name)


def test_each_route_is_described_and_nothing_else(site):
    desk = Desk(hostile_shop.config(site))
    routes = [route for route in Pages(desk).app.routes if isinstance(route, Route) and route.path.startswith(API)]
    served = {(route.path.removeprefix(API), method.lower()) for route in routes for method in route.methods or ()}
    desk.close()

    paths = described("")["paths"]
    own = {("/openapi.json", "get"), ("/openapi.json", "head")}
    assert {(path, way) for path, way in served if way != "head"} - own == {
        (path, way) for path, ways in paths.items() for way in ways
    }
    for path, ways in paths.items():
        for way in ways.values():
            in_path = [one["name"] for one in way["parameters"] if one["in"] == "path"]
            assert re.findall(r"{(\w+)}", path) == in_path
            assert way["summary"].endswith("."), "the first line of a docstring"


@pytest.mark.thorough("two seconds; without it only the description would lack what a page reads")
def test_what_is_read_of_a_request_is_what_is_described(site):
    hostile_shop.fill(site)
    desk = Desk(hostile_shop.config(site))
    try:
        for route in (*PAGES, *EXPORTS, *ACTS):
            said, read = names_in(route), read_by(desk, route)
            # A number is typed for more than a hundred jobs that were counted; a form's own key is read before it.
            assert read <= said <= read | {"typed", "once"}, (
                f"{route.path}: mend QUERIES or FIELDS in queuepool/web/openapi.py"
            )
    finally:
        desk.close()


def names_in(route: PageRoute | ExportRoute | ActRoute) -> set[str]:
    [way] = way_of(route).values()
    in_query = {one["name"] for one in way["parameters"] if one["in"] == "query"}
    if "requestBody" not in way:
        return in_query
    return in_query | {*way["requestBody"]["content"]["application/json"]["schema"]["properties"]}


def way_of(route: PageRoute | ExportRoute | ActRoute) -> Any:
    return described("")["paths"]["/overview" if route.path == "/" else route.path]


def read_by(desk: Desk, route: PageRoute | ExportRoute | ActRoute) -> set[str]:
    """What is read, with jobs that are named and without."""
    parts = {name: PARTS[f"{{{name}}}"] for name in re.findall(r"{(\w+)}", route.path)}
    does = route.act if isinstance(route, ActRoute) else route.lines if isinstance(route, ExportRoute) else route.facts
    names = set[str]()
    for more in ({}, {"id": "no-such-job"}):
        given = [*{**GIVEN, **ELSEWHERE.get(route.path, {}), **more}.items()]
        query, form = (given, []) if "get" in way_of(route) else ([], given)
        with suppress(Refusal):  # of what is not there
            does(desk, NotedAsked(EVE, "", route.path, parts, query, form, is_json=True, names=names))
    return names


@pytest.mark.thorough("the validator is slow")
def test_the_description_is_openapi(site):
    with opened(hostile_shop.config(site), "viewer") as browser:
        got = browser.get(f"{API}/openapi.json")
        validate(got.json)
        assert ("3.1.0", [{"url": API}]) == (got.json["openapi"], got.json["servers"])


def test_whoever_may_read_may_read_the_description(site):
    config = hostile_shop.config(site)
    for role, status in (("viewer", 200), ("admin", 200), (None, 404)):
        with opened(config, role) as browser:
            assert status == browser.get(f"{API}/openapi.json").status
    with mounted(config, lambda scope: "viewer") as app:
        below = Browser(app, root_path="/queuepool").get(f"{API}/openapi.json")
        assert f"/queuepool{API}" == below.json["servers"][0]["url"]


def test_real_answers_are_as_described(site):
    hostile_shop.fill(site)
    seen = set[str]()
    with (
        site.pool("--workers", "1", "--keep-done", "1h", "--queue", "mine"),
        opened(hostile_shop.config(site)) as browser,
    ):
        ended, gate = site.push("raise", maxTries=2, times=1, queue="mine"), site.path / "gate"
        job = site.push("until", gate=str(gate), queue="mine")
        eventually(lambda: browser.facts("/running?name=do")["jobs"])
        for form, answer in answers(browser, job, ended):
            wrong = [f"{error.json_path}: {error.message[:200]}" for error in strict(form).iter_errors(answer)]
            assert not wrong, f"mend {form} in queuepool/web/openapi.py: {wrong[:5]}"
            assert_exact(answer)
            seen |= {*keys_in(answer)}
        gate.touch()
    said = {part.partition(":")[0] for text in FORMS.values() for part in text.split() if ":" in part}
    # "gap" stands for an attempt whose record a lost host has taken with it.
    assert {"gap"} == said - seen, "what is described, and in no answer"


def answers(browser: Browser, job: str, ended: str) -> Iterator[tuple[str, Any]]:
    """Real ones, with the names of their forms."""
    tracked = browser.send("/api/v1/schedules/default/nightly/run", {}).json["job"]
    lists = {
        "Queue": ("/queues/default/default?limit=2", "/queues/default/default?state=delayed", "/queues/default/mine"),
        "Failed": ("/failed?limit=2&column=mode",),
        "History": ("/history", "/history?range=35d"),
        "Job": tuple(f"/jobs/{one}" for one in (job, ended, tracked, "failed-1", "job-3", "runs-1", "nope", "*")),
        "Flows": ("/flows", "/flows?state=failed&limit=1"),
        "Flow": (f"/flows/default/{hostile_shop.flow_of(0)}", "/flows/default/nobody"),
        "OneLimit": ("/limits/default/import", "/limits/default/nope"),
        "ConfirmWaiting": ("/queues/default/default/confirm?act=drop",),
        "Confirm": ("/failed/confirm?act=retry", "/failed/confirm?act=retry&id=failed-1"),
        "Refused": ("/errands/nope", "/history?range=x", "/queues/nope/nope", "/failed?after=x", "/no-such-page"),
        **{form_of(page): (f"/{page.name}",) for page in PAGES if f"/{page.name}" in ("/overview", page.path)},
    }
    assert {form_of(page) for page in PAGES} - {"Errand", "Submission"} <= {*lists}
    for form, paths in lists.items():
        for path in paths:
            got = browser.get(f"{API}{path}")
            assert (form == "Refused") == ("problems" not in got.json), (path, got.text)
            yield form, got.json
    yield from acts(browser, job)
    told = browser.post("/queues/default/default/pause", {}).headers["location"].partition("told=")[2]
    yield "Submission", browser.facts(f"/submissions/{told}")


def acts(browser: Browser, job: str) -> Iterator[tuple[str, Any]]:
    entry = browser.facts("/quarantine?queue=odd")["entries"][0]["id"]
    for path, body in {
        "/queues/default/default/pause": {},
        f"/jobs/{job}/stack": {},
        "/jobs/job-2/cancel": {},
        f"/quarantine/default/odd/{entry}/drop": {},
        "/schedules/default/nightly/continue": {},
        "/failed/retry": {"id": ["failed-1"]},
    }.items():
        got = browser.send(f"{API}{path}", body)
        assert "words" in got.json, (path, got.text)
        yield "Acted", got.json
        if "id" in got.json:
            yield "Errand", browser.facts(f"/errands/{got.json['id']}")


def strict(form: str) -> Draft202012Validator:
    """Refuses keys of which nothing is said."""
    schemas = {
        name: {**one, "additionalProperties": False} for name, one in described("")["components"]["schemas"].items()
    }
    return Draft202012Validator({"$ref": f"#/components/schemas/{form}", "components": {"schemas": schemas}})


def assert_exact(value: Any) -> None:
    """JavaScript can hold each number in it."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]:
        assert not isinstance(one, int) or abs(one) <= 2**53
        if isinstance(one, dict | list):
            assert_exact(one)


def keys_in(value: Any) -> Iterator[str]:
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_in(one)
    yield from value if isinstance(value, dict) else ()
