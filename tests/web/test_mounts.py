"""The dashboard within applications of others."""

from __future__ import annotations

import json
import os
import sys

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount

from queuepool.web import Visitor, WsgiDashboard, dashboard
from queuepool.web.guard import MAX_BODY
from queuepool.web.visitors import WebRole
from tests.support import warm
from tests.support.dashboards import Browser, config_of
from tests.support.django_project import LIBRARIES
from tests.support.drivers import site_at, site_on
from tests.support.pools import ROOT


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
RENEWED = "/queuepool/journal?part=live"


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


def test_it_is_mounted_in_flask(site, mounted):
    flask = pytest.importorskip("flask")
    dispatcher = pytest.importorskip("werkzeug.middleware.dispatcher")
    app = flask.Flask(__name__)
    app.wsgi_app = dispatcher.DispatcherMiddleware(app.wsgi_app, {"/queuepool": WsgiDashboard(mounted)})
    browser, ann = app.test_client(), {"x-user": "ann", "sec-fetch-site": "same-origin"}

    assert 404 == browser.get("/queuepool/").status_code
    page = browser.get("/queuepool/", headers=ann)
    assert (200, True) == (page.status_code, 'href="/queuepool/queues"' in page.text)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert 200 == browser.get("/queuepool", headers=ann).status_code
    assert 304 == browser.get(RENEWED, headers={**ann, "if-none-match": etag_of(browser, ann)}).status_code
    paused = browser.post("/queuepool/queues/default/default/pause", headers=ann)
    assert (303, True) == (paused.status_code, paused.location.startswith("/queuepool/queues/default/default?told="))
    assert {"default"} == site.queue.stores.control.read(["default"]).paused
    assert 403 == browser.post("/queuepool/queues/default/default/pause", headers={"x-user": "ann"}).status_code
    assert 413 == browser.post("/queuepool/failed/retry", data=b"x" * (MAX_BODY + 1), headers=ann).status_code
    assert (200, b"") == (browser.head("/queuepool/", headers=ann).status_code, browser.head("/queuepool/").data)
    assert 404 == browser.get("/queuepool/queues/default/%C3%BC", headers=ann).status_code
    assert 404 == browser.get("/other").status_code


def etag_of(browser, headers) -> str:
    return browser.get(RENEWED, headers=headers).headers["etag"]


#: asks a view of Django as its handlers do, with requests of WSGI and of ASGI
IN_DJANGO = """
import json, sys
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "queuepool.contrib.django"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}}, ALLOWED_HOSTS=["*"],
)
django.setup()
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import AnonymousUser, User
from django.test import AsyncRequestFactory, RequestFactory
from queuepool.contrib.django.dashboard import dashboard_urls

[pattern] = dashboard_urls("/queuepool/")
found = {}

def ask(words, request, user):
    request.user = user
    assert pattern.resolve(request.path_info[1:])
    answer = pattern.callback(request)
    found[words] = [answer.status_code, 'href="/queuepool/queues"' in answer.content.decode()]

ann, bob = User(username="ann", is_staff=True, is_superuser=True), User(username="bob", is_staff=True)
form, host = "application/x-www-form-urlencoded", {"host": "testserver"}
ours = {**host, "sec-fetch-site": "same-origin"}
pause = "/queuepool/queues/default/default/pause"
for kind, made in (("wsgi", RequestFactory()), ("asgi", AsyncRequestFactory())):
    in_thread = async_to_sync(sync_to_async(ask)) if kind == "asgi" else ask
    in_thread(f"{kind} nobody", made.get("/queuepool/", headers=ours), AnonymousUser())
    in_thread(f"{kind} staff", made.get("/queuepool/", headers=ours), bob)
    in_thread(f"{kind} staff pauses", made.post(pause, content_type=form, headers=ours), bob)
    in_thread(f"{kind} superuser pauses", made.post(pause, content_type=form, headers=ours), ann)
    in_thread(f"{kind} form of others", made.post(pause, content_type=form, headers=host), ann)
print(json.dumps(found))
"""


@pytest.mark.libraries(*LIBRARIES)
def test_it_is_mounted_in_django_on_wsgi_and_on_asgi_for_its_own_users(tmp_path):
    pytest.importorskip("django")
    env = {name: value for name, value in os.environ.items() if not name.startswith("QUEUEPOOL")}
    database = tmp_path / "site.sqlite3"
    site_at(f"sqlite:///{database}", tmp_path).queue.close()
    done = warm.run(
        [sys.executable, "-c", IN_DJANGO, str(database)], env=env | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip

    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)
    for kind in ("wsgi", "asgi"):
        of_kind = {words.removeprefix(f"{kind} "): answer for words, answer in found.items() if words.startswith(kind)}
        assert {
            "nobody": [404, False],
            "staff": [200, True],
            "staff pauses": [403, True],  # the page that says so has the navigation
            "superuser pauses": [303, False],
            "form of others": [403, False],
        } == of_kind


#: an application that begins something endless in the background, and closes nothing
IN_THE_BACKGROUND = """
import threading
from types import SimpleNamespace
from queuepool.stores.records import Returned
from queuepool.web.errands import ErrandPlan, Errands
from queuepool.web.visitors import Visitor, WebRole

def pages():
    while True:
        threading.Event().wait(0.01)
        yield [SimpleNamespace(raw=b"", queue="default")]

plan = ErrandPlan("retry", "put back", "default", 2, "/failed", lambda *line: print("noted:", *line, flush=True) or "")
errand = Errands().begin(plan, Visitor("eve", WebRole.ADMIN), pages(), lambda jobs: [Returned.DONE] * len(jobs))
print(errand.state, flush=True)
"""


def test_a_process_that_ends_stops_what_runs_in_the_background_after_its_batch_and_notes_it():
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = warm.run([sys.executable, "-c", IN_THE_BACKGROUND], env=env, capture_output=True, text=True, check=True)

    state, noted = done.stdout.splitlines()
    assert ("running", "") == (state, done.stderr)
    assert noted.startswith("noted: retry jobs on connection default")
