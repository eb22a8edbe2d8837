"""What is refused before it is routed: strange hosts, origins, sizes, passwords, prefixes."""

from __future__ import annotations

import asyncio

import pytest

from queuepool.errors import ConfigError
from queuepool.web.dashboard import dashboard, own_dashboard
from tests.support.dashboards import FROM_OUR_PAGE, Browser, config_of, mounted, opened
from tests.support.drivers import site_on
from tests.support.each import each
from tests.web.test_logins import users


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


@pytest.fixture
def own(site):
    """As queuepool web serves it on this host."""
    app = own_dashboard(config_of(site))
    yield Browser(app)
    app.close()


@pytest.mark.bad_input("B174")
@each(
    ("host", "status"),
    [
        ("localhost", 200), ("localhost:8420", 200), ("127.0.0.1:8420", 200), ("[::1]:8420", 200), ("LOCALHOST", 200),
        ("evil.example", 421), ("evil.example:8420", 421), ("localhost.evil", 421), ("localhost:8420:80", 421),
        ("127.0.0.1.evil", 421), ("", 400),
    ],
)  # fmt: skip
def test_a_dashboard_is_asked_for_by_a_name_of_its_own(own, host, status):
    assert status == own.get("/", host=host).status


@pytest.mark.bad_input("B174")
def test_a_request_names_one_host(own):
    fields = [(b"host", b"localhost"), (b"host", b"evil.example")]

    assert 400 == asyncio.run(own.exchange("GET", "/", [b""], fields)).status


@pytest.mark.bad_input("B175")
@each(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"sec-fetch-site": "", "origin": "http://localhost:8420"}, 303),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost:8420"}, 403),
        ({"sec-fetch-site": "", "origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "", "origin": "http://localhost:8421"}, 403),
        ({"sec-fetch-site": "", "origin": "null"}, 403),
        ({"sec-fetch-site": ""}, 403),
        ({"sec-fetch-site": "", "origin": "http://["}, 403),
        ({"sec-fetch-site": "", "origin": "http://localhost:8420\u00bd"}, 403),
        ({"sec-fetch-site": "", "origin": "localhost:8420"}, 403),
        ({"sec-fetch-site": "", "origin": "ftp://localhost:8420"}, 403),
        # A proxy speaks TLS with the browser, and may say so.
        ({"sec-fetch-site": "", "origin": "https://localhost:8420"}, 303),
        ({"sec-fetch-site": "", "origin": "https://localhost:8420", "x-forwarded-proto": "https"}, 303),
        ({"sec-fetch-site": "", "origin": "http://localhost:8420", "x-forwarded-proto": "https"}, 403),
    ],
)
def test_an_action_comes_from_a_page_of_ours(site, headers, status):
    with opened(config_of(site)) as browser:
        assert status == browser.post("/queues/default/default/pause", **headers).status


@each(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "cors", "empty", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
        ("", "", "", 200),
    ],
)
def test_a_page_of_another_site_can_link_to_ours_and_have_nothing_else_read(own, site, mode, dest, status):
    fetch = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    for path in ("/failed/export", "/queues/default/default/export", "/api/v1/failed", "/"):
        assert status == own.get(path, **fetch).status


def test_on_this_host_a_stranger_only_sees(own):
    assert 200 == own.get("/").status
    assert 403 == own.post("/queues/default/default/pause").status


@each(
    "field",
    ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "via"],
)
def test_who_comes_through_a_proxy_is_no_stranger_of_this_host(site, own, field):
    assert 401 == own.get("/", **{field: "192.0.2.7"}).status
    app = own_dashboard(config_of(site, anonymous="viewer"))
    assert 200 == Browser(app).get("/", **{field: "192.0.2.7"}).status, "that is said in the configuration"
    app.close()


def test_a_dashboard_with_names_of_its_own_says_what_strangers_may_do(site):
    with pytest.raises(ConfigError, match=r"by queues\.example\.com others come in: set users"):
        own_dashboard(config_of(site, hosts=("queues.example.com",)))
    for more, status in (({"token": "0123456789abcdef"}, 401), ({"anonymous": "viewer"}, 200)):
        app = own_dashboard(config_of(site, hosts=("queues.example.com",), **more))
        assert status == Browser(app).get("/", host="queues.example.com").status
        app.close()


