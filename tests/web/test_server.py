"""``queuepool web`` as a process: it serves until it is told to stop, refuses strangers, and no client holds it up."""

from __future__ import annotations

import asyncio
import fcntl
import re
import signal
import socket
import sys
import threading
import time
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from queuepool.web import connections
from queuepool.web.guard import LET_IN
from tests.support import warm
from tests.support.dashboards import config_of, opened
from tests.support.drivers import site_on
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.processes import halt
from tests.support.redis_server import free_port
from tests.support.serving import serving, serving_app
from tests.web.test_logins import basic, users

#: how a form of a page of ours begins, and what may be behind another request
OURS = b"POST / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
AGAIN = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
ALSO_CHUNKED = AGAIN[:-2] + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


def served(site: Site, **web: Any) -> AbstractContextManager[tuple[str, int]]:
    """The real server of this site's dashboard."""
    return serving(config_of(site, **web))


def answer(address: tuple[str, int], request: bytes) -> bytes:
    """All that comes back until the server closes; it need not read the rest of what it refuses: then it resets."""
    got = b""
    with socket.create_connection(address, timeout=30) as client, suppress(ConnectionError):
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(65_536):
            got += part
    return got


@pytest.mark.bad_input("B183")
def test_requests_that_are_none_are_refused_and_slow_ones_keep_nobody_waiting(site):
    with served(site) as address, ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(100)]
        for one in held[-20:]:
            one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        for request in (
            b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\nHost: localhost\n" + b"x" * 20_000,
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: 1\r\n" * 10_000 + b"\r\n",
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
            OURS + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nid=1\r\n0\r\n\r\n" + AGAIN,
            ALSO_CHUNKED + AGAIN,
            OURS + b"Content-Length: 70000\r\nExpect: 100-continue\r\n\r\n",
            OURS.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n4\r\nid=1\r\n0\r\n\r\n" + AGAIN,
            OURS + b"Transfer-Encoding: xchunked\r\n\r\n",
            OURS + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
        ):  # fmt: skip
            got = answer(address, request)
            assert re.match(rb"HTTP/1.1 (400|413|414|421|431|501)|$", got), (request[:40], got[:60])
            assert got.count(b"HTTP/1.1 ") < 2, "what follows is not taken for another request"
        good = answer(address, b"GET /api/v1/overview HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert good.startswith(b"HTTP/1.1 200")


@pytest.mark.bad_input("B183")
def test_a_request_that_does_not_come_in_time_is_given_up_though_a_byte_comes_now_and_then(site):
    with served(site) as address, ExitStack() as stack:
        began = time.monotonic()  # the server counts from then on, however late the test is
        client = stack.enter_context(socket.create_connection(address, timeout=30))
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")

        def is_closed() -> bool:
            try:
                client.sendall(b"x")
                client.setblocking(False)
                return client.recv(1) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True
            finally:
                client.setblocking(True)

        eventually(is_closed)
        assert time.monotonic() - began > 9.0


@pytest.mark.bad_input("B183")
def test_a_body_that_is_none_leaves_nothing_in_the_log_whether_an_answer_has_begun_or_not(site, caplog):
    chunked = OURS.replace(b"POST", b"PUT") + b"Transfer-Encoding: chunked\r\n\r\n"
    with served(site) as address:
        assert answer(address, chunked + b"no length\r\n").startswith((b"HTTP/1.1 400", b"HTTP/1.1 405"))
        with socket.create_connection(address, timeout=30) as client:
            client.sendall(chunked)
            assert client.recv(4096).startswith(b"HTTP/1.1 405"), "it comes before the body"
            client.sendall(b"no length\r\n")
            with suppress(ConnectionResetError):
                assert not [part for part in iter(lambda: client.recv(4096), b"") if b"HTTP/1.1" in part]
    assert [] == [line.getMessage() for line in caplog.records if line.exc_info or line.levelname == "ERROR"]


class Slow:
    """An application that answers requests for /fast at once, and others when it is let go."""

    def __init__(self) -> None:
        self.held = 0
        self._gate = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def let_go(self) -> None:
        assert self._loop
        self._loop.call_soon_threadsafe(self._gate.set)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        await receive()
        if scope["path"] != "/stranger":
            scope[LET_IN] = True
        if scope["path"] != "/fast":
            self._loop = asyncio.get_running_loop()
            self.held += 1
            await self._gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


def request_of(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nid".encode()


@pytest.mark.bad_input("B183")
def test_an_action_under_way_is_not_cut_off_for_new_connections(request):
    app = Slow()
    with serving_app(app) as address, ExitStack() as stack:

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(address, timeout=30))

        def started(count: int) -> list[socket.socket]:
            clients = [connected() for _ in range(count)]
            before = app.held
            for one in clients:
                one.sendall(request_of("/slow"))
            eventually(lambda: app.held == before + count)
            return clients

        slow = started(1)
        for _ in range(100):  # each is kept open by its client, and idle
            idle = connected()
            idle.sendall(request_of("/fast"))
            assert idle.recv(4096).startswith(b"HTTP/1.1 200")
        slow += started(63)
        with suppress(ConnectionResetError):  # there is no room for another one
            assert connected().recv(4096) == b""
        app.let_go()
        assert {True} == {one.recv(4096).startswith(b"HTTP/1.1 200") for one in slow}


@pytest.mark.bad_input("B183")
def test_who_has_not_logged_in_yet_makes_room_for_others(request):
    app = Slow()
    with serving_app(app) as address, ExitStack() as stack:
        for number in range(70):
            one = stack.enter_context(socket.create_connection(address, timeout=30))
            one.sendall(request_of("/stranger"))
            eventually(lambda number=number: app.held == number + 1)
        try:
            assert answer(address, request_of("/fast")).startswith(b"HTTP/1.1 200")
        finally:
            app.let_go()


@pytest.mark.thorough("test_logins.py has a flood of wrong logins")
@pytest.mark.bad_input("B183")
def test_wrong_logins_one_behind_the_other_keep_nobody_out(site):
    def guesses(number: int) -> bytes:
        logins = [basic(f"eve{number}-{guess}") for guess in range(20)]
        return b"".join(AGAIN[:-2] + f"Authorization: {login}\r\n\r\n".encode() for login in logins)

    with served(site, users=users(site.path, ann="viewer")) as address, ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(64)]
        for number, one in enumerate(clients):
            one.sendall(guesses(number))
        good = AGAIN[:-2] + f"Authorization: {basic('ann')}\r\n\r\n".encode()
        assert answer(address, good).startswith(b"HTTP/1.1 200")
        for one in clients:
            with suppress(ConnectionResetError):  # what follows is not read
                got = one.makefile("rb").read()
                assert got.count(b"HTTP/1.1 ") <= 1
                assert got.count(b"connection: close") == got.count(b"HTTP/1.1 ")


