"""A wrong entry costs no other one: its form is shown again, with a line that says why, and can be sent again."""

from __future__ import annotations

import html
import re
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from tests.support.dashboards import Browser, Got, config_of, opened
from tests.support.drivers import site_on
from tests.support.each import each
from tests.support.many_failed import failed_in_thousands
from tests.web.test_acts import told

QUEUE = "/queues/default/default"


class Form(NamedTuple):
    """A form of a page: how and where it is sent, its fields with what is in them, and the one that is wrong."""

    method: str
    action: str
    fields: dict[str, str]
    wrong: str

    @classmethod
    def of(cls, page: str) -> Form:
        main = page[page.index("<main") :]
        method, action, inside = re.findall(r'<form method="(\w+)" action="(.*?)".*?>(.*?)</form>', main, re.DOTALL)[0]
        inputs = re.findall(r"<input(.*?)>", inside)
        fields = {_of(one, "name"): _of(one, "value") for one in inputs if "checkbox" not in one or "checked" in one}
        [wrong] = [_of(one, "name") for one in inputs if "aria-invalid" in one]
        return cls(method, action, fields, wrong)

    def corrected(self, browser: Browser, value: str) -> Got:
        fields = {**self.fields, self.wrong: value}
        if self.method == "get":
            return browser.get(f"{self.action}?{urlencode(fields)}")
        return browser.post(self.action, fields)


def _of(tag: str, name: str) -> str:
    found = re.search(rf'{name}="(.*?)"', tag)
    return html.unescape(found[1]) if found else ""


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


@pytest.fixture
def browser(site):
    with opened(config_of(site)) as found:
        yield found


@pytest.mark.bad_input("B181")
@each(
    ("path", "right", "others"),
    [
        ("/failed?since=soon&name=app.*&where=a%3D1&error=&told=x&after=y", "2h", {"name": "app.*", "where": "a=1"}),
        ("/failed?where=odd&queue=%22%3E%3Cb%3E", "a=1", {"queue": '"><b>'}),
        (f"{QUEUE}?state=delayed&where=odd&tag=vip&limit=7", "a=1", {"state": "delayed", "tag": "vip", "limit": "7"}),
        ("/failed/confirm?act=retry&until=late&name=do", "1h", {"act": "retry", "name": "do"}),
    ],
)
def test_a_search_is_shown_again_with_what_was_entered(browser, path, right, others):
    refused = browser.get(path)
    form = Form.of(refused.text)

    assert (400, "get", path.partition("?")[0]) == (refused.status, form.method, form.action)
    entered = {name: value for name, value in form.fields.items() if value and name != form.wrong}
    assert others == entered
    assert "<b>" not in refused.text
    assert 200 == form.corrected(browser, right).status


@pytest.mark.bad_input("B181")
def test_the_line_names_the_field_as_its_page_does_and_leads_back(browser):
    page = browser.get("/failed?since=soon&name=do").text
    assert re.search(r'<h1 id="why">Since: .*soon', page)
    assert '<a href="/failed">Back</a>' in page
    assert '<a href="/queues/default/default">Back</a>' in browser.get(f"{QUEUE}/confirm?act=odd").text
    assert '<a href="/">Overview</a>' in browser.get("/history?range=x").text
    assert "soon" in browser.get("/api/v1/failed?since=soon").json["error"]


@pytest.mark.bad_input("B181")
def test_a_number_of_workers_is_asked_again_for_the_same_pool(browser):
    path, sent = "/pools/default/all/scale", {"order": "many", "for": "1h", "host": "web2", "once": "k" * 32}
    form = Form.of(browser.post(path, sent).text)
    assert ("post", path, "order") == (form.method, form.action, form.wrong)
    assert {"order": "many", "for": "1h", "host": "web2"} == {k: v for k, v in form.fields.items() if k != "once"}
    assert form.fields["once"] not in ("", sent["once"]), "it is another form"
    again = form.corrected(browser, "auto")
    assert (400, "for") == (again.status, Form.of(again.text).wrong)


@pytest.mark.bad_input("B186")
def test_where_jobs_go_and_their_number_are_asked_again_for_the_jobs_that_were_counted(site, browser):
    failed_in_thousands(site.queue, 101)
    agreed = browser.facts("/failed/confirm?act=retry&error=Error")["agreed"]
    refused = browser.post("/failed/retry", {"agreed": agreed, "connection": "default", "to": "imagse", "typed": "101"})
    form = Form.of(refused.text)
    assert (409, "to", "101", "imagse") == (refused.status, form.wrong, form.fields["typed"], form.fields["to"])
    assert 'name="unserved"' in refused.text

    form = Form.of(browser.post("/failed/retry", {**form.fields, "to": "default", "typed": ""}).text)
    assert "typed" == form.wrong
    done = form.corrected(browser, "101")
    assert "101 jobs put back" in browser.get(done.headers["location"]).text
    assert 101 == site.queue.size("default")


def test_a_queue_that_is_perhaps_misspelled_is_paused_only_if_that_is_said(site, browser):
    path = "/queues/default/defautl/pause"
    refused = browser.post(path)
    form = Form.of(refused.text)
    assert (409, "unserved") == (refused.status, form.wrong)
    assert "No pool serves queue defautl, and it holds nothing" in refused.text
    assert 409 == browser.send(f"/api/v1{path}", {}).status
    assert set() == site.queue.stores.control.read(["defautl"]).paused

    assert 303 == form.corrected(browser, "yes").status
    assert {"defautl"} == site.queue.stores.control.read(["defautl"]).paused
    site.push(queue="strays")
    assert "queue strays is paused on all hosts" == told(browser, "/queues/default/strays/pause")