@each(("anonymous", "status"), [("none", 401), ("operator", 303), ("admin", 303)])
def test_what_a_stranger_may_do_here_is_a_setting(site, anonymous, status):
    app = own_dashboard(config_of(site, anonymous=anonymous))

    assert status == Browser(app).post("/queues/default/default/pause").status
    app.close()


@pytest.mark.bad_input("B178")
@each("listen", ["0.0.0.0:8420", "[::]:8420", "192.0.2.1:8420"])
def test_a_dashboard_that_others_can_reach_knows_its_users(site, listen):
    with pytest.raises(ConfigError, match="is open to other hosts: set users"):
        own_dashboard(config_of(site, listen=listen))
    own_dashboard(config_of(site, listen=listen, token="0123456789abcdef")).close()


def test_a_dashboard_that_is_mounted_knows_its_visitors(site):
    with pytest.raises(ConfigError, match="say who may see the dashboard"):
        dashboard(config_of(site))


@each(
    ("text", "words"),
    [
        ("ann:root:x", "is not NAME:ROLE:HASH"), ("ann", "is not NAME:ROLE:HASH"),
        ("a b:viewer:x", "is not NAME:ROLE:HASH"), ("ann:viewer:secret", "the hash of ann is not one of ours"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_the_users_is_refused_with_its_number_and_without_its_hash(site, text, words):
    (site.path / "users").write_text(f"\n{text}\n")
    (site.path / "users").chmod(0o600)

    with pytest.raises(ConfigError, match=f"users:2: {words}") as refused:
        own_dashboard(config_of(site, users=site.path / "users"))
    assert "secret" not in str(refused.value)


def test_users_that_everybody_can_read_are_refused(site):
    users(site.path, ann="viewer").chmod(0o644)

    with pytest.raises(ConfigError, match="can be read by every user"):
        own_dashboard(config_of(site, users=site.path / "users"))


@pytest.mark.bad_input("B182")
@each(
    ("body", "headers", "status"),
    [
        (b"a" * 65537, {}, 413),
        (b"", {"content-length": "70000"}, 413),
        (b"", {"content-length": "-1"}, 400),
        (b"", {"content-length": "+5"}, 400),
        (b"id=1", {"content-length": "12"}, 400),
        (b"id=1", {"content-length": "4", "transfer-encoding": "chunked"}, 400),
        (b"x=1", {"content-encoding": "gzip"}, 415),
        (b"x=1", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"x=1", {"content-type": "text/plain"}, 415),
        (b"x=%ff", {}, 400),
        (b"&".join([b"id=1"] * 401), {}, 400),
        (b"[" * 10_000, {"content-type": "application/json"}, 400),
        (b'{"a": 1, "a": 2}', {"content-type": "application/json"}, 400),
        (b'{"a": NaN}', {"content-type": "application/json"}, 400),
        (b'{"id": [{}]}', {"content-type": "application/json"}, 400),
        (b"[]", {"content-type": "application/json"}, 400),
    ],
)
def test_a_body_that_is_too_large_or_odd_is_refused(site, body, headers, status):
    form = {"content-type": "application/x-www-form-urlencoded"}
    with opened(config_of(site)) as browser:
        assert status == browser.ask("POST", "/api/v1/failed/retry", body, {**form, **headers}).status


def test_a_body_in_many_parts_is_bounded_too(site):
    fields = [(name.encode(), value.encode()) for name, value in FROM_OUR_PAGE.items()]
    with opened(config_of(site)) as browser:
        asked = browser.exchange("POST", "/failed/retry", [b"a" * 1000] * 100, fields)
        assert 413 == asyncio.run(asked).status


@pytest.mark.bad_input("B180", "B181")
@each(
    ("path", "status"),
    [
        ("/static/../../etc/passwd", 404), ("/static/%2e%2e/page.css", 404), ("/static/..%5cpage.css", 404),
        ("/static/%00", 404), ("//", 404), ("/queues//default", 404), ("/queues/nope/default", 404),
        ("/queues/default/a%2Fb", 404), ("/jobs/" + "x" * 300, 404), ("/jobs/%0d%0aSet-Cookie:%20a=b", 404),
        ("/jobs/..%2F..", 404),
        ("/queues%0a", 404), ("/queues/default/default%0a", 404), ("/?" + "a" * 5000, 414),
        ("/queues/default/default?limit=abc", 400),
        ("/queues/default/default?limit=-1", 200), ("/queues/default/default?limit=1000000000", 200),
        ("/queues/default/default?state=nope", 400), ("/queues/default/default?after=forged", 400),
        ("/queues/default/default?where=nope", 400), ("/queues/default/default?name=" + "x" * 201, 400),
        ("/queues/default/default?since=99999999d", 400), ("/queues/default/default?name=a&name=b", 400),
        ("/failed?after=forged", 400), ("/failed?after=W10=", 400), ("/failed?after=WyJhIiwgIngiXQ==", 400),
        ("/queues/default/default?after=" + "[" * 1400, 400), ("/queues/default/default?after=[1e30,null]", 400),
        ("/failed?connection=nope", 404),
        ("/failed/confirm?act=drop", 400), ("/running?queue=%F0%9F%92%A9", 200),
    ],
)  # fmt: skip
def test_an_odd_path_or_query_is_a_clear_no(site, path, status):
    with opened(config_of(site)) as browser:
        got = browser.get(path)

        assert status == got.status
        assert "Traceback" not in got.text
        assert "set-cookie" not in got.headers


@pytest.mark.bad_input("B185")
@each(
    ("root", "status"),
    [("/queuepool", 200), ("/a/b", 200), ("/a%2Fb", 200), ("//evil.example", 400), ("/a/..", 400), ("/a b", 400)],
)
def test_links_lead_below_where_it_is_mounted(site, root, status):
    with mounted(config_of(site), lambda scope: "viewer") as app:
        got = Browser(app, root_path=root).get("/")

        assert status == got.status
        assert (status == 200) == (f'href="{root}/queues"' in got.text)


@each("path", ["/", "/queuepool/", "/queuepool"])
def test_a_proxy_may_strip_the_prefix_or_not(site, path):
    app = own_dashboard(config_of(site, path="/queuepool", anonymous="admin"))
    browser = Browser(app)
    got = browser.get(path)

    assert (200, True) == (got.status, 'href="/queuepool/queues"' in got.text)
    below = path.rstrip("/")
    assert (
        "/queuepool/queues/default/default?told="
        in browser.post(f"{below}/queues/default/default/pause").headers["location"]
    )
    app.close()


@pytest.mark.bad_input("B184")
def test_after_an_action_only_pages_of_ours_follow(site):
    with opened(config_of(site)) as browser:
        form = {"id": "nope", "next": "//evil.example", "connection": "default", "queue": "//evil.example\r\nx: y"}
        got = browser.post("/failed/retry", form)

        assert got.headers["location"].startswith(
            "/failed?connection=default&queue=%2F%2Fevil.example%0D%0Ax%3A+y&told="
        )


@pytest.mark.bad_input("B176")
@each("path", ["*", "http://evil.example/", "evil.example:443"])
def test_a_request_is_for_a_path_of_ours(own, path):
    assert 400 == own.get(path).status


@pytest.mark.bad_input("B176")
def test_there_are_no_websockets(own):
    sent = []

    async def send(message):
        sent.append(message["type"])

    asyncio.run(own.app({"type": "websocket", "path": "/", "headers": []}, None, send))
    assert ["websocket.close"] == sent


def test_a_program_acts_by_json_without_a_page(site):
    with opened(config_of(site), "admin") as browser:
        alone = {"sec_fetch_site": ""}
        sent = browser.send("/api/v1/queues/default/default/pause", {}, **alone)
        assert (200, True) == (sent.status, sent.json["is_done"])
        assert 403 == browser.post("/queues/default/default/pause", {}, **alone).status
        assert 403 == browser.send("/queues/default/default/pause", {}, **alone, origin="https://evil.example").status


def test_what_a_program_is_refused_is_json_too(site):
    with opened(config_of(site)) as browser:
        refused = browser.post("/api/v1/queues/default/default/pause", {}, sec_fetch_site="")
        assert (403, {"version", "error"}) == (refused.status, {*refused.json})


@pytest.mark.bad_input("B186")
def test_a_misspelled_filter_is_refused_and_never_means_all(site):
    site.push()
    with opened(config_of(site), "admin") as browser:
        for path in ("/queues/default/default/confirm?act=drop&stat=ready", "/failed/confirm?act=forget&job=x"):
            for start in ("", "/api/v1"):
                assert 400 == browser.get(start + path).status, start + path
        answer = browser.send("/api/v1/jobs/no-such-job/cancel", {"requeu": "yes"})
        assert (400, True) == (answer.status, "requeu" in answer.json["error"])