def command(site: Site, *words: str) -> list[str]:
    return [sys.executable, "-m", "queuepool", "web", *site.where, "--runtime-dir", str(site.path / "run"), *words]


@pytest.mark.real_start
def test_the_command_prints_its_address_serves_and_ends_with_0_when_it_is_told_to_stop(site):
    site.push()
    log, listen = site.path / "web.log", f"127.0.0.1:{free_port()}"
    with log.open("wb") as out:
        process = warm.start(command(site, "--listen", listen), env=site.env(), cwd=site.path, stdout=out, stderr=out)
    try:
        eventually(lambda: f"the dashboard is at http://{listen}/" in log.read_text())
        with urlopen(Request(f"http://{listen}/"), timeout=20) as page:
            assert "queuepool" in page.read().decode()
    finally:
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(20)


@pytest.mark.real_start
def test_a_pool_shows_the_dashboard_beside_itself_and_takes_it_along(site):
    listen = f"127.0.0.1:{free_port()}"
    config = f"[pool:default]\n[web]\nlisten = {listen}\n"
    with site.pool("--workers", "1", "--web", config=config) as pool:
        eventually(lambda: f"the dashboard is at http://{listen}/" in pool.log())
        with urlopen(Request(f"http://{listen}/api/v1/overview"), timeout=20) as page:
            assert b'"default"' in page.read()
        [dashboard] = pool.pids(r"^queuepool: dashboard \[default\] running")
        assert not [pid for pid in pool.workers() if pid == dashboard]
    # What pool.end() has seen is gone, and so is this one: it has the pool's death for a signal.
    with pytest.raises(OSError, match="refused"):
        urlopen(Request(f"http://{listen}/"), timeout=20)


def test_a_pool_that_cannot_have_its_dashboard_does_not_start(site):
    (site.path / "pool.ini").write_text("[pool:default]\n[web]\nlisten = 0.0.0.0:8420\n")
    done = site.run("start", *site.where, "-c", str(site.path / "pool.ini"), "--web", check=False)

    assert (78, "") == (done.returncode, done.stdout)
    assert "0.0.0.0:8420 is open to other hosts" in done.stderr


def test_the_command_refuses_to_be_open_to_others_without_users_or_token(site):
    done = site.run("web", *site.where, "--listen", "0.0.0.0:8420", check=False)

    assert (78, "") == (done.returncode, done.stdout)
    assert (
        "0.0.0.0:8420 is open to other hosts: set users (queuepool web --add-user NAME) or token first" in done.stderr
    )


