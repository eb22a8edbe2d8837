"""Serves a handful of small pages over HTTP. Bounded: a client can neither fill the memory nor keep others waiting."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from queuepool.metrics.http import END_OF_HEAD, MAX_HEAD, Request, Response

#: connections at once; of more, the oldest is closed: a sound one takes milliseconds
MAX_CONNECTIONS = 64
#: seconds that a client may take to send its head, to take the response, and to close
HEAD_TIMEOUT, BODY_TIMEOUT, CLOSE_TIMEOUT = 10.0, 10.0, 1.0
_METHODS = ("GET", "HEAD")
_log = logging.getLogger("queuepool")

#: the response for a path
Answer = Callable[[str], Response]


class Server:
    """``answer`` is called for each request, by one after the other."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
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
            del self._open[oldest]  # at once: of those that come before its task ends, each would close the same one
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
