"""The pages in a real Chromium: nothing that others wrote runs or breaks them; by keyboard; without JavaScript."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from queuepool import Flow
from queuepool.web.routes import ACTS
from tests.support import hostile_shop
from tests.support.chromium import ENTER, TAB, Window, window
from tests.support.drivers import site_at
from tests.support.eventually import eventually
from tests.support.flowapp import fails
from tests.support.graphs import ended
from tests.support.many_failed import failed_in_thousands
from tests.support.pools import Site
from tests.support.serving import serving
from tests.support.store_contract import OURS

PAGES = (
    "/", "/alerts", "/queues", "/queues/default/default", "/queues/default/default?state=delayed",
    "/queues/default/default/confirm?act=move", "/running", "/failed?column=big", "/failed/confirm?act=retry",
    "/flows", f"/flows/default/{hostile_shop.flow_of(9)}", f"/flows/default/{hostile_shop.flow_of(11)}",
    "/limits", "/limits/default/import", "/limits/default/nope",
    "/pools", "/schedules", "/quarantine", "/history", "/journal", "/jobs/failure-0", "/jobs/failed-3", "/jobs/job-1",
    "/jobs/runs-0", "/jobs/nope", "/no-such-page",
)  # fmt: skip
WIDTHS = (360, 1920)
#: what Tab must come to: what is visible and can be used
_CONTROLS = """
return [...document.querySelectorAll("a[href], button, input:not([type=hidden]), summary")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.tabIndex >= 0)
"""
#: a script shows the times of the reader's zone
IS_AS_SENT = "return document.querySelector('time').textContent.endsWith(' UTC')"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def shop(place: Path) -> Iterator[str]:
    """The address of a dashboard of a shop where every text means ill."""
    site = site_at(f"sqlite:///{place}/queue.db", place)
    hostile_shop.fill(site)
    # Not renewed: who goes through a page by Tab is slow on a busy machine, and would meet nodes that are replaced.
    with serving(hostile_shop.config(site, anonymous="admin", refresh=0.0)) as (host, port):
        yield f"http://{host}:{port}"
    site.queue.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Window]:
    with window() as found:
        yield found


def assert_unharmed(browser: Window, page: str) -> None:
    """Nothing of others has run, been loaded or been refused, and all of the page can be seen without scrolling."""
    assert [] == browser.refused(), page
    assert browser.run("return window.hacked === undefined"), page
    assert 0 == browser.run("return document.querySelectorAll('svg[onload], img, script:not([src])').length"), page
    assert browser.run("return document.querySelector('h1').textContent.trim() !== ''"), page
    assert browser.run("return document.documentElement.scrollWidth - window.innerWidth") <= 0, page
    assert [] == [line for line in browser.complaints() if "404" not in line], page


@pytest.mark.thorough("test_pages.py holds that what others wrote is text on each page")
@pytest.mark.bad_input("B179")
def test_what_others_wrote_runs_on_no_page_and_breaks_none(browser, shop):
    browser.size(360)
    for page in ("/", "/queues/default/default", "/failed?column=big", "/jobs/job-1"):
        browser.go(shop + page)
        assert_unharmed(browser, page)


@pytest.mark.thorough("every page in a browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_breaks_no_rule(browser, shop, scheme, width):
    browser.size(width)
    browser.prefer(scheme)
    for page in PAGES:
        browser.go(shop + page)
        assert_unharmed(browser, f"{page}, {width} px, {scheme}")


@pytest.mark.thorough("every page in a browser")
def test_the_keyboard_comes_to_every_control_and_shows_where_it_is(browser, shop):
    browser.size(1280)
    for page in PAGES:
        browser.go(shop + page)
        browser.run("""
            window.met = new Set();
            window.unseen = [];
            document.addEventListener("focusin", ({ target }) => {
                const { outlineStyle, outlineWidth } = getComputedStyle(target);
                window.met.add(target);
                if (outlineStyle === "none" || outlineWidth === "0px") window.unseen.push(target.outerHTML);
            });
        """)
        browser.press(TAB * (browser.run(f"{_CONTROLS}.length") + 40))
        assert [] == browser.run(f"{_CONTROLS}.filter((one) => !window.met.has(one)).map((one) => one.outerHTML)"), page
        assert [] == browser.run("return window.unseen"), page


@pytest.mark.thorough("every page in two browsers")
def test_every_page_has_the_same_without_javascript(browser, shop):
    # Which of two queues comes first, and how far counts come, is a matter of time.
    shown = "return [...document.querySelectorAll('h2, nav a, thead th, button, label')].map((one) => one.innerText)"
    with window(has_script=False) as without:
        for page in PAGES:
            found = []
            for one in (browser, without):
                one.size(1280)
                one.go(shop + page)
                found.append(one.run(shown))
            assert found[0] == found[1], page
        without.go(f"{shop}/journal")
        assert without.run(IS_AS_SENT), "a script has run"


@pytest.mark.thorough("it starts a pool and a browser; test_tabs_and_stores.py renews pages")
def test_a_page_renews_itself_but_not_what_somebody_is_at(browser, tmp_path):
    with at_work(tmp_path) as (site, address):
        browser.complaints()  # of the pages before
        browser.go(f"{address}/queues")
        site.push(queue="of-a-sudden")
        eventually(lambda: "of-a-sudden" in browser.run("return document.body.textContent"))
        browser.go(f"{address}/pools")
        browser.tab_to("summary")
        browser.press(ENTER)
        browser.run("window.since = performance.now()")
        asked = "performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch')"
        eventually(lambda: browser.run(f"return {asked}.filter((one) => one.startTime > window.since).length") >= 2)
        assert browser.run("return document.querySelector('details').open"), "about to stop a pool"
        browser.go(f"{address}/queues")
        browser.press("gf")
        eventually(lambda: browser.run("return location.pathname") == "/failed")
        browser.press("/")
        assert "error" == browser.run("return document.activeElement.name")
        for page, field in (("/queues/default/mine", "name"), ("/pools", "id")):
            browser.go(address + page)
            browser.press("/")
            assert field == browser.run("return document.activeElement.name"), page
        assert [] == browser.complaints()


@pytest.mark.thorough("it starts a browser; test_acts.py sends what is chosen")
def test_all_jobs_of_a_page_are_chosen_at_once(browser, tmp_path):
    site = site_at(f"sqlite:///{tmp_path}/queue.db", tmp_path)
    failed_in_thousands(site.queue, 40)
    browser.complaints()  # of the pages before
    with serving(hostile_shop.config(site, anonymous="admin")) as (host, port):
        browser.go(f"http://{host}:{port}/failed?error=KeyError")
        browser.click("[data-all]")
        assert 20 == browser.run("return document.querySelectorAll('tbody input:checked').length")
        browser.click("button[value=retry]")
        eventually(lambda: "Put back 20 failed jobs?" in browser.run("return document.body.textContent"))
        browser.click("form.confirm button")
        eventually(lambda: "20 jobs put back" in browser.run("return document.body.textContent"))
        assert 20 == site.queue.stores.failed.count()
        assert [] == browser.complaints()
    site.queue.close()


@pytest.mark.thorough("it starts a browser; test_submissions.py sends a form twice")
def test_a_queue_renews_its_sizes_alone_and_a_form_is_sent_once(browser, tmp_path):
    site = site_at(f"sqlite:///{tmp_path}/queue.db", tmp_path)
    for _ in range(3):
        site.push()
    browser.complaints()  # of the pages before
    with serving(hostile_shop.config(site, anonymous="admin")) as (host, port):
        browser.go(f"http://{host}:{port}/queues/default/default")
        rows = "return document.querySelectorAll('tbody tr').length"
        before = browser.run(rows)
        for _ in range(5):
            site.push()
        eventually(lambda: browser.run("return document.querySelector('dl.totals dd').textContent") == "8")
        assert (before, True) == (browser.run(rows), before > 0)
        browser.run("const form = document.querySelector('form.act'); form.requestSubmit(); form.requestSubmit()")
        eventually(lambda: browser.run("return document.querySelector('.told') !== null"))
        words = browser.run("return document.querySelector('.told').textContent")
        assert "queue default is paused on all hosts" in words
        assert "sent twice" not in words
        assert [] == browser.complaints()
    site.queue.close()


@pytest.mark.thorough("it starts a browser; test_tabs_and_stores.py follows a job so")
def test_the_page_of_a_job_follows_it_until_nothing_is_known_of_it(browser, tmp_path):
    site = site_at(f"sqlite:///{tmp_path}/queue.db", tmp_path)
    job = site.push(delay=3600)
    with serving(hostile_shop.config(site, anonymous="admin")) as (host, port):
        browser.go(f"http://{host}:{port}/jobs/{job}")
        browser.click("form[action$='/run'] button")
        eventually(lambda: browser.run("return document.querySelector('dd strong')?.textContent") == "queued")
        browser.run("window.stays = true")
        site.queue.clear("default")
        eventually(lambda: "Nothing is known of this job" in browser.run("return document.body.textContent"))
        assert browser.run("return window.stays && document.querySelector('[data-live]').dataset.over === ''")
        assert [] == [line for line in browser.complaints() if "404" not in line]
    site.queue.close()


@contextmanager
def at_work(path: Path) -> Iterator[tuple[Site, str]]:
    """A shop with a pool at work, and the address of its dashboard."""
    site = site_at(f"sqlite:///{path}/queue.db", path)
    flags = ("--workers", "1", "--remote", "all", "--queue", "mine")
    config = hostile_shop.config(site, anonymous="admin")
    config = replace(config, pools=tuple(replace(pool, queues=("mine",)) for pool in config.pools))
    with site.pool(*flags), serving(config) as (host, port):
        yield site, f"http://{host}:{port}"
    site.queue.close()


#: what an action is, where it begins, the keys to it (Tab to a control, then Enter or what is typed), and its outcome
ACTIONS: tuple[tuple[str, str, tuple[str | tuple[str, str], ...], str], ...] = (
    ("/queues/{connection}/{queue}/pause", "/queues/default/default", ("form[action$='/pause'] button",), "is paused"),
    (
        "/queues/{connection}/{queue}/continue", "/queues/default/default",
        ("form[action$='/continue'] button",), "continues",
    ),
    (
        "/queues/{connection}/{queue}/move", "/queues/default/default",
        ("a[href*='act=move']", ("input[name=to]", "other"), ("input[name=unserved]", " "), "form.confirm button"),
        "3 jobs moved to other",
    ),
    (
        "/queues/{connection}/{queue}/run", "/queues/default/default?state=delayed",
        ("a[href*='act=run']", "form.confirm button"), "2 jobs made due now",
    ),
    (
        "/queues/{connection}/{queue}/drop", "/queues/default/other",
        ("a[href*='act=drop']", "form.confirm button"), "3 jobs dropped",
    ),
    (
        "/failed/retry", "/failed?error=KeyError",
        ("a[href*='act=retry']", "form.confirm button"), "2 jobs put back",
    ),
    (
        "/failed/forget", "/failed",
        (("input[type=checkbox][name=id]", " "), "button[value=forget]", "form.confirm button"), "1 job dropped",
    ),
    ("/jobs/{id}/stack", "/running", ("form[action$='/stack'] button",), "in until_told"),
    ("/jobs/{id}/cancel", "/running", ("a.danger", "summary", "details form button"), "job"),
    ("/schedules/{connection}/{name}/pause", "/schedules", ("form[action$='/pause'] button",), "is paused"),
    ("/schedules/{connection}/{name}/continue", "/schedules", ("form[action$='/continue'] button",), "continues"),
    ("/schedules/{connection}/{name}/run", "/schedules", ("form[action$='/run'] button",), "was pushed"),
    (
        "/quarantine/{connection}/{queue}/{id}/drop", "/quarantine",
        ("summary", "details form[action$='/drop'] button"), "was dropped",
    ),
    ("/quarantine/{connection}/{queue}/{id}/retry", "/quarantine", ("form[action$='/retry'] button",), "was put back"),
    (
        "/flows/{connection}/{id}/retry", "/flows",
        ("a[href^='/flows/default/']", "form[action$='/retry'] button"), "1 job put back",
    ),
    (
        "/flows/{connection}/{id}/cancel", "/flows",
        ("a[href^='/flows/default/']", "summary", "form[action$='/cancel'] button"), "cancelled",
    ),
    (
        "/limits/{connection}/{name}/set", "/limits",
        ("a[href^='/limits/default/']", "summary", ("input[name=number]", "5"), "form[action$='/set'] button"),
        "is now",
    ),
    (
        "/limits/{connection}/{name}/reset", "/limits/default/import",
        ("summary.danger", "form[action$='/reset'] button"), "follows the code again",
    ),
    ("/pools/{connection}/{id}/pause", "/pools", ("form[action$='/pause'] button",), "paus"),
    ("/pools/{connection}/{id}/continue", "/pools", ("form[action$='/continue'] button",), "continue"),
    ("/pools/{connection}/{id}/reload", "/pools", ("form[action$='/reload'] button",), "default"),
    (
        "/pools/{connection}/{id}/scale", "/pools",
        (("input[name=order]", "+1"), "form[action$='/scale'] button"), "2 workers",
    ),
    ("/pools/{connection}/{id}/stop", "/pools", ("summary", "details form button"), "default"),
)  # fmt: skip
#: it takes so many jobs that it can be stopped
STOPPED = "/errands/{id}/stop"


def test_each_action_is_done_in_a_browser():
    assert sorted(act.path for act in ACTS) == sorted([STOPPED, *(path for path, *_ in ACTIONS)])


@pytest.mark.thorough("it starts pools and browsers")
@pytest.mark.parametrize("has_script", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_each_action_is_done_by_the_keyboard_alone(tmp_path, has_script):
    with at_work(tmp_path) as (site, address), window(has_script=has_script) as browser:
        for _ in range(3):
            site.push()
            site.queue.push_raw(b'{"uuid":"odd","job":7}', queue="mine")
        site.push(delay=3600)
        site.push(delay=3600)
        site.queue.stores.limits.declare("import", 1, 0.0)
        failed_flow(site)  # first: the latest failed job will be dropped
        failed_in_thousands(site.queue, 4)
        # For longer than all this takes.
        site.push("until", gate=str(site.path / "no-such-gate"), queue="mine", timeout=600)
        eventually(lambda: len([*site.queue.stores.records.quarantined("mine")]) == 3)
        for path, begin, keys, outcome in ACTIONS:
            done = eventually(partial(pressed, browser, address + begin, keys), 60)
            assert outcome in done, (path, done)
        browser.go(f"{address}/journal")
        assert browser.run(IS_AS_SENT) != has_script


def failed_flow(site: Site) -> None:
    flow, store = Flow("album"), site.queue.stores.queue
    flow.add(fails.using(queue="flows").call())
    flow.push_to(site.queue)
    [lease] = store.reserve(["flows"], OURS, 1).leases
    ended(store, lease, "f")


def pressed(browser: Window, url: str, keys: tuple[str | tuple[str, str], ...]) -> str:
    """What the page after it says; empty if the first control is not there yet."""
    browser.go(url)
    first = keys[0] if isinstance(keys[0], str) else keys[0][0]
    if not browser.run(f"return Boolean(document.querySelector({first!r}))"):
        return ""
    for key in keys:
        css, typed = (key, ENTER) if isinstance(key, str) else key
        browser.tab_to(css)
        browser.press(typed)
    told = "return document.querySelector('.told')?.textContent.trim() || ''"
    return eventually(lambda: str(browser.run(told)), 30)


#: of an idle processor's time
A_MILLISECOND = "SELECT length(hex(randomblob(100000)))"


@pytest.mark.thorough("it takes thousands of jobs")
def test_what_takes_long_is_stopped_by_the_keyboard_without_javascript(tmp_path):
    site = site_at(f"sqlite:///{tmp_path}/queue.db", tmp_path)
    failed_in_thousands(site.queue, 30_000)
    with closing(sqlite3.connect(tmp_path / "queue.db")) as client:  # each takes its time, whatever the machine
        client.execute(f"CREATE TRIGGER slow AFTER DELETE ON failed_jobs BEGIN {A_MILLISECOND}; END")
    with (
        serving(hostile_shop.config(site, anonymous="admin")) as (host, port),
        window(has_script=False) as browser,
    ):
        keys = (
            "a[href*='act=retry']",
            ("input[name=typed]", "30000"),
            "form.confirm button",
            "form[action$='/stop'] button",
        )
        assert "stopping" in pressed(browser, f"http://{host}:{port}/failed", keys)
        ended = "return document.querySelector('strong').textContent"

        def state() -> str:
            browser.go(browser.run("return location.href"))
            return str(browser.run(ended))

        eventually(lambda: state() == "stopped")
    assert 0 < site.queue.stores.failed.count() < 30_000
    site.queue.close()
