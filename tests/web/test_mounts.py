"""The dashboard within applications of others."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount

from queuepool.web import Visitor, dashboard
from queuepool.web.visitors import WebRole
from tests.support.dashboards import Browser, config_of
from tests.support.drivers import site_on


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


@pytest.fixture
def mounted(site):
    app = dashboard(config_of(site), access=lambda scope: "operator" if ADMIN in scope["headers"] else None)
    yield app
    app.close()


ADMIN = (b"x-user", b"ann")


def check(app, site):
    """It works below /queuepool, for those whom the application lets in, and leaves the rest to the application."""
    stranger, browser = (
        Browser(app),
        Browser(app, {"host": "testserver", "sec-fetch-site": "same-origin", "x-user": "ann"}),
    )

    assert 404 == stranger.get("/queuepool/").status
    page = browser.get("/queuepool/")
    assert (200, True) == (page.status, 'href="/queuepool/queues"' in page.text)
    assert 200 == browser.get("/queuepool/api/v1/overview").status
    paused = browser.post("/queuepool/queues/default/default/pause")
    assert (303, True) == (
        paused.status,
        paused.headers["location"].startswith("/queuepool/queues/default/default?told="),
    )
    assert {"default"} == site.queue.stores.control.read(["default"]).paused
    assert 404 == browser.get("/other").status


def test_it_is_mounted_in_fastapi(site, mounted):
    app = FastAPI()
    app.mount("/queuepool", mounted)

    check(app, site)


def test_it_is_mounted_beside_any_other_application(site, mounted):
    """As beside a Django project."""
    others = PlainTextResponse("404: not here", 404)

    check(Starlette(routes=[Mount("/queuepool", mounted), Mount("/", others)]), site)


def test_an_application_may_name_its_visitors(site):
    app = dashboard(config_of(site), access=lambda scope: Visitor("ann <b>", WebRole.ADMIN))

    assert "ann &lt;b&gt;" in Browser(app).get("/").text
    app.close()


def test_an_application_that_names_no_role_is_told(site, caplog):
    app = dashboard(config_of(site), access=lambda scope: "root")

    with pytest.raises(ValueError, match="access returned 'root', which is none of viewer, operator, admin"):
        Browser(app).get("/")
    app.close()
