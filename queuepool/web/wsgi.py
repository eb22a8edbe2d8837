"""The dashboard for what speaks WSGI, as Flask does, and for requests in the form of CGI, as Django has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

from queuepool.web.guard import MAX_BODY, READING, Asgi, AsgiScope, Message

#: of WSGI's ``start_response``: the status and the header fields
StartResponse = Callable[[str, list[tuple[str, str]]], object]
#: what has no HTTP_ before its name
_BARE = {"CONTENT_TYPE": b"content-type", "CONTENT_LENGTH": b"content-length"}


class WholeAnswer(NamedTuple):
    """An answer that is complete; its names and values are Latin-1."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class WsgiDashboard:
    """A dashboard as a WSGI application. ``access`` finds the request's environment in the scope's ``wsgi.environ``.

    Each request blocks its thread until it is answered, with an event loop of its own, which concerns no other.
    """

    def __init__(self, dashboard: Asgi) -> None:
        self._dashboard = dashboard

    def __call__(self, environ: Mapping[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        answer = exchanged(self._dashboard, scope_of(environ), _body_of(environ))
        start_response(f"{answer.status} {_phrase(answer.status)}", answer.headers)
        return [answer.body]


def exchanged(dashboard: Asgi, scope: AsgiScope, body: bytes) -> WholeAnswer:
    """Ask the dashboard, and wait for all of its answer. Not for a thread with a running event loop."""
    return asyncio.run(_exchanged(dashboard, scope, body))


async def _exchanged(dashboard: Asgi, scope: AsgiScope, body: bytes) -> WholeAnswer:
    sent = list[Message]()

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await dashboard(scope, receive, send)
    start, *parts = sent
    # Connection is for the server alone (PEP 3333).
    fields = [(name, value) for name, value in start["headers"] if name != b"connection"]
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
    whole = b"".join(part.get("body", b"") for part in parts)
    return WholeAnswer(start["status"], headers, b"" if scope["method"] == "HEAD" else whole)


def scope_of(environ: Mapping[str, Any], below: str = "") -> dict[str, Any]:
    """The ASGI scope of a request in the form of CGI. ``below``: the path of the mount, which is part of PATH_INFO."""
    root = _text(environ.get("SCRIPT_NAME", "")) + below
    path = _text(environ.get("SCRIPT_NAME", "")) + _text(environ.get("PATH_INFO", ""))
    port = str(environ.get("SERVER_PORT", ""))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": environ["REQUEST_METHOD"],
        "scheme": environ.get("wsgi.url_scheme", "http"),
        "path": path,
        "raw_path": quote(path).encode("ascii"),
        "query_string": str(environ.get("QUERY_STRING", "")).encode("latin-1", "replace"),
        "root_path": root,
        "headers": _headers(environ),
        "client": (str(environ.get("REMOTE_ADDR", "")), 0),
        "server": (str(environ.get("SERVER_NAME", "")), int(port) if port.isdecimal() else None),
        "state": {},
        "wsgi.environ": environ,
    }


def _headers(environ: Mapping[str, Any]) -> list[tuple[bytes, bytes]]:
    found = []
    for key, value in environ.items():
        name = _BARE.get(key) or (key[5:].replace("_", "-").lower().encode("latin-1") if key[:5] == "HTTP_" else None)
        if name and value:  # servers give an empty length to a request without a body
            found.append((name, str(value).encode("latin-1", "replace")))
    return found


def _text(raw: str) -> str:
    """A path, whose bytes PEP 3333 holds as Latin-1."""
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def _body_of(environ: Mapping[str, Any]) -> bytes:
    """The body; of one that is too large as much as shows that, and none if its length cannot be read."""
    length = str(environ.get("CONTENT_LENGTH") or "")
    if environ["REQUEST_METHOD"] in READING or not (length.isascii() and length.isdecimal()):
        return b""
    found: bytes = environ["wsgi.input"].read(min(int(length), MAX_BODY + 1))
    return found


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase
