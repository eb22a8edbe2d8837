"""Who is let in: users with their passwords, programs with a token; and what guesses cost others."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from queuepool.config import loader
from queuepool.errors import ConfigError
from queuepool.web.dashboard import own_dashboard
from queuepool.web.routes import ACTS, API, EXPORTS, PAGES
from queuepool.web.visitors import hashed
from tests.support.dashboards import FROM_OUR_PAGE, Browser, config_of
from tests.support.drivers import site_on
from tests.support.pools import Site

PASSWORD = "correct horse"


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


@contextmanager
def served(site: Site, **web: Any) -> Iterator[Browser]:
    """A browser at the dashboard as queuepool web serves it on this host."""
    app = own_dashboard(config_of(site, **web))
    yield Browser(app)
    app.close()


@cache
def hash_of_password() -> str:
    """One costs 50 ms."""
    return hashed(PASSWORD)


def users(path: Path, **roles: str) -> Path:
    file = path / "users"
    file.write_text(
        "# those who may log in\n" + "".join(f"{name}:{role}:{hash_of_password()}\n" for name, role in roles.items())
    )
    file.chmod(0o600)
    return file


def basic(name: str, password: str = PASSWORD) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


@pytest.mark.bad_input("B177")
def test_users_log_in_with_their_passwords(site):
    app = own_dashboard(config_of(site, users=users(site.path, ann="operator", bob="viewer")))
    browser = Browser(app)

    refused = browser.get("/")
    assert (401, 'Basic realm="queuepool", charset="UTF-8"') == (refused.status, refused.headers["www-authenticate"])
    for name, status in (("ann", 303), ("bob", 403), ("eve", 401)):
        assert status == browser.post("/queues/default/default/pause", authorization=basic(name)).status
    for wrong in (basic("ann", "wrong"), "Basic !!", "Basic YW5u", "Basic " + "A" * 5000, "Digest x", "Bearer x"):
        assert 401 == browser.get("/", authorization=wrong).status, wrong
    assert 401 == browser.get("/?token=0123456789abcdef").status
    app.close()


@pytest.mark.bad_input("B177")
def test_wrong_passwords_are_soon_not_tried_any_more_and_keep_nobody_else_out(site):
    app = own_dashboard(config_of(site, users=users(site.path, ann="viewer", bob="viewer")))
    browser = Browser(app)
    assert 200 == browser.get("/", authorization=basic("bob")).status

    tried = [browser.get("/", authorization=basic("ann", f"wrong {number}")).status for number in range(7)]
    assert ([401] * 5, [429] * 2) == (tried[:5], tried[5:])
    assert 429 == browser.get("/", authorization=basic("ann")).status
    assert 200 == browser.get("/", authorization=basic("bob")).status
    assert 200 == Browser(app, address="192.0.2.7").get("/", authorization=basic("ann")).status
    app.close()


def test_a_user_who_is_removed_or_has_a_new_password_is_not_remembered(site):
    file = users(site.path, ann="admin", bob="viewer")
    app = own_dashboard(config_of(site, users=file))
    browser = Browser(app)
    assert [200, 200] == [browser.get("/", authorization=basic(name)).status for name in ("ann", "bob")]

    file.write_text(f"bob:viewer:{hashed('another one')}\n")
    assert [401, 401] == [browser.get("/", authorization=basic(name)).status for name in ("ann", "bob")]
    file.write_text("bob\n")
    assert 503 == browser.get("/", authorization=basic("bob")).status
    app.close()


def test_a_program_reads_with_its_token(site):
    app = own_dashboard(config_of(site, token="0123456789abcdef", anonymous="none"))
    browser = Browser(app, {"host": "localhost"})

    assert 200 == browser.get("/api/v1/overview", authorization="Bearer 0123456789abcdef").status
    for wrong in ("Bearer 0123456789abcdeg", "Bearer", "Basic 0123456789abcdef", ""):
        assert 401 == browser.get("/api/v1/overview", authorization=wrong).status
    assert 401 == browser.get("/api/v1/overview?token=0123456789abcdef").status
    app.close()


@pytest.mark.bad_input("B177")
def test_nothing_is_there_for_who_has_not_logged_in(site):
    with served(site, users=users(site.path, ann="admin")) as browser:
        paths = [start + route.path for start in ("", API) for route in (*PAGES, *EXPORTS, *ACTS)]
        for path in (*paths, "/static/page.css", "/no-such-page"):
            assert {401} == {browser.get(path, method).status for method in ("GET", "HEAD", "POST")}, path


@pytest.mark.bad_input("B177")
def test_who_is_logged_in_is_not_kept_out_by_wrong_passwords_for_that_name(site):
    with served(site, users=users(site.path, ann="viewer")) as browser:
        assert 200 == browser.get("/", authorization=basic("ann")).status
        assert 429 == [browser.get("/", authorization=basic("ann", f"wrong {n}")).status for n in range(6)][-1]

        assert 200 == browser.get("/", authorization=basic("ann")).status
        assert 200 == browser.get("/", authorization=basic("ann").replace("Basic", "basic ")).status


@pytest.mark.bad_input("B177")
def test_a_flood_of_made_up_names_is_not_hashed_and_keeps_nobody_out(site, caplog):
    with served(site, users=users(site.path, ann="viewer")) as browser:
        # The first login of ann comes in the middle of it.
        logins = [basic(f"eve{number}") for number in range(300)]
        logins.insert(150, basic("ann"))
        cost, spent = hash_seconds(), time.process_time()
        statuses = asyncio.run(all_at_once(browser, logins))

        assert time.process_time() - spent < 50 * cost, "so many are not hashed"
        assert 200 == statuses.pop(150)
        # Some wait for their answer, and no more than that.
        assert Counter(statuses)[401] >= 16
        assert {401, 429} >= set(statuses)
    told = [line for line in caplog.messages if "wrong login of eve0 from 127.0.0.1" in line]
    assert 1 == len(told)
    assert len([line for line in caplog.messages if "wrong login" in line]) <= 20, "a flood does not fill the disk"


def hash_seconds() -> float:
    """What one costs the processor."""
    began = time.process_time()
    hashed(PASSWORD)
    return time.process_time() - began


async def all_at_once(browser: Browser, logins: list[str]) -> list[int]:
    def asked(login: str) -> Any:
        fields = [*FROM_OUR_PAGE.items(), ("authorization", login)]
        return browser.exchange("GET", "/journal", [b""], [(name.encode(), text.encode()) for name, text in fields])

    return [got.status for got in await asyncio.gather(*map(asked, logins))]


@pytest.mark.thorough("the flood of the test before it is as cheap, and its good login comes in")
@pytest.mark.bad_input("B177")
def test_many_pages_that_are_opened_at_once_log_in_with_one_hash(site):
    with served(site, users=users(site.path, ann="viewer")) as browser:
        cost, spent = hash_seconds(), time.process_time()
        statuses = asyncio.run(all_at_once(browser, [basic("ann")] * 40))

        assert {200} == set(statuses)
        assert time.process_time() - spent < 30 * cost


@pytest.mark.thorough("one by one they are bounded above, and so is a flood of them at once")
@pytest.mark.bad_input("B177")
def test_guesses_of_one_password_at_once_are_no_more_than_one_by_one(site):
    with served(site, users=users(site.path, ann="viewer")) as browser:
        guesses = [basic("ann", f"wrong {number}") for number in range(40)]
        cost, spent = hash_seconds(), time.process_time()
        statuses = asyncio.run(all_at_once(browser, [*guesses, basic("ann")]))

        assert {401, 429} >= set(statuses), "the right one comes after five wrong ones, and is not tried"
        assert time.process_time() - spent < 30 * cost
        assert 429 == browser.get("/", authorization=basic("ann")).status


@pytest.mark.bad_input("B177")
def test_wrong_tokens_are_soon_refused_and_the_right_one_is_taken_all_the_same(site):
    with served(site, token="0123456789abcdef", anonymous="none") as browser:
        tried = [browser.get("/", authorization=f"Bearer wrong-{number}").status for number in range(7)]
        assert ([401] * 5, [429] * 2) == (tried[:5], tried[5:])
        assert 200 == browser.get("/", authorization="Bearer 0123456789abcdef").status


@pytest.mark.bad_input("B177")
def test_a_request_has_one_login(site):
    with served(site, users=users(site.path, ann="viewer", bob="admin")) as browser:
        fields = [(b"host", b"localhost"), *((b"authorization", basic(name).encode()) for name in ("ann", "bob"))]

        assert 400 == asyncio.run(browser.exchange("GET", "/", [b""], fields)).status


def test_a_wrong_login_takes_as_long_whether_there_is_such_a_user_or_not(site):
    def seconds(name: str) -> float:
        began = time.monotonic()
        assert 401 == browser.get("/", authorization=basic(name, "wrong")).status
        return time.monotonic() - began

    with served(site, users=users(site.path, ann="viewer")) as browser:
        assert min(seconds("ann"), seconds("eve")) >= 0.3


def test_a_configuration_with_a_token_is_read_by_those_who_may_not_read_its_file(site):
    file = site.path / "pool.ini"
    for text, found in (("/no/such/token", "/no/such/token"), ("0123456789abcdef", "0123456789abcdef"), ("short", "")):
        file.write_text(f"[pool:default]\n[web]\ntoken = {text}\n")
        file.chmod(0o600)
        if found:
            assert found == loader.load(file).web.token
        else:
            with pytest.raises(ConfigError, match="16 to 512 characters") as refused:
                loader.load(file)
            assert text not in str(refused.value)


def test_a_token_in_a_file_is_read_by_the_dashboard_alone(site):
    file = site.path / "token"
    missing = config_of(site, token=str(file))
    with pytest.raises(ConfigError, match="token cannot be read"):
        own_dashboard(missing)
    for text, words in (("short", "16 to 512 characters"), ("", "does not hold one line"), ("a\nb", "one line")):
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(ConfigError, match=words):
            own_dashboard(missing)
    file.write_text("0123456789abcdef\n")
    with served(site, token=str(file), anonymous="none") as browser:
        assert 200 == browser.get("/", authorization="Bearer 0123456789abcdef").status
        assert 401 == browser.get("/", authorization=f"Bearer {file}").status
