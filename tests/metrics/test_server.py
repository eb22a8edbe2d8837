"""The HTTP of the web process, over real sockets: what it answers, and what a bad client costs the others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queuepool.config.values import Address
from queuepool.metrics import server
from queuepool.metrics.server import MAX_CONNECTIONS, MAX_HEAD, Request, Response, Server, bound
from tests.support.each import each

PAGE, LARGE = b"a page\n", 20_000_000
Scenario = Callable[["Client"], Awaitable[None]]


class Client:
    """Talks to the server under test."""

    def __init__(self, path: str, server: Server) -> None:
        self.path, self.server = path, server
        self.opened: list[asyncio.StreamWriter] = []

    async def open(self, limit: int = 65536) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(self.path, limit=limit)
        self.opened.append(writer)
        return reader, writer

    def close(self) -> None:
        for writer in self.opened:
            writer.transport.abort()

    async def say(self, sent: bytes) -> bytes:
        """Send this and read to the end."""
        reader, writer = await self.open()
        writer.write(sent)
        return await read_all(reader)

    async def get(self, path: str, method: str = "GET") -> bytes:
        return await self.say(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection is closed or reset."""
    received = b""
    with suppress(ConnectionResetError):
        while part := await asyncio.wait_for(reader.read(65536), 30.0):
            received += part
    return received


def answer(path: str) -> Response:
    if path == "/bad":
        raise ValueError("a mistake of ours")
    if path == "/large":
        return Response(HTTPStatus.OK, b"x" * LARGE)
    return Response(HTTPStatus.OK, PAGE) if path == "/page" else Response.plain(HTTPStatus.NOT_FOUND)


@pytest.fixture
def run(tmp_path):
    """Runs a scenario beside the server."""

    async def beside(scenario: Scenario) -> None:
        address = Address(path=str(tmp_path / "q.sock"))
        server = Server(answer)
        serving, client = await server.listen(bound(address)), Client(address.path, server)
        try:
            await scenario(client)
        finally:
            client.close()
            serving.close()
            await asyncio.sleep(0)

    return lambda scenario: asyncio.run(beside(scenario))


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


def test_a_page_is_served_whole_and_the_connection_closed(run):
    async def scenario(client: Client) -> None:
        head, _, body = (await client.get("/page")).partition(b"\r\n\r\n")

        assert PAGE == body
        assert b"HTTP/1.1 200 OK" == head.split(b"\r\n")[0]
        assert {b"Content-Length: 7", b"Connection: close", b"Cache-Control: no-store"} <= set(head.split(b"\r\n"))

    run(scenario)


def test_head_gets_the_same_head_without_the_page(run):
    async def scenario(client: Client) -> None:
        response = await client.get("/page", "HEAD")

        assert response.endswith(b"\r\n\r\n")
        assert b"Content-Length: 7\r\n" in response

    run(scenario)


@pytest.mark.bad_input("B145")
@each(
    ("sent", "code"),
    [
        (b"GET /page?name[]=queuepool_up HTTP/1.1\r\n\r\n", 200),
        (b"GET /page HTTP/1.0\r\nAccept: application/openmetrics-text; version=9\r\n\r\n", 200),
        (b"GET /page/ HTTP/1.1\r\n\r\n", 404),
        (b"GET /Page HTTP/1.1\r\n\r\n", 404),
        (b"GET /../page HTTP/1.1\r\n\r\n", 404),
        (b"GET /pag%65 HTTP/1.1\r\n\r\n", 404),
        (b"GET http://x/page HTTP/1.1\r\n\r\n", 400),
        (b"GET / page HTTP/1.1\r\n\r\n", 400),
        (b"GET /p\xc3\xa4ge HTTP/1.1\r\n\r\n", 400),
        (b"GET /page HTTP/2\r\n\r\n", 400),
        (b"get /page HTTP/1.1\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"POST /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"DELETE /page HTTP/1.1\r\n\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nAccept: " + b"x" * 65536 + b"\r\n\r\n", 431),
        (b"G" * (MAX_HEAD + 1) + b"\r\n\r\n", 431),
    ],
)
def test_what_is_no_plain_request_gets_its_status(run, sent, code):
    async def scenario(client: Client) -> None:
        assert code == status(await client.say(sent))

    run(scenario)


