"""The pages in a real Chromium: at every width, light and dark, by keyboard, and without JavaScript."""

from __future__ import annotations

import pytest

from tests.support.chromium import window
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands
from tests.web.test_pages import HOSTILE
from tests.web.test_server import served

pytestmark = pytest.mark.thorough("it starts a browser")
PAGES = (
    "/", "/alerts", "/queues", "/queues/default/default", "/running", "/failed", "/failed/confirm?act=retry", "/pools",
    "/schedules",
    "/quarantine", "/history", "/journal", "/jobs/nope", "/no-such-page",
)  # fmt: skip


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        for text in HOSTILE:
            found.queue.push("do", {"text": text})
        failed_in_thousands(found.queue, 40, customer=HOSTILE[0])  # what one page of a search has, however slow it is
        found.queue.push_raw(b'{"uuid":"<svg onload=alert(1)>","job":7}')
        yield found


@pytest.fixture
def address(site):
    with served(site, anonymous="admin") as (host, port):
        yield f"http://{host}:{port}"


def test_every_page_fits_and_breaks_no_rule(address):
    with window() as browser:
        for scheme, width in (("light", 360), ("dark", 1280), ("light", 1920)):
            browser.size(width)
            browser.prefer(scheme)
            for page in PAGES:
                browser.go(address + page)
                wide = browser.run("return document.documentElement.scrollWidth - window.innerWidth")
                assert wide <= 0, (page, width, wide)
                assert [] == [line for line in browser.complaints() if "404" not in line], (page, width)
                assert browser.run("return document.querySelector('h1').textContent.trim() !== ''"), page
                assert 0 == browser.run("return document.querySelectorAll('svg[onload], script:not([src])').length"), (
                    page
                )


def test_failed_jobs_are_chosen_confirmed_and_put_back(site, address):
    with window() as browser:
        browser.go(f"{address}/failed?error=KeyError")
        browser.click("[data-all]")
        assert 20 == browser.run("return document.querySelectorAll('tbody input:checked').length")
        browser.click("button[value=retry]")
        assert "Put back 20 failed jobs?" in browser.run("return document.body.textContent")
        browser.click("form.confirm button")
        assert "20 jobs put back" in browser.run("return document.querySelector('.told').textContent")
        assert 20 == site.queue.stores.failed.count()
        assert [] == browser.complaints()


def test_a_page_renews_itself_and_the_keyboard_goes_everywhere(site, address):
    with window() as browser:
        browser.go(f"{address}/queues")
        site.push(queue="of-a-sudden")
        eventually(lambda: "of-a-sudden" in browser.run("return document.body.textContent"))
        browser.press("gf")
        eventually(lambda: browser.run("return location.pathname") == "/failed")
        browser.press("/")
        assert "error" == browser.run("return document.activeElement.name")
        assert [] == browser.complaints()


def test_a_queue_renews_its_sizes_alone_and_a_form_is_sent_once(site, address):
    with window() as browser:
        browser.go(f"{address}/queues/default/default")
        rows = "return document.querySelectorAll('tbody tr').length"
        before = browser.run(rows)
        for _ in range(5):
            site.push()
        eventually(lambda: browser.run("return document.querySelector('dl.totals dd').textContent") == "16")
        assert (before, True) == (browser.run(rows), before > 0)
        browser.run("const form = document.querySelector('form.act'); form.requestSubmit(); form.requestSubmit()")
        eventually(lambda: browser.run("return document.querySelector('.told') !== null"))
        words = browser.run("return document.querySelector('.told').textContent")
        assert "queue default is paused on all hosts" in words
        assert "sent twice" not in words
        assert [] == browser.complaints()


def test_everything_works_without_javascript(site, address):
    with window(has_script=False) as browser:
        browser.go(f"{address}/queues/default/default")
        browser.click("form.act button")
        eventually(lambda: {"default"} == site.queue.stores.control.read(["default"]).paused)
        browser.go(f"{address}/failed?error=KeyError")
        browser.click("a.button[href*='act=forget']")
        browser.click("form.confirm button")
        eventually(lambda: site.queue.stores.failed.count() == 20)
