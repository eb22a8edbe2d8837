"""A pool's web process: its pages, made from the board alone, the little of HTTP/1.1 that they need, and its socket.

Bounded: a client can neither fill the memory nor keep others waiting.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple

from queuepool import __version__
from queuepool.board.board import Board
from queuepool.board.counts import counts_of
from queuepool.board.health import health_of
from queuepool.board.status import overview
from queuepool.config.values import Address
from queuepool.metrics.samples import (
    TYPE,
    PoolFacts,
    exposition,
    facts_of,
    not_live,
    not_ready,
    not_started,
    of_pool,
    of_program,
)

#: connections at once; beyond that, the oldest is closed: a healthy one takes milliseconds
MAX_CONNECTIONS = 64
#: seconds that a client may take to send its head, to take the response, and to close
HEAD_TIMEOUT, BODY_TIMEOUT, CLOSE_TIMEOUT = 10.0, 10.0, 1.0
_METHODS = ("GET", "HEAD")
_log = logging.getLogger("queuepool")
TEXT = "text/plain; charset=utf-8"
#: most bytes of a request's head
MAX_HEAD = 16384
END_OF_HEAD = b"\r\n\r\n"
_FIRST_LINE = re.compile(rb"([A-Z]{1,20}) (/[!-~]*) HTTP/1\.[01]\r\n")
#: connections that the kernel keeps until they are accepted
_BACKLOG = 128
#: mode of a Unix socket: its owner and group may connect
_SOCKET_MODE = 0o660
#: the device and inode of a Unix socket's path
File = tuple[int, int] | None


class Response(NamedTuple):
    """A response, after which the connection is closed."""

    status: HTTPStatus
    body: bytes
    type: str = TEXT
    #: further lines of the head
    fields: tuple[str, ...] = ()

    @classmethod
    def plain(cls, status: HTTPStatus, words: str = "", *fields: str) -> Response:
        """A line of text, by default the status in words."""
        return cls(status, f"{words or status.phrase}\n".encode(), TEXT, fields)

    def written(self, *, with_body: bool = True) -> bytes:
        """As bytes; the response to HEAD is that to GET without its body."""
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Date: {formatdate(usegmt=True)}",
            f"Content-Type: {self.type}",
            f"Content-Length: {len(self.body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *self.fields,
        ]
        return "\r\n".join([*lines, "", ""]).encode() + (self.body if with_body else b"")


#: the response for a path
Answer = Callable[[str], Response]


class Server:
    """Calls ``answer`` for one request after the other."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        #: so that the loop looks at its clock between any two pages, however many clients wait for one
        self._turn = asyncio.Lock()
        #: oldest first
        self._open: dict[asyncio.StreamWriter, None] = {}

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._open)

    async def listen(self, listening: socket.socket) -> asyncio.Server:
        """Serve what connects to this socket, from now on."""
        return await asyncio.start_server(self._serve, sock=listening, limit=MAX_HEAD)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = None
        if self.connections > MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]  # at once: those that come before its task ends would all close the same one
            oldest.transport.abort()
        try:
            await self._converse(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client is gone or too slow, or the pool stops
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_TIMEOUT):
            response = await self._response(reader)
        async with asyncio.timeout(BODY_TIMEOUT):
            writer.transport.set_write_buffer_limits(high=0)  # drain() then waits until all is with the kernel
            writer.write(response)
            await writer.drain()
        # A connection that is closed with unread data is reset, and the client may lose what it has not yet read.
        async with asyncio.timeout(CLOSE_TIMEOUT):
            writer.write_eof()
            while await reader.read(MAX_HEAD):
                pass

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        try:
            request = Request.of(await reader.readuntil(END_OF_HEAD))
        except asyncio.LimitOverrunError:
            return Response.plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE).written()
        except ValueError:
            return Response.plain(HTTPStatus.BAD_REQUEST).written()
        if request.method not in _METHODS:
            return Response.plain(HTTPStatus.METHOD_NOT_ALLOWED, "", f"Allow: {', '.join(_METHODS)}").written()
        async with self._turn:
            await asyncio.sleep(0)  # else a free lock lets one after the other pass without a pause
            return self._answered(request.path).written(with_body=request.method == "GET")

    def _answered(self, path: str) -> Response:
        try:
            return self._answer(path)
        except Exception:  # noqa: BLE001 - one page must not cost the others
            _log.exception("%s cannot be served", path)
            return Response.plain(HTTPStatus.INTERNAL_SERVER_ERROR)