def test_a_page_that_fails_costs_no_other(run, caplog):
    async def scenario(client: Client) -> None:
        logging.getLogger("queuepool").propagate = True

        assert 500 == status(await client.get("/bad"))
        assert 200 == status(await client.get("/page"))

    run(scenario)
    assert "/bad cannot be served" in caplog.text


@pytest.mark.bad_input("B146")
def test_a_client_that_sends_nothing_is_dropped_and_delays_no_other(run, monkeypatch):
    monkeypatch.setattr(server, "HEAD_TIMEOUT", 2.0)  # for the other one, too

    async def scenario(client: Client) -> None:
        slow, writer = await client.open()
        writer.write(b"GET /page HT")

        assert 200 == status(await client.get("/page"))
        assert b"" == await read_all(slow)

    run(scenario)


@pytest.mark.bad_input("B146")
def test_a_client_that_reads_nothing_is_dropped_and_delays_no_other(run, monkeypatch):
    monkeypatch.setattr(server, "BODY_TIMEOUT", 0.5)

    async def scenario(client: Client) -> None:
        slow, writer = await client.open(limit=1024)  # of more than twice that, the rest is not read
        writer.write(b"GET /large HTTP/1.1\r\n\r\n")

        assert 200 == status(await client.get("/page"))
        while client.server.connections:
            await asyncio.sleep(0.01)
        assert LARGE > len(await read_all(slow))

    run(scenario)


def test_a_burst_of_requests_does_not_keep_the_process_from_its_own_tick(tmp_path):
    """The master would take it for hung."""
    address, events = Address(path=str(tmp_path / "q.sock")), []

    def page(path: str) -> Response:
        events.append("page")
        until = time.monotonic() + 0.005
        while time.monotonic() < until:
            pass
        return Response(HTTPStatus.OK, PAGE)

    def tick() -> float:
        events.append("tick")
        return 0.001 if events.count("page") < 30 else 0.0

    async def burst() -> None:
        client = Client(address.path, Server(page))
        serving = asyncio.create_task(server.serve(page, bound(address), tick))
        assert {200} == {status(one) for one in await asyncio.gather(*[client.get("/page") for _ in range(30)])}
        await serving
        client.close()

    asyncio.run(burst())
    assert "page page page page" not in " ".join(events)


@pytest.mark.bad_input("B146")
def test_of_too_many_connections_the_oldest_are_closed(run):
    async def scenario(client: Client) -> None:
        held = [await client.open() for _ in range(2 * MAX_CONNECTIONS)]
        responses = [await client.get("/page") for _ in range(3)]
        first = await read_all(held[0][0])
        reader, newest = held[-1]

        assert [200, 200, 200] == [status(one) for one in responses]
        assert b"" == first
        newest.write(b"GET /page HTTP/1.1\r\n\r\n")
        assert 200 == status(await read_all(reader))

    run(scenario)


@pytest.mark.bad_input("B146")
def test_of_a_burst_of_connections_the_newest_stay(run, monkeypatch):
    monkeypatch.setattr(server, "HEAD_TIMEOUT", 120.0)  # none is closed because it says nothing

    async def scenario(client: Client) -> None:
        held = await asyncio.gather(*(client.open() for _ in range(3 * MAX_CONNECTIONS)))
        ends = [asyncio.create_task(read_all(reader)) for reader, _ in held]
        async with asyncio.timeout(60):
            while sum(end.done() for end in ends) < 2 * MAX_CONNECTIONS:
                await asyncio.sleep(0.01)
        for end in ends:
            end.cancel()

    run(scenario)


@pytest.mark.bad_input("B145")
@given(head=st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_request_or_refused(head):
    with suppress(ValueError):
        assert Request.of(head).path.startswith("/")