def test_users_are_added_with_their_passwords(site):
    users = site.path / "users"
    add = ["web", *site.where, "--users", str(users)]
    for name, role in (("ann", "operator"), ("bob", "viewer"), ("ann", "admin")):
        done = site.run(*add, "--add-user", name, "--role", role, input="correct horse\n")
        assert f"{name} may log in as {role}\n" == done.stdout

    assert ["bob:viewer", "ann:admin"] == [":".join(line.split(":")[:2]) for line in users.read_text().splitlines()]
    assert 0o600 == users.stat().st_mode & 0o777
    users.chmod(0o640)
    site.run(*add, "--add-user", "cid", input="correct horse\n")
    assert 0o640 == users.stat().st_mode & 0o777
    assert 2 == site.run(*add, "--add-user", "eve", input="short\n", check=False).returncode
    assert 2 == site.run(*add, "--add-user", "a:b", input="correct horse\n", check=False).returncode
    assert 2 == site.run("web", *site.where, "--add-user", "eve", input="correct horse\n", check=False).returncode
    assert 2 == site.run("web", *site.where, "--role", "admin", check=False).returncode


@each("password", ["x" * 800, "two\twords of it", "a bell \a in it", "ü" * 400, "not UTF-8: \udcff"])
def test_a_password_that_no_browser_can_send_is_refused(site, password):
    users = site.path / "users"
    add = ["web", *site.where, "--users", str(users), "--add-user", "ann"]
    done = site.run(*add, input=f"{password}\n".encode("utf-8", "surrogateescape"), check=False)

    assert (2, False) == (done.returncode, users.exists())
    assert "no browser can send this password" in done.stderr


@pytest.mark.thorough("users are added to a file above")
def test_users_may_be_a_link_to_their_file(site):
    real, link = site.path / "real", site.path / "users"
    link.symlink_to(real)
    add = ["web", *site.where, "--users", str(link), "--add-user"]
    for name in ("ann", "bob"):
        site.run(*add, name, input="correct horse\r\n")

    assert (True, False) == (link.is_symlink(), real.is_symlink())
    assert ["ann", "bob"] == [line.partition(":")[0] for line in real.read_text().splitlines()]
    link.unlink()
    link.mkdir()
    assert 0 != site.run(*add, "ann", input="correct horse\n", check=False).returncode


def test_two_who_add_users_at_once_add_both(site):
    users = site.path / "users"
    users.write_text("")
    users.chmod(0o600)
    add = ["web", *site.where, "--users", str(users), "--add-user", "ann"]
    with users.open() as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        second = threading.Thread(target=lambda: site.run(*add, input="correct horse\n"))
        second.start()
        eventually(lambda: re.search(rf"-> FLOCK .*:{users.stat().st_ino} ", Path("/proc/locks").read_text()))
        # The first one puts its file in place, and ends.
        (site.path / "draft").write_text("bob:viewer:a hash\n")
        (site.path / "draft").chmod(0o640)
        (site.path / "draft").rename(users)
    second.join(30)

    assert ["bob", "ann"] == [line.partition(":")[0] for line in users.read_text().splitlines()]
    assert 0o640 == users.stat().st_mode & 0o777


def test_while_the_store_is_away_pages_show_what_the_boards_know_and_nobody_waits(away, own_server):
    with away.pool("--workers", "1"), opened(config_of(away)) as browser:
        eventually(lambda: browser.facts("/overview")["pools"][0]["state"] == "running")
        halt(own_server.process.pid)  # it answers nothing, and refuses nothing
        try:
            eventually(lambda: browser.facts("/overview")["problems"])
            began = time.monotonic()
            facts = [browser.facts("/overview") for _ in range(30)]
            # Each would wait for 2 s if it asked the server itself.
            assert time.monotonic() - began < 30.0
            assert {"running"} == {one["pools"][0]["state"] for one in facts}
            assert all(one["measured_ago"] is not None for one in facts)
            assert {503} == {browser.get(path).status for path in ("/failed", "/queues/default/default", "/jobs/x")}
        finally:
            own_server.process.send_signal(signal.SIGCONT)
        eventually(lambda: not browser.facts("/overview")["problems"])


def is_complete(overview: Any) -> bool:
    """Whether the store and the history have been read."""
    return overview["totals"]["failed"] is not None and bool(overview["histories"][0]["charts"])


def test_twenty_tabs_ask_the_store_as_often_as_one(away, own_server, monkeypatch):
    for name in ("_LASTS", "_PAST_LASTS"):  # on a crowded machine, the tabs may take longer than a read lasts
        monkeypatch.setattr(connections, name, 3600.0)
    with opened(config_of(away)) as browser:
        # A read that the page has not waited for goes on, and that of the history takes more than the tabs may.
        eventually(lambda: is_complete(browser.facts("/overview")))
        before = own_server.say("INFO", "stats")["total_commands_processed"]
        for _ in range(20):
            for path in ("/overview", "/queues", "/running", "/pools", "/queues/default/default?part=live"):
                browser.facts(path)
        asked = own_server.say("INFO", "stats")["total_commands_processed"] - before

    assert asked < 60, asked
