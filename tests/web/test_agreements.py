"""What is agreed to is what is done: to the jobs that were counted, no others, no more, once, and where it is said."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace
from urllib.parse import quote, urlencode

import pytest

from queuepool.operating.choice import EveryPool
from queuepool.operating.meant import MeantFailed, MeantWaiting
from queuepool.operating.scopes import scope_on
from queuepool.payload.envelope import decode
from queuepool.search.bulk import Bulk
from queuepool.search.filters import Filter
from queuepool.search.look import Look
from queuepool.web.guard import Refusal
from queuepool.web.remembered import ListPlaces, Remembered
from tests.support.dashboards import FROM_OUR_PAGE, Browser, config_of, config_on, mounted, opened
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands, failed_now
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("at")
QUEUE = "/queues/default/default"
FORGED = (
    '["ready",1000000000000000000,5,["x"]]', '["delayed",9,1.0,"x",2.0,"y"]', "[[[[", "[1e30,null]", "[0,9]",
    '["a","x"]', "\N{GRINNING FACE}",
)  # fmt: skip


def failed(site: Site) -> set[str]:
    return {record.id for record in site.queue.stores.failed.page()}


def ready(browser: Browser, queue: str = "default") -> list[str]:
    return [job["id"] for job in browser.facts(f"/queues/default/{queue}")["jobs"]]


def done(browser: Browser, path: str, **form: object) -> dict[str, object]:
    """What came of it, at its end."""
    got = browser.send(f"/api/v1{path}", form)
    assert 200 == got.status, got.text
    return browser.ended(got.json["id"])


@pytest.mark.bad_input("B181")
def test_the_place_of_a_list_is_none_that_anybody_can_make(at, browser):
    for number in range(3):
        at.push(number=number)
    [first, *_] = failed_in_thousands(at.queue, 60)
    here, there = browser.facts(f"{QUEUE}?limit=1")["next"], browser.facts("/failed?limit=1")["next"]

    for forged in (*FORGED, here[:-1], there):
        assert 400 == browser.get(f"{QUEUE}?after={quote(forged)}").status, forged
    for path in (f"/failed?after={here}", f"{QUEUE}?state=delayed&after={here}", f"/queues/default/other?after={here}"):
        assert 400 == browser.get(path).status, path
    assert 200 == browser.get(f"{QUEUE}?after={here}").status
    assert here == browser.facts(f"{QUEUE}?limit=1")["next"], "what has not changed is not another page"
    assert first not in there


def test_the_place_of_a_list_does_not_show_what_is_masked(at):
    for number in range(3):
        at.queue.push("do", {"password": f"s3cret-{number}"}, delay=60 + number)
    with opened(config_of(at), "viewer") as viewer:
        page = viewer.get(f"{QUEUE}?state=delayed&limit=1").text

        assert "Further jobs" in page
        assert "s3cret" not in html.unescape(page)
        assert 2 == len(viewer.facts(f"{QUEUE}?state=delayed&after={after_in(page)}")["jobs"])


def after_in(page: str) -> str:
    found = re.search(r"after=([0-9a-f]+)", page)
    assert found
    return found[1]


@pytest.mark.bad_input("B186")
def test_none_chosen_is_not_all(at, browser):
    ids = failed_in_thousands(at.queue, 5)

    for path, form in (
        ("/failed/chosen", {"act": "forget", "error": "KeyError"}), ("/failed/forget", {}),
        ("/failed/forget", {"id": ""}), ("/failed/forget", {"count": 0, "before": 2e9}),
        ("/failed/forget", {"count": 1, "before": 2e9}), ("/failed/forget", {"agreed": ""}),
    ):  # fmt: skip
        assert 400 == browser.post(path, form).status, (path, form)
    assert 409 == browser.post("/failed/forget", {"agreed": "no-such-key"}).status
    assert {*ids} == failed(at)


@pytest.mark.bad_input("B186")
def test_a_chosen_id_that_cannot_be_one_is_refused(browser):
    for odd in ("x" * 256, "a\0b", "a\nb"):
        for path in ("/failed/chosen", "/failed/retry"):
            assert 400 == browser.post(path, {"act": "retry", "id": odd}).status


def test_all_without_a_filter_needs_its_number_however_few_they_are(at, browser):
    ids = failed_in_thousands(at.queue, 3)
    form = {"agreed": browser.facts("/failed/confirm?act=forget")["agreed"]}

    assert "all of them, type their number" in browser.get("/failed/confirm?act=forget").text
    assert 409 == browser.post("/failed/forget", form).status
    assert {*ids} == failed(at)
    assert 3 == done(browser, "/failed/forget", **form, typed=3)["done"]


def test_as_many_as_a_page_has_can_be_chosen_and_those_that_are_gone_are_left_out(at, browser):
    ids = failed_in_thousands(at.queue, 160)
    gone, kept = ids[:20], ids[-20:]
    assert 20 == done(browser, "/failed/forget", id=gone)["done"]
    page = browser.post("/failed/chosen", {"act": "forget", "id": ids[:-20], "error": "Error"})
    agreed = re.findall(r'name="agreed" value="(.*?)"', page.text)

    assert "Drop 120 failed jobs?" in page.text
    assert 'href="/failed?error=Error"' in page.text
    assert 409 == browser.post("/failed/forget", {"agreed": agreed, "typed": 140}).status
    assert 120 == done(browser, "/failed/forget", agreed=agreed, typed=120)["done"]
    assert {*kept} == failed(at)


def test_a_chosen_job_that_fails_again_while_the_question_stands_is_another_failure(at, browser):
    first, second = (failed_now(at.queue, "KeyError: 'x'") for _ in range(2))
    agreed = browser.send("/api/v1/failed/chosen", {"act": "forget", "id": [first, second]}).json["agreed"]
    assert 1 == done(browser, "/failed/forget", id=first)["done"]
    failed_now(at.queue, "KeyError: 'x'", first)

    assert 1 == done(browser, "/failed/forget", agreed=agreed)["done"]
    assert {first} == failed(at)


@pytest.mark.thorough("those that came meanwhile are left in the test of waiting jobs below")
def test_a_question_that_stands_for_long_is_about_the_same_jobs(at, browser):
    failed_in_thousands(at.queue, 3)
    late = failed_now(at.queue, "KeyError: 'x'")
    path = "/failed/confirm?act=forget&until=6s"
    facts = browser.facts(path)
    eventually(lambda: 4 == browser.facts(path)["count"])

    assert 3 == facts["count"]
    assert 3 == done(browser, "/failed/forget", agreed=facts["agreed"])["done"]
    assert {late} == failed(at)


def test_of_waiting_jobs_those_that_came_while_the_question_stood_are_left(at, browser):
    before = [at.push(number=number) for number in range(10)]
    form = {"state": "ready", "agreed": browser.facts(f"{QUEUE}/confirm?act=drop")["agreed"]}
    store = at.queue.stores.queue
    store.delete(store.reserve(["default"], store.join(), 6).leases)
    late = [at.push(number=number) for number in range(6)]

    assert before[6:] == ready(browser)[:4]
    assert 4 == done(browser, f"{QUEUE}/drop", **form)["done"]
    assert late == ready(browser)


def test_of_delayed_jobs_too_also_if_they_are_due_sooner(at, browser):
    for number in range(3):
        at.push(delay=600, number=number)
    form = {"state": "delayed", "agreed": browser.facts(f"{QUEUE}/confirm?act=drop&state=delayed")["agreed"]}
    sooner = at.push(delay=60)

    assert 3 == done(browser, f"{QUEUE}/drop", **form)["done"]
    assert [sooner] == [job["id"] for job in browser.facts(f"{QUEUE}?state=delayed")["jobs"]]


@pytest.mark.thorough("what was not agreed to is left in three tests above")
def test_what_was_not_counted_for_want_of_time_is_left(at):
    ids, pushed = failed_in_thousands(at.queue, 300), [at.push(number=number) for number in range(300)]
    look = Look(at.queue.stores, Filter())
    scope = scope_on(EveryPool(config_of(at)), at.queue)
    counted, waiting = MeantFailed(look, scope), MeantWaiting(look, "default", ("ready",))
    dropped, taken = len(next(counted.counted())), len(next(waiting.counted()))
    store = at.queue.stores.queue
    store.delete(store.reserve(["default"], store.join(), 1).leases)
    at.queue.stores.failed.drop([at.queue.stores.failed.page(None, 1)[0].key])
    late = failed_now(at.queue, "KeyError: 'x'")
    agreed = replace(counted.agreed(), until=math.inf)  # as within the second that a database knows

    assert (True, True) == (0 < dropped < 300, 0 < taken < 300)
    for errand in (
        MeantFailed(look, scope, agreed).errand(lambda acts: acts.forget),
        MeantWaiting(look, "default", ("ready",), waiting.agreed()).errand(lambda acts: acts.drop),
    ):
        Bulk(lambda _: None).run(*errand)
    assert 300 - taken == at.queue.size("default")
    assert {*ids[: 300 - dropped], late} == failed(at)
    assert pushed[taken:] == [decode(raw, 0).id for raw in at.queue.stores.queue.first("default", 300)]


@pytest.mark.bad_input("B186")
def test_what_was_agreed_to_is_done_once_and_only_by_who_was_asked(at):
    failed_in_thousands(at.queue, 2)
    with mounted(config_of(at), lambda scope: (dict(scope["headers"])[b"x-user"].decode(), "admin")) as app:
        ann, bob = (Browser(app, {**FROM_OUR_PAGE, "x-user": name}) for name in ("ann", "bob"))
        form = {"agreed": ann.facts("/failed/confirm?act=retry&name=do")["agreed"]}

        assert 409 == bob.post("/failed/retry", form).status
        assert 409 == ann.post("/failed/forget", form).status
        first, second = (done(ann, "/failed/retry", **form) for _ in range(2))
        again = [ann.send(f"/api/v1/failed/{verb}", {**form, "to": "other"}) for verb in ("retry", "forget")]
        assert [first["id"]] * 2 == [one.json["id"] for one in again], "nothing else is made of it"
        for _ in range(200):
            ann.post("/errands/no-such/stop")
        assert 409 == ann.post("/failed/retry", form).status, "nor later, when its outcome is forgotten"
    assert (2, True) == (first["done"], first["id"] == second["id"])
    assert ["retry"] == [line.verb for line in at.queue.stores.journal.last(9)]
    assert 2 == at.queue.size("default")


def test_jobs_go_to_no_queue_that_nobody_serves_unless_that_is_said(at):
    at.push()
    failed_in_thousands(at.queue, 1)
    elsewhere = replace(at.connection, name="elsewhere")
    config = config_on([at.connection], at, "default", "images")
    pools = (*config.pools, replace(config.pools[0], name="far", connection=elsewhere, queues=("reports",)))
    with opened(replace(config, pools=pools, connections={**config.connections, "elsewhere": elsewhere})) as browser:
        facts = browser.facts(f"{QUEUE}/confirm?act=move")
        form = {"state": "ready", "agreed": facts["agreed"]}
        retrying = {"connection": "default", "id": at.queue.stores.failed.page()[0].id}

        assert ["default", "images"] == facts["known_queues"]
        assert '<option value="images">' in browser.get(f"{QUEUE}/confirm?act=move").text
        for path, fields in ((f"{QUEUE}/move", form), ("/failed/retry", retrying)):
            assert 400 == browser.post(path, {**fields, "to": "reports"}).status
            assert 409 == browser.post(path, {**fields, "to": "imagse"}).status
        assert (1, 1) == (at.queue.size("default"), at.queue.stores.failed.count())
        assert 1 == done(browser, f"{QUEUE}/move", **form, to="images")["done"]
        assert 1 == done(browser, "/failed/retry", **retrying, to="later", unserved="yes")["done"]
        notice = {"host": "web9", "pool": "p", "state": "running", "workers": 1, "id": "0" * 16, "queues": ["theirs"]}
        at.queue.stores.control.publish("web9:p:1", notice)
        form["agreed"] = browser.facts("/queues/default/images/confirm?act=move")["agreed"]
        assert 1 == done(browser, "/queues/default/images/move", **form, to="theirs")["done"]


@pytest.mark.bad_input("B186")
def test_a_link_cannot_hide_where_jobs_go_nor_which(at, browser):
    failed_in_thousands(at.queue, 4, customer=7)
    query = urlencode({"act": "retry", "to": "evil", "error": "KeyError", "where": "customer=7"})
    page = browser.get(f"/failed/confirm?{query}").text
    form = page[page.index('class="confirm"') :]

    assert ["connection", "agreed"] == re.findall(r'type="hidden" name="(\w+)"', form)
    assert '<input name="to" value="evil"' in form
    assert "Argument <strong>customer=7</strong>, Error <strong>KeyError</strong>" in page
    agreed = browser.facts("/failed/confirm?act=retry&error=KeyError")["agreed"]
    for body in (f"agreed={agreed}&to=&to=evil", f"agreed={agreed}&to=evil&to="):
        kind = {"content-type": "application/x-www-form-urlencoded"}
        assert 400 == browser.ask("POST", "/failed/retry", body.encode(), kind).status
    assert 400 == browser.post("/failed/retry?to=evil", {"agreed": agreed}).status
    assert 4 == at.queue.stores.failed.count()


@pytest.mark.bad_input("B186")
def test_all_that_fit_are_those_of_the_list_whatever_it_is_filtered_by(at, browser):
    first, second, *_ = failed_in_thousands(at.queue, 6)
    query = urlencode({"error": "ValueError", "id": first})
    assert 1 == browser.facts(f"/failed?{query}")["found"]
    facts = browser.facts(f"/failed/confirm?act=forget&{query}")

    assert (1, f"/failed?{query}") == (facts["count"], facts["back"])
    assert ["Id", first] in facts["filter"]
    assert 1 == done(browser, "/failed/forget", agreed=facts["agreed"])["done"]
    assert 5 == len(failed(at))
    longest = urlencode({"name": "do", "error": "\N{CJK UNIFIED IDEOGRAPH-8A9E}" * 60})
    page = html.unescape(browser.get(f"/failed/confirm?act=forget&{longest}").text)
    assert f'href="/failed?{longest}"' in page
    chosen = browser.send("/api/v1/failed/chosen", {"act": "forget", "id": [second], "error": "Key"}).json
    assert ("/failed?error=Key", [second]) == (chosen["back"], chosen["ids"])


@pytest.mark.parametrize(
    ("page", "beside"),
    [
        ("/failed", [("tag", "vip"), ("id", "abc"), ("where", "b=2")]),
        (QUEUE, [("since", "2h"), ("until", "30m"), ("error", "x"), ("where", "b=2")]),
    ],
)
def test_a_search_keeps_and_names_the_filters_that_have_no_field(at, browser, page, beside):
    text = browser.get(f"{page}?{urlencode([('where', 'a=1'), ('name', 'do'), *beside])}").text
    form = text[text.index('class="filters"') :]
    form, after = form[: form.index("</form>")], form[form.index("</form>") :]

    hidden = re.findall(r'type="hidden" name="(\w+)" value="(.*?)"', form)
    assert sorted(beside) == sorted(pair for pair in hidden if pair[0] != "state")
    assert [value for _, value in beside] == re.findall(r"<strong>(.*?)</strong>", after[: after.index("</p>")])
    assert "Also filtered by" not in browser.get(f"{page}?where=a%3D1&name=do&told=x").text


def test_a_link_to_those_of_one_name_keeps_the_other_filters(at, browser):
    for number in range(4):
        at.push(name="add" if number % 2 else "do", customer=number // 2)
    page = html.unescape(browser.get(f"{QUEUE}?where=customer%3D1").text)
    links = re.findall(rf'href="({QUEUE}\?[^"]*name=do[^"]*)"', page)
    assert [1] == [len(browser.facts(one)["jobs"]) for one in links]
    [delayed] = re.findall(rf'href="({QUEUE}\?[^"]*state=delayed[^"]*)"', page)
    assert "where=customer%3D1" in delayed


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first():
    kept = Remembered[str](3, 100)
    first, second, third = (kept.keep(word, 10) for word in "abc")
    assert "a" == kept.found(first)
    fourth = kept.keep("d", 10)
    assert ["a", None, "c", "d"] == [kept.found(key) for key in (first, second, third, fourth)]
    large = kept.keep("large", 500)
    assert [None, None, None, "large"] == [kept.found(key) for key in (first, third, fourth, large)]
    assert large == kept.keep("larger", 20, large)
    assert ("larger", "x") == (kept.found(large), kept.found(kept.keep("x", 80)))

    places = ListPlaces()
    key = places.keep("[1]", "default", "high")
    assert (key, "[1]", "") == (
        places.keep("[1]", "default", "high"), places.found(key, "default", "high"), places.found("", "default"),
    )  # fmt: skip
    assert key != ListPlaces().keep("[1]", "default", "high"), "of this process only"
    with pytest.raises(Refusal):
        places.found(key, "default", "low")