async def serve(answer: Answer, listening: socket.socket, tick: Callable[[], float]) -> None:
    """Serve until ``tick`` returns 0; it is called again after the seconds that it returns."""
    server = await Server(answer).listen(listening)
    try:
        while pause := tick():
            await asyncio.sleep(pause)
    finally:
        server.close()
        with suppress(OSError):
            listening.close()


class Pages:
    """The pages of one pool, by their exact paths."""

    def __init__(self, pool: str, connection: str, board: Board) -> None:
        self._pool, self._connection, self._board = pool, connection, board
        self._pages: Mapping[str, Callable[[], Response]] = {
            "/metrics": self._metrics,
            "/livez": lambda: self._health(not_live),
            "/readyz": lambda: self._health(not_ready),
            "/startedz": lambda: self._health(not_started),
            "/api/v1/status": self._status,
        }

    def answer(self, path: str) -> Response:
        """The page with exactly this path, else 404."""
        page = self._pages.get(path)
        return page() if page else Response.plain(HTTPStatus.NOT_FOUND)

    def _facts(self) -> PoolFacts:
        return facts_of(self._pool, self._connection, self._board)

    def _metrics(self) -> Response:
        text = exposition([*of_program(), *of_pool(self._facts(), counts_of(self._board))])
        return Response(HTTPStatus.OK, text, TYPE)

    def _health(self, problem_of: Callable[[PoolFacts], str]) -> Response:
        problem = problem_of(self._facts())
        return Response.plain(HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK, problem)

    def _status(self) -> Response:
        found = overview(self._pool, self._board)
        facts = {"version": __version__, **found.to_json(), **health_of(found).to_json()}
        return Response(HTTPStatus.OK, f"{json.dumps(facts)}\n".encode(), "application/json")


class Request(NamedTuple):
    """The first line of a request; ``path`` is without the query."""

    method: str
    path: str

    @classmethod
    def of(cls, head: bytes) -> Request:
        """The request that begins with this head. Raises ``ValueError`` if it is not one."""
        found = _FIRST_LINE.match(head)
        if not found:
            raise ValueError("not a request of HTTP/1")
        return cls(found[1].decode(), found[2].decode().partition("?")[0])


def bound(address: Address) -> socket.socket:
    """A socket that listens there. Raises ``OSError``, also when another process listens there."""
    found = _unix(address.path) if address.path else _tcp(address)
    found.listen(_BACKLOG)
    return found


def problem_of(address: Address) -> str:
    """Why nothing can listen there, in words; empty if it can. Leaves nothing behind."""
    try:
        bound(address).close()
    except OSError as error:
        return error.strerror or str(error)
    leave(address, file_of(address))
    return ""


def file_of(address: Address) -> File:
    """What is at a Unix socket's path: another file if someone has replaced it, ``None`` if it was removed."""
    with suppress(OSError):
        found = os.lstat(address.path)
        return found.st_dev, found.st_ino
    return None


def leave(address: Address, own: File) -> None:
    """Remove a Unix socket's path, if that is still our own file."""
    if own and file_of(address) == own:
        with suppress(OSError):  # another process has just removed it
            os.unlink(address.path)


def _tcp(address: Address) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if address.is_v6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of a pool that has just ended do not occupy the port; a process that listens does.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.is_v6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind((address.host, address.port))
    except OSError:
        found.close()
        raise
    return found


def _unix(path: str) -> socket.socket:
    _remove_abandoned(path)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(path)
        os.chmod(path, _SOCKET_MODE)
    except OSError:
        found.close()
        raise
    return found


def _remove_abandoned(path: str) -> None:
    """Remove the path of a socket on which no process listens any more; leave anything else. Never waits."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return  # the bind fails, and reports it
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)  # a process that accepts nothing listens, too
        try:
            caller.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except BlockingIOError:
            return  # the bind fails, and reports it
