"""Serves the dashboard: uvicorn, with a deadline for requests, which it has none for by itself."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from queuepool.config.values import address_of
from queuepool.errors import ConfigError
from queuepool.metrics.server import bound, file_of, leave
from queuepool.web.guard import LET_IN, Asgi

#: seconds within which a request must have come, its body included: every byte resets uvicorn's own timeout
REQUEST_WITHIN = 10.0
#: connections at once, bytes of a request's head, and seconds for answers under way at a stop
_MOST_CONNECTIONS, _MOST_HEAD, _STOP_WITHIN = 64, 16384, 3
_RECEIVED = (h11.DONE, h11.MUST_CLOSE)
_log = logging.getLogger("queuepool")


class PromptProtocol(H11Protocol):
    """Closes a connection whose request does not come in time, and beyond a number of them the oldest that is not used.

    One whose request is being answered is not closed for another: it may be an action. Then the newest one goes. Whose
    visitor is not known yet acts on nothing, and makes room: wrong logins keep nobody out.

    ``open_ones``: all of the server, the oldest first.
    """

    def __init__(self, open_ones: dict[PromptProtocol, None], **about: Any) -> None:
        super().__init__(**about)
        self._open_ones = open_ones
        self._late: asyncio.TimerHandle | None = None
        self._sends_no_more = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._open_ones[self] = None
        if len(self._open_ones) > _MOST_CONNECTIONS:
            spare = next(one for one in self._open_ones if one._is_spare or one is self)
            del self._open_ones[spare]  # at once: many may come before it is told
            spare.transport.abort()
        self._expect()

    def data_received(self, data: bytes) -> None:
        if self._late is None:
            self._expect()
        super().data_received(data)
        if self.conn.their_state in _RECEIVED:
            self._has_come()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that sends no more still gets its answer, if its request has come."""
        super().eof_received()
        self._sends_no_more = True
        return self.conn.their_state in _RECEIVED and bool(self.cycle) and not self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_come()
        self._open_ones.pop(self, None)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._sends_no_more:
            self.transport.close()
        elif self.conn.their_state not in (h11.IDLE, *_RECEIVED) and self._late is None:
            self._expect()  # a part of the next request was read with this one

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be a request, unless its beginning is answered already; if not, that comes too late.

        By itself uvicorn would answer twice, and write a traceback for whoever sends such a thing.
        """
        if self.cycle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    @property
    def _is_spare(self) -> bool:
        """Whether it waits for a request, or answers none; an answer that nobody reads may wait for ever."""
        is_answered = self.cycle is None or self.cycle.response_complete or self.transport.is_closing()
        return is_answered or self._late is not None or LET_IN not in self.cycle.scope

    def _expect(self) -> None:
        self._late = self.loop.call_later(REQUEST_WITHIN, self.transport.abort)

    def _has_come(self) -> None:
        if self._late:
            self._late.cancel()
            self._late = None


class OwnServer(uvicorn.Server):
    """Leaves the signals to this process, and ends when it is to stop."""

    def __init__(self, config: uvicorn.Config, is_stopped: Callable[[], bool]) -> None:
        super().__init__(config)
        self._is_stopped = is_stopped

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        return self._is_stopped() or await super().on_tick(counter)


def serve(pages: Asgi, listen: str, is_stopped: Callable[[], bool], ready: Callable[[], object]) -> None:
    """Serve until ``is_stopped``. Raises ``ConfigError`` if nothing can listen there."""
    address = address_of(listen)
    try:
        listening = bound(address)
    except OSError as error:
        raise ConfigError("[web] listen", f"cannot listen on {listen}: {error.strerror or error}") from error
    file = file_of(address)
    try:
        ready()
        asyncio.run(_serve(pages, listening, is_stopped))
    finally:
        listening.close()
        leave(address, file)


async def _serve(pages: Asgi, listening: socket.socket, is_stopped: Callable[[], bool]) -> None:
    # It warns of what anybody can send.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    settings: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "proxy_headers": False}
    config = uvicorn.Config(
        pages,
        http=partial(PromptProtocol, {}),  # type: ignore[arg-type]  # it only calls it
        ws="none",
        lifespan="on",
        h11_max_incomplete_event_size=_MOST_HEAD,
        timeout_graceful_shutdown=_STOP_WITHIN,
        **settings,
    )
    await OwnServer(config, is_stopped).serve(sockets=[listening])
